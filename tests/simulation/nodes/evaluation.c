/* evaluation.c - who has read which shard. */
#include "evaluation.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "fibers.h"
#include "session/evaluation/shard_trackers.h"

enum { EPOCHS = 2, SHARDS_A_NODE = 3 };
static const int64_t LOOK_AGAIN_NS = 5000000;   /* as session_shards.c's */
static const uint64_t SHARD_NS_MAX = 400000000; /* to read one */

struct evaluation {
    struct spec_stream stream;
    struct spec_file file;
    uint32_t nodes, shards;
    struct shard_trackers **trackers; /* by rank */
    uint32_t *readers; /* by epoch and shard: the last that has read it, and 1 more */
    bool is_doubled[EPOCHS];
};

struct evaluation *
evaluation_open(uint32_t nodes)
{
    struct evaluation *evaluation = calloc(1, sizeof *evaluation);

    evaluation->nodes = nodes;
    evaluation->shards = nodes * SHARDS_A_NODE;
    evaluation->stream.distribute.evaluation_shards = (int32_t)evaluation->shards;
    evaluation->file.streams = &evaluation->stream;
    evaluation->file.stream_count = 1;
    evaluation->trackers = calloc(nodes, sizeof *evaluation->trackers);
    evaluation->readers = calloc((size_t)EPOCHS * evaluation->shards, sizeof *evaluation->readers);
    return evaluation;
}

void
evaluation_close(struct evaluation *evaluation)
{
    free(evaluation->trackers);
    free(evaluation->readers);
    free(evaluation);
}

void
evaluation_join(struct evaluation *evaluation, struct link *link)
{
    evaluation->trackers[link_rank(link)] = shard_trackers_open(&evaluation->file, link);
}

void
evaluation_leave(struct evaluation *evaluation, uint32_t rank)
{
    shard_trackers_close(evaluation->trackers[rank]);
    evaluation->trackers[rank] = NULL;
}

static void
note_read(struct evaluation *evaluation, uint64_t epoch, uint32_t shard, struct link *link)
{
    uint32_t *reader = &evaluation->readers[epoch * evaluation->shards + shard];

    if (*reader != 0 && !link_is_lost(link, *reader - 1))
        evaluation->is_doubled[epoch] = true;
    *reader = link_rank(link) + 1;
}

static tundish_status
read_epoch(struct evaluation *evaluation, struct link *link, uint32_t reader, uint64_t epoch,
           const _Atomic int *stop)
{
    struct shards *shards =
        shard_trackers_find(evaluation->trackers[link_rank(link)], &evaluation->stream);
    enum shards_next next = SHARDS_WAIT;
    struct shards_given given;

    while (next != SHARDS_OVER && next != SHARDS_LOST && atomic_load(stop) == 0) {
        next = shards_take(shards, reader, epoch, fibers_now_ns(), &given);
        if (next == SHARDS_TAKEN) {
            fibers_sleep((int64_t)fibers_draw(SHARD_NS_MAX));
            note_read(evaluation, epoch, given.shard, link);
            shards_finish(shards, reader, epoch, given.shard);
        } else if (next == SHARDS_WAIT) {
            fibers_sleep(LOOK_AGAIN_NS);
        }
    }
    return next == SHARDS_OVER ? TUNDISH_OK : TUNDISH_E_PEER_LOST;
}

tundish_status
evaluation_run(struct evaluation *evaluation, struct link *link, const _Atomic int *stop)
{
    struct shards *shards =
        shard_trackers_find(evaluation->trackers[link_rank(link)], &evaluation->stream);
    struct shards_membership membership;
    tundish_status status = shards_join(shards, fibers_now_ns(), &membership);

    if (status != TUNDISH_OK)
        return status;
    for (uint64_t epoch = membership.epoch; status == TUNDISH_OK && epoch < EPOCHS; epoch++)
        status = read_epoch(evaluation, link, membership.reader, epoch, stop);
    shards_leave(shards, membership.reader);
    return status;
}

void
evaluation_judge(const struct evaluation *evaluation, char *ret_text, size_t text_bytes)
{
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        if (evaluation->is_doubled[epoch])
            snprintf(ret_text, text_bytes, "a shard of epoch %u was read twice", epoch);
        for (uint32_t i = 0; i < evaluation->shards; i++)
            if (evaluation->readers[epoch * evaluation->shards + i] == 0)
                snprintf(ret_text, text_bytes, "shard %u of epoch %u was not read", i, epoch);
    }
}
