/* small.h - objects of one part that rows name: where there is a cache on disk, a server asks only
 * for those that no server of the node has asked for since it began. */
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
