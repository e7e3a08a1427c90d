/* mapped.h - mapped files that other processes may truncate meanwhile. For the server.
 *
 * An access to a page beyond the file's end raises SIGBUS, which would end the process. Here zeros
 * replace that page and all later ones, and the mapping is marked as cut. A caller that has read
 * from a mapping must call tnd_mapped_check before it uses the result. The first mapping installs a
 * handler for SIGBUS; faults elsewhere go to the handler that was there before.
 */
#ifndef TND_CORE_MAPPED_H
#define TND_CORE_MAPPED_H

#include <stdbool.h>
#include <stdint.h>

#include "tundish/tundish.h"

struct tnd_mapped;

enum tnd_mapped_use {
    TND_MAPPED_READ, /* tnd_mapped_check tells of it */
    TND_MAPPED_WRITE /* writes are for other processes */
};

/* Map a whole file, shared; it may be closed afterwards. `bytes` is not 0. */
tundish_status tnd_mapped_open(int file, uint64_t bytes, enum tnd_mapped_use use,
                               struct tnd_mapped **ret_mapped);
void tnd_mapped_close(struct tnd_mapped *mapped); /* accepts NULL */

void *tnd_mapped_bytes(const struct tnd_mapped *mapped);
bool tnd_mapped_is_cut(const struct tnd_mapped *mapped);

/* After reading: E_CORRUPT, naming it, if any file that is mapped for reading was cut. Costs one
 * load; any thread. */
tundish_status tnd_mapped_check(void);

#endif
