/* begun.h - the work that an iterator leaves to a later one of the same session, in place of ending
 * it: a session makes its first step once in advance, to learn its size, and what was begun for it
 * goes on where it is made to be delivered. The order's thread. */
#ifndef SOURCE_FILES_BEGUN_H
#define SOURCE_FILES_BEGUN_H

#include "source/files/files.h"

/* Leave it under this key, which is copied. `close` ends it if nobody takes it. */
void begun_leave(struct source_files *files, const char *key, void *state,
                 void (*close)(void *state));

/* Take what was left first under this key. NULL: nothing was. */
void *begun_take(struct source_files *files, const char *key);

#endif
