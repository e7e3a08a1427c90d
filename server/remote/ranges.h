/* ranges.h - an object of which only some ranges are wanted, far apart: nothing else is asked for.
 * It is one version of the object. Any thread. */
#ifndef REMOTE_RANGES_H
#define REMOTE_RANGES_H

#include "remote/request.h"

struct remote_ranges;

/* Nothing is asked yet. */
tundish_status remote_ranges_open(struct remote *remote, const char *name,
                                  struct remote_ranges **ret_ranges);
void remote_ranges_close(struct remote_ranges *ranges); /* accepts NULL; nobody reads it */

/* Ask for its size and ETag, unless they are known. */
tundish_status remote_ranges_identify(struct remote_ranges *ranges,
                                      struct object_identity *ret_identity);

/* The same where the last bytes are read next, as of a file that ends with what is in it: they come
 * with the answer, and are kept until they are forgotten. */
tundish_status remote_ranges_identify_by_tail(struct remote_ranges *ranges,
                                              struct object_identity *ret_identity);
void remote_ranges_forget_tail(struct remote_ranges *ranges);

/* Bytes that it has; waits for them. It is identified. */
tundish_status remote_ranges_read(struct remote_ranges *ranges, void *to, size_t bytes,
                                  uint64_t offset);

/* They will be read as one. Returns at once. */
void remote_ranges_expect(struct remote_ranges *ranges, size_t bytes, uint64_t offset);

/* All of an object in memory, as a file without a name. The caller closes it. */
tundish_status remote_copy(struct remote *remote, const char *name, int *ret_descriptor);

#endif
