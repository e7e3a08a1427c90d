/* cgroups.h - the control groups that limit this process: its own, and those above it. */
#ifndef TND_CORE_CGROUPS_H
#define TND_CORE_CGROUPS_H

/* Call `visit` with the folder of each group of version 2, and of version 1's `controller`, that
 * this process sees, its own first. The folder's files may be missing. Allocates nothing. */
void tnd_cgroups_visit(const char *controller, void (*visit)(void *context, const char *folder),
                       void *context);

#endif
