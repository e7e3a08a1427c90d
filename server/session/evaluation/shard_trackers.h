/* shard_trackers.h - a tracker of shards for each stream that is evaluated, for all nodes' readers.
 */
#ifndef SESSION_EVALUATION_SHARD_TRACKERS_H
#define SESSION_EVALUATION_SHARD_TRACKERS_H

#include "session/evaluation/shards.h"
#include "spec/spec.h"

struct shard_trackers;

/* They serve other nodes until they are closed, which must be after link_leave. */
struct shard_trackers *shard_trackers_open(const struct spec_file *file, struct link *link);
void shard_trackers_close(struct shard_trackers *trackers); /* accepts NULL */

/* NULL: the stream is not evaluated. */
struct shards *shard_trackers_find(const struct shard_trackers *trackers,
                                   const struct spec_stream *stream);

#endif
