/* beside.h - files that lie in the folder of the running program. */
#ifndef TND_CORE_BESIDE_H
#define TND_CORE_BESIDE_H

#include <limits.h>
#include <stdbool.h>

/* The path of the file of this name. False if that would be too long, or if there is no /proc. */
bool tnd_beside_program(const char *name, char ret_path[PATH_MAX]);

#endif
