/* shards.c - a board of shards. */
#include "session/evaluation/shards_private.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"

enum { SHARDS_PER_READER = 5 };

#define FREE 0U
#define DONE UINT32_MAX

static void
set_count(struct shards *shards, uint32_t count)
{
    shards->count = count;
    shards->owner = tnd_zalloc(count, sizeof *shards->owner);
}

struct shards *
shards_open(uint32_t count, int64_t gather_ns, struct link *link, uint32_t stream)
{
    struct shards *shards = tnd_zalloc(1, sizeof *shards);

    pthread_mutex_init(&shards->lock, NULL);
    shards->gather_ns = gather_ns;
    shards->link = link != NULL && link_size(link) > 1 ? link : NULL;
    shards->stream = stream;
    shards->counted_at_ns = -1;
    if (count > 0)
        set_count(shards, count);
    return shards;
}

void
shards_close(struct shards *shards)
{
    if (shards == NULL)
        return;
    shards_far_close(shards);
    pthread_mutex_destroy(&shards->lock);
    free(shards->owner);
    free(shards);
}

/* The lock is held, here and below. */
static void
add_reader(struct shards *shards, int64_t now_ns, uint64_t *ret_epoch)
{
    if (shards->counted_at_ns < 0)
        shards->counted_at_ns = now_ns + shards->gather_ns;
    shards->readers++;
    *ret_epoch = shards->epoch;
}

static void
give_back(struct shards *shards, uint32_t reader)
{
    for (uint32_t i = 0; i < shards->count; i++)
        if (shards->owner[i] == reader)
            shards->owner[i] = FREE;
}

/* What readers of nodes that are gone had. */
static void
give_back_of_gone(struct shards *shards)
{
    for (uint32_t i = 0; shards->link != NULL && i < shards->count; i++) {
        uint32_t rank = shards->owner[i] >> SHARDS_NODE_SHIFT;

        if (shards->owner[i] != FREE && shards->owner[i] != DONE && rank != 0 &&
            (link_is_lost(shards->link, rank) || link_has_left(shards->link, rank)))
            shards->owner[i] = FREE;
    }
}

static void
next_epoch(struct shards *shards)
{
    shards->epoch++;
    shards->done = 0;
    for (uint32_t i = 0; i < shards->count; i++)
        shards->owner[i] = FREE;
}

static enum shards_next
take_known(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t *ret_shard)
{
    if (epoch < shards->epoch)
        return SHARDS_OVER;
    if (epoch > shards->epoch && shards->done == shards->count)
        next_epoch(shards);
    if (epoch > shards->epoch)
        return SHARDS_WAIT;
    if (shards->done == shards->count)
        return SHARDS_OVER;
    give_back_of_gone(shards);
    for (uint32_t i = 0; i < shards->count; i++)
        if (shards->owner[i] == FREE) {
            shards->owner[i] = reader;
            *ret_shard = i;
            return SHARDS_TAKEN;
        }
    return SHARDS_WAIT;
}

static enum shards_next
take(struct shards *shards, uint32_t reader, uint64_t epoch, int64_t now_ns, uint32_t *ret_shard)
{
    if (shards->count == 0 && now_ns >= shards->counted_at_ns)
        set_count(shards, shards->readers * SHARDS_PER_READER);
    return shards->count > 0 ? take_known(shards, reader, epoch, ret_shard) : SHARDS_WAIT;
}

static void
finish(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard)
{
    if (epoch != shards->epoch || shard >= shards->count || shards->owner[shard] != reader)
        return;
    shards->owner[shard] = DONE;
    shards->done++;
}

tundish_status
shards_join(struct shards *shards, int64_t now_ns, uint32_t *ret_reader, uint64_t *ret_epoch)
{
    uint32_t reader = shards->link != NULL ? link_rank(shards->link) << SHARDS_NODE_SHIFT : 0;

    pthread_mutex_lock(&shards->lock);
    *ret_reader = reader |= ++shards->last_reader;
    if (!shards_are_far(shards))
        add_reader(shards, now_ns, ret_epoch);
    pthread_mutex_unlock(&shards->lock);
    return shards_are_far(shards) ? shards_far_join(shards, reader, ret_epoch) : TUNDISH_OK;
}

void
shards_leave(struct shards *shards, uint32_t reader)
{
    if (shards_are_far(shards)) {
        shards_far_leave(shards, reader);
        return;
    }
    pthread_mutex_lock(&shards->lock);
    shards->readers--;
    give_back(shards, reader);
    pthread_mutex_unlock(&shards->lock);
}

enum shards_next
shards_take(struct shards *shards, uint32_t reader, uint64_t epoch, int64_t now_ns,
            uint32_t *ret_shard)
{
    enum shards_next next;

    if (shards_are_far(shards))
        return shards_far_take(shards, reader, epoch, now_ns, ret_shard);
    pthread_mutex_lock(&shards->lock);
    next = take(shards, reader, epoch, now_ns, ret_shard);
    pthread_mutex_unlock(&shards->lock);
    return next;
}

void
shards_finish(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard)
{
    if (shards_are_far(shards)) {
        shards_far_finish(shards, reader, epoch, shard);
        return;
    }
    pthread_mutex_lock(&shards->lock);
    finish(shards, reader, epoch, shard);
    pthread_mutex_unlock(&shards->lock);
}

uint32_t
shards_count(struct shards *shards)
{
    uint32_t count;

    pthread_mutex_lock(&shards->lock);
    count = shards->count;
    pthread_mutex_unlock(&shards->lock);
    return count;
}

void
shards_send(struct shards *shards, uint32_t to, const struct shards_letter *letter)
{
    struct link_key key = { .topic = LINK_SHARDS, .stream = shards->stream };

    link_send(shards->link, to, &key, letter, sizeof *letter);
}

static void
serve(struct shards *shards, uint32_t from, struct shards_letter letter)
{
    int64_t now_ns = tnd_clock_ns();
    bool has_answer = letter.kind == SHARDS_JOIN || letter.kind == SHARDS_TAKE;

    pthread_mutex_lock(&shards->lock);
    if (letter.kind == SHARDS_JOIN) {
        add_reader(shards, now_ns, &letter.epoch);
        letter.kind = SHARDS_JOINED;
    } else if (letter.kind == SHARDS_TAKE) {
        letter.answer = take(shards, letter.reader, letter.epoch, now_ns, &letter.shard);
        letter.kind = SHARDS_ANSWER;
    } else if (letter.kind == SHARDS_FINISH) {
        finish(shards, letter.reader, letter.epoch, letter.shard);
    } else if (letter.kind == SHARDS_LEAVE) {
        give_back(shards, letter.reader);
        shards->readers--;
    }
    letter.count = shards->count;
    pthread_mutex_unlock(&shards->lock);
    if (has_answer)
        shards_send(shards, from, &letter);
}

void
shards_hear(struct shards *shards, const struct link_mail *mail)
{
    struct shards_letter letter;

    if (mail->byte_count != sizeof letter)
        return;
    memcpy(&letter, mail->bytes, sizeof letter);
    if (shards_are_far(shards))
        shards_far_hear(shards, &letter);
    else if (letter.reader >> SHARDS_NODE_SHIFT == mail->from &&
             !link_is_lost(shards->link, mail->from))
        serve(shards, mail->from, letter);
}
