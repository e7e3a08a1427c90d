/* shard_trackers.c - the trackers of all streams that are evaluated. */
#include "session/evaluation/shard_trackers.h"

#include <stdlib.h>

#include "core/memory.h"

/* For evaluation_shards: auto. Readers that come within this time count for the number of
 * shards. */
static const int64_t READERS_GATHER_NS = 500000000;

struct shard_trackers {
    const struct spec_file *file;
    struct link *link;
    uint32_t count;
    struct shards *shards[]; /* by stream; NULL: it is not evaluated */
};

static void
hear_message(void *user, const struct link_message *received)
{
    struct shard_trackers *trackers = user;

    if (received->key.stream < trackers->count && trackers->shards[received->key.stream] != NULL)
        shards_hear(trackers->shards[received->key.stream], received);
    free(received->bytes);
}

struct shard_trackers *
shard_trackers_open(const struct spec_file *file, struct link *link)
{
    struct shard_trackers *trackers =
        tnd_zalloc(1, sizeof *trackers + file->stream_count * sizeof *trackers->shards);

    trackers->file = file;
    trackers->count = file->stream_count;
    trackers->link = link;
    for (uint32_t i = 0; i < file->stream_count; i++) {
        int32_t count = file->streams[i].distribute.evaluation_shards;

        if (count != 0)
            trackers->shards[i] =
                shards_open(count > 0 ? (uint32_t)count : 0, READERS_GATHER_NS, link, i);
    }
    link_open_mailbox(link, LINK_SHARDS, hear_message, trackers);
    return trackers;
}

void
shard_trackers_close(struct shard_trackers *trackers)
{
    if (trackers == NULL)
        return;
    /* First, so that no message reaches a tracker that is being closed. */
    link_open_mailbox(trackers->link, LINK_SHARDS, NULL, NULL);
    for (uint32_t i = 0; i < trackers->count; i++)
        shards_close(trackers->shards[i]);
    free(trackers);
}

struct shards *
shard_trackers_find(const struct shard_trackers *trackers, const struct spec_stream *stream)
{
    return trackers->shards[stream - trackers->file->streams];
}
