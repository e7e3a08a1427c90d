/* whole.h - an object whose server sends no ranges, too large to be cut out of its answers: it is
 * read whole, once, into the cache on disk, where its parts then lie as those of others. */
#ifndef REMOTE_WHOLE_H
#define REMOTE_WHOLE_H

#include "remote/request.h"

/* Is that what became of a request, and is there a cache on disk? */
bool whole_is_wanted(const struct remote *remote, const struct answer *answer);

/* A part, from the disk. If it is not there, the object is read into the disk first, while others
 * that want some of it wait. The identity is known then, or must be that. The caller closes the
 * descriptor, whose first bytes the part is. E_DATA: the object is larger than the cache. */
tundish_status whole_have_part(struct remote *remote, const struct remote_url *url, uint32_t part,
                               struct object_identity *identity, int *ret_descriptor);

/* Bytes that it has. */
struct whole_span {
    uint64_t offset;
    size_t bytes;
};
tundish_status whole_read(struct remote *remote, const struct remote_url *url,
                          struct whole_span span, struct object_identity *identity, uint8_t *to);

#endif
