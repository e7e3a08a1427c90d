/* small.h - single-part objects named by rows. With a disk cache, a server fetches only objects
 * that no server of this node has fetched since it started. */
#ifndef REMOTE_SMALL_H
#define REMOTE_SMALL_H

#include "remote/disk.h"

/* It, if it is in the cache. */
bool small_read(struct remote *remote, const struct remote_url *url, const struct disk_room *room,
                struct disk_small *ret_small);

/* It came. */
void small_keep(struct remote *remote, const struct remote_url *url, const struct answer *answer,
                const uint8_t *bytes);

#endif
