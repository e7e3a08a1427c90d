/* boards.c - which stream has which board. */
#include "session/evaluation/boards.h"

#include <stdlib.h>

#include "core/memory.h"

/* evaluation_shards: auto: readers that come within this are there from the start. */
static const int64_t READERS_GATHER_NS = 500000000;

struct boards {
    const struct spec_file *file;
    struct link *link;
    uint32_t count;
    struct shards *shards[]; /* by stream; NULL: it is not evaluated */
};

static void
hear(void *user, const struct link_message *received)
{
    struct boards *boards = user;

    if (received->key.stream < boards->count && boards->shards[received->key.stream] != NULL)
        shards_hear(boards->shards[received->key.stream], received);
    free(received->bytes);
}

struct boards *
boards_open(const struct spec_file *file, struct link *link)
{
    struct boards *boards =
        tnd_zalloc(1, sizeof *boards + file->stream_count * sizeof *boards->shards);

    boards->file = file;
    boards->count = file->stream_count;
    boards->link = link;
    for (uint32_t i = 0; i < file->stream_count; i++) {
        int32_t count = file->streams[i].distribute.evaluation_shards;

        if (count != 0)
            boards->shards[i] =
                shards_open(count > 0 ? (uint32_t)count : 0, READERS_GATHER_NS, link, i);
    }
    link_open_mailbox(link, LINK_SHARDS, hear, boards);
    return boards;
}

void
boards_close(struct boards *boards)
{
    if (boards == NULL)
        return;
    link_open_mailbox(boards->link, LINK_SHARDS, NULL, NULL);
    for (uint32_t i = 0; i < boards->count; i++)
        shards_close(boards->shards[i]);
    free(boards);
}

struct shards *
boards_find(const struct boards *boards, const struct spec_stream *stream)
{
    return boards->shards[stream - boards->file->streams];
}
