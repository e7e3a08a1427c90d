/* boards.h - a board of shards for each stream that is evaluated, for the readers of all nodes. */
#ifndef SESSION_BOARDS_H
#define SESSION_BOARDS_H

#include "pipeline/pipeline.h"
#include "session/evaluation/shards.h"

struct boards;

/* They serve other nodes until they are closed, which must be after link_leave. */
struct boards *boards_open(const struct spec_file *file, struct link *link);
void boards_close(struct boards *boards); /* accepts NULL */

/* NULL: the stream is not evaluated. */
struct shards *boards_find(const struct boards *boards, const struct spec_stream *stream);

#endif
