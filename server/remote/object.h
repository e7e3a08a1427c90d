/* object.h - a remote file that rows are read from: it is one version of one object, whose bytes
 * any thread may read. */
#ifndef REMOTE_OBJECT_H
#define REMOTE_OBJECT_H

#include <sys/uio.h>

#include "remote/remote.h"
#include "remote/request.h"

struct remote_object;

/* Nothing is asked yet. `folder` is the cache folder; it may be closed afterwards. With fetch: once
 * all of this process that open it by this name share one. */
tundish_status remote_object_open(struct remote *remote, int folder, const char *name,
                                  struct remote_object **ret_object);
void remote_object_close(struct remote_object *object); /* accepts NULL; nobody reads it */

/* Ask for its first part, unless that is known, and wait. From then on it must not change. */
tundish_status remote_object_identify(struct remote_object *object,
                                      struct object_identity *ret_identity);

/* As many bytes as it has, into two buffers; waits for its parts. It is identified. */
tundish_status remote_object_read(struct remote_object *object, const struct iovec to[2],
                                  uint64_t offset, size_t *ret_bytes);

/* It will be read from `offset` on: in order, or (`is_lone`) just there. Returns at once. */
void remote_object_expect(struct remote_object *object, uint64_t offset, bool is_lone);

/* Can these bytes, as far as it has them, be read without waiting? */
bool remote_object_is_here(struct remote_object *object, size_t bytes, uint64_t offset);

/* All of it in a file without a name in the folder, for readers that need one, at its beginning.
 * The caller closes it. */
tundish_status remote_object_copy(struct remote_object *object, int folder, int *ret_descriptor);

/* An object that is looked at without reading it. */
tundish_status remote_identify(struct remote *remote, const char *name,
                               struct object_identity *ret_identity);
uint64_t object_identity_hash(const struct object_identity *identity);

/* Tells its version from others at the same URL; 0: the store says neither ETag nor date. */
uint64_t object_version(const struct object_identity *identity);

#endif
