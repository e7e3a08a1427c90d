/* small.h - objects of one part that rows name: where there is a cache on disk, each is asked for
 * once as long as a server of the node runs. */
#ifndef REMOTE_SMALL_H
#define REMOTE_SMALL_H

#include "remote/request.h"

/* Is it in the cache, and how large? */
bool small_find(struct remote *remote, const struct remote_url *url, size_t *ret_bytes);

/* As many bytes as small_find said. False: it is not there any more, or damaged. */
bool small_read(struct remote *remote, const struct remote_url *url, uint8_t *to, size_t bytes);

/* It came. */
void small_keep(struct remote *remote, const struct remote_url *url, const struct answer *answer,
                const uint8_t *bytes);

#endif
