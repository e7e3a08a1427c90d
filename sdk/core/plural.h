/* plural.h - the end of a noun that is counted, by a number of any type. */
#ifndef TND_CORE_PLURAL_H
#define TND_CORE_PLURAL_H

#define TND_PLURAL(count) ((count) == 1 ? "" : "s")

#endif
