/* shards.c - a tracker of shards. */
#include "session/evaluation/shards_private.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"

enum { SHARDS_PER_READER = 5 };
static const int64_t LOOK_NS = 20000000; /* how often lost nodes are looked for */

#define FREE 0U
#define DONE UINT32_MAX

static void
set_count(struct shards *shards, uint32_t count)
{
    shards->count = count;
    shards->owner = tnd_zalloc(count, sizeof *shards->owner);
    shards->is_held = tnd_zalloc(count, sizeof *shards->is_held);
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
    shards_peer_close(shards);
    pthread_mutex_destroy(&shards->lock);
    free(shards->owner);
    free(shards->is_held);
    free(shards->readers);
    free(shards);
}

/* The lock is held, here and below. Where the reader is among the others, or would be. */
static uint32_t
place_of(const struct shards *shards, uint32_t reader)
{
    uint32_t from = 0, to = shards->reader_count;

    while (from < to) {
        uint32_t middle = from + (to - from) / 2;

        if (shards->readers[middle].number < reader)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static struct shards_reader *
find_reader(struct shards *shards, uint32_t reader)
{
    uint32_t at = place_of(shards, reader);

    return at < shards->reader_count && shards->readers[at].number == reader ? &shards->readers[at]
                                                                             : NULL;
}

static void
set_waiting(struct shards *shards, struct shards_reader *reader, bool is_waiting)
{
    shards->waiting_count += is_waiting;
    shards->waiting_count -= reader->is_waiting;
    reader->is_waiting = is_waiting;
}

/* Rank 0 hears of thousands of readers: those that have gone on are counted, not looked for. */
static void
set_epoch(struct shards *shards, struct shards_reader *reader, uint64_t epoch)
{
    shards->ahead_count += epoch > shards->epoch;
    shards->ahead_count -= reader->epoch > shards->epoch;
    reader->epoch = epoch;
}

static void
add_reader(struct shards *shards, uint32_t reader, int64_t now_ns)
{
    uint32_t at = place_of(shards, reader);

    if (find_reader(shards, reader) != NULL)
        return;
    if (shards->counted_at_ns < 0)
        shards->counted_at_ns = now_ns + shards->gather_ns;
    shards->readers =
        tnd_realloc(shards->readers, shards->reader_count + 1, sizeof *shards->readers);
    memmove(shards->readers + at + 1, shards->readers + at,
            (shards->reader_count - at) * sizeof *shards->readers);
    shards->readers[at] = (struct shards_reader){ .number = reader, .epoch = shards->epoch };
    shards->reader_count++;
}

static void
let_go(struct shards *shards, uint32_t shard)
{
    shards->done -= shards->is_held[shard];
    shards->is_held[shard] = false;
}

static void
free_shard(struct shards *shards, uint32_t shard)
{
    let_go(shards, shard);
    shards->owner[shard] = FREE;
    shards->first_free = shard < shards->first_free ? shard : shards->first_free;
}

static void
drop_reader(struct shards *shards, uint32_t reader)
{
    struct shards_reader *dropped = find_reader(shards, reader);

    for (uint32_t i = 0; i < shards->count; i++)
        if (shards->owner[i] == reader)
            free_shard(shards, i);
    if (dropped == NULL)
        return;
    set_waiting(shards, dropped, false);
    set_epoch(shards, dropped, shards->epoch);
    shards->reader_count--;
    memmove(dropped, dropped + 1,
            (size_t)(shards->readers + shards->reader_count - dropped) * sizeof *dropped);
}

static bool
is_of_gone_node(const struct shards *shards, uint32_t reader)
{
    uint32_t rank = reader >> SHARDS_NODE_SHIFT;

    return shards->link != NULL && rank != 0 &&
           (link_is_lost(shards->link, rank) || link_has_left(shards->link, rank));
}

/* The shards of a lost node become free. */
static void
drop_gone(struct shards *shards)
{
    int64_t now_ns = tnd_clock_ns();

    if (now_ns - shards->looked_ns < LOOK_NS)
        return;
    shards->looked_ns = now_ns;
    for (uint32_t i = shards->reader_count; i-- > 0;)
        if (is_of_gone_node(shards, shards->readers[i].number))
            drop_reader(shards, shards->readers[i].number);
}

/* All shards are done, or all readers have left the epoch and none would do the rest. */
static bool
is_over(const struct shards *shards)
{
    return shards->done == shards->count || shards->ahead_count == shards->reader_count;
}

static void
next_epoch(struct shards *shards)
{
    shards->epoch++;
    shards->ahead_count = 0;
    for (uint32_t i = 0; i < shards->reader_count; i++)
        shards->ahead_count += shards->readers[i].epoch > shards->epoch;
    for (uint32_t i = 0; i < shards->count; i++)
        free_shard(shards, i);
    shards->done = 0;
}

static bool
has_free(struct shards *shards)
{
    while (shards->first_free < shards->count && shards->owner[shards->first_free] != FREE)
        shards->first_free++;
    return shards->first_free < shards->count;
}

static enum shards_next
take_free(struct shards *shards, const struct shards_reader *reader, uint32_t *ret_shard)
{
    if (reader->epoch < shards->epoch)
        return SHARDS_OVER;
    if (reader->epoch > shards->epoch)
        return SHARDS_WAIT;
    if (shards->done == shards->count)
        return SHARDS_OVER;
    if (!has_free(shards))
        return SHARDS_WAIT;
    *ret_shard = shards->first_free;
    shards->owner[shards->first_free++] = reader->number;
    return SHARDS_TAKEN;
}

static enum shards_next
take_known(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t *ret_shard)
{
    struct shards_reader *asker;

    if (epoch < shards->epoch)
        return SHARDS_OVER;
    drop_gone(shards);
    asker = find_reader(shards, reader);
    if (asker == NULL)
        return SHARDS_WAIT;
    set_epoch(shards, asker, epoch);
    if (epoch > shards->epoch && is_over(shards))
        next_epoch(shards);
    return take_free(shards, asker, ret_shard);
}

static enum shards_next
take_shard(struct shards *shards, uint32_t reader, uint64_t epoch, int64_t now_ns,
           uint32_t *ret_shard)
{
    if (shards->count == 0 && now_ns >= shards->counted_at_ns)
        set_count(shards, shards->reader_count * SHARDS_PER_READER);
    return shards->count > 0 ? take_known(shards, reader, epoch, ret_shard) : SHARDS_WAIT;
}

static void
answer(struct shards *shards, struct shards_reader *reader, enum shards_next next, uint32_t shard)
{
    struct shards_message message = { .kind = SHARDS_ANSWER,
                                      .reader = reader->number,
                                      .shard = shard,
                                      .count = shards->count,
                                      .epoch = reader->epoch,
                                      .answer = next,
                                      .ask = reader->ask };

    set_waiting(shards, reader, false);
    shards_send(shards, reader->number >> SHARDS_NODE_SHIFT, &message);
}

/* Something has changed: those whose answer was not known yet may have it now. */
static void
answer_waiting(struct shards *shards)
{
    bool waits_for_next = false;
    uint32_t shard = 0;

    if (shards->waiting_count == 0 || shards->count == 0 || (!is_over(shards) && !has_free(shards)))
        return;
    for (uint32_t i = 0; i < shards->reader_count; i++)
        waits_for_next |= shards->readers[i].is_waiting && shards->readers[i].epoch > shards->epoch;
    if (waits_for_next && is_over(shards))
        next_epoch(shards);
    for (uint32_t i = 0; i < shards->reader_count; i++) {
        struct shards_reader *reader = &shards->readers[i];
        enum shards_next next = SHARDS_WAIT;

        if (reader->is_waiting)
            next = take_free(shards, reader, &shard);
        if (next != SHARDS_WAIT)
            answer(shards, reader, next, shard);
    }
}

static bool
has_shard(const struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard)
{
    return epoch == shards->epoch && shard < shards->count && shards->owner[shard] == reader;
}

static void
finish_shard(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard)
{
    /* A message may be late, or another node's may be hostile. Only the owner can finish a shard,
     * and only in this epoch. */
    if (!has_shard(shards, reader, epoch, shard))
        return;
    let_go(shards, shard);
    shards->owner[shard] = DONE;
    shards->done++;
}

static void
wait_beside(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard)
{
    if (!has_shard(shards, reader, epoch, shard) || shards->is_held[shard])
        return;
    shards->is_held[shard] = true;
    shards->done++;
}

static void
give_back(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard)
{
    if (has_shard(shards, reader, epoch, shard))
        free_shard(shards, shard);
}

tundish_status
shards_join(struct shards *shards, int64_t now_ns, struct shards_membership *ret_membership)
{
    uint32_t reader = shards->link != NULL ? link_rank(shards->link) << SHARDS_NODE_SHIFT : 0;

    pthread_mutex_lock(&shards->lock);
    reader |= ++shards->last_reader;
    if (!shards_are_of_peer(shards))
        add_reader(shards, reader, now_ns);
    *ret_membership = (struct shards_membership){ reader, shards->done, shards->epoch };
    pthread_mutex_unlock(&shards->lock);
    return shards_are_of_peer(shards) ? shards_peer_join(shards, ret_membership) : TUNDISH_OK;
}

void
shards_leave(struct shards *shards, uint32_t reader)
{
    if (shards_are_of_peer(shards)) {
        shards_peer_leave(shards, reader);
        return;
    }
    pthread_mutex_lock(&shards->lock);
    drop_reader(shards, reader);
    answer_waiting(shards);
    pthread_mutex_unlock(&shards->lock);
}

enum shards_next
shards_take(struct shards *shards, uint32_t reader, uint64_t epoch, int64_t now_ns,
            uint32_t *ret_shard)
{
    enum shards_next next;

    if (shards_are_of_peer(shards))
        return shards_peer_take(shards, reader, epoch, now_ns, ret_shard);
    pthread_mutex_lock(&shards->lock);
    next = take_shard(shards, reader, epoch, now_ns, ret_shard);
    answer_waiting(shards);
    pthread_mutex_unlock(&shards->lock);
    return next;
}

typedef void shard_fn(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard);

/* Say it where the shards are kept: on this node, or on the peer that deals them. */
static void
say_of_shard(struct shards *shards, shard_fn *here, shard_fn *at_peer, uint32_t reader,
             uint64_t epoch, uint32_t shard)
{
    if (shards_are_of_peer(shards)) {
        at_peer(shards, reader, epoch, shard);
        return;
    }
    pthread_mutex_lock(&shards->lock);
    here(shards, reader, epoch, shard);
    answer_waiting(shards);
    pthread_mutex_unlock(&shards->lock);
}

void
shards_finish(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard)
{
    say_of_shard(shards, finish_shard, shards_peer_finish, reader, epoch, shard);
}

void
shards_wait_beside(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard)
{
    say_of_shard(shards, wait_beside, shards_peer_wait_beside, reader, epoch, shard);
}

void
shards_give_back(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard)
{
    say_of_shard(shards, give_back, shards_peer_give_back, reader, epoch, shard);
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
shards_send(struct shards *shards, uint32_t to, const struct shards_message *message)
{
    struct link_key key = { .topic = LINK_SHARDS, .stream = shards->stream };

    link_send_by_tree(shards->link, to, &key, message, sizeof *message);
}

/* A request whose answer is not known is answered when it is. Until all readers are counted, that
 * would be when nobody calls: ask again. One that comes again was answered, or will be. */
static void
serve_take(struct shards *shards, const struct shards_message *message, int64_t now_ns)
{
    struct shards_reader *reader = find_reader(shards, message->reader);
    enum shards_next next;
    uint32_t shard = 0;

    if (reader == NULL || (reader->ask == message->ask && !reader->is_waiting))
        return;
    reader->ask = message->ask;
    next = take_shard(shards, message->reader, message->epoch, now_ns, &shard);
    reader = find_reader(shards, message->reader); /* others may have been dropped */
    if (reader == NULL)
        return;
    set_epoch(shards, reader, message->epoch);
    set_waiting(shards, reader, true);
    if (next != SHARDS_WAIT || shards->count == 0)
        answer(shards, reader, next, shard);
}

static void
serve_request(struct shards *shards, uint32_t from, struct shards_message message)
{
    int64_t now_ns = tnd_clock_ns();

    pthread_mutex_lock(&shards->lock);
    if (message.kind == SHARDS_JOIN) {
        add_reader(shards, message.reader, now_ns);
        shards_send(shards, from,
                    &(struct shards_message){ .kind = SHARDS_JOINED,
                                              .reader = message.reader,
                                              .count = shards->count,
                                              .epoch = shards->epoch,
                                              .answer = shards->done });
    } else if (message.kind == SHARDS_TAKE) {
        serve_take(shards, &message, now_ns);
    } else if (message.kind == SHARDS_FINISH) {
        finish_shard(shards, message.reader, message.epoch, message.shard);
    } else if (message.kind == SHARDS_WAIT_BESIDE) {
        wait_beside(shards, message.reader, message.epoch, message.shard);
    } else if (message.kind == SHARDS_GIVE_BACK) {
        give_back(shards, message.reader, message.epoch, message.shard);
    } else if (message.kind == SHARDS_LEAVE) {
        drop_reader(shards, message.reader);
    }
    answer_waiting(shards);
    pthread_mutex_unlock(&shards->lock);
}

void
shards_hear(struct shards *shards, const struct link_message *received)
{
    struct shards_message message;

    if (received->byte_count != sizeof message)
        return;
    memcpy(&message, received->bytes, sizeof message);
    if (shards_are_of_peer(shards))
        shards_peer_hear(shards, &message);
    /* A node speaks only for its own readers. */
    else if (message.reader >> SHARDS_NODE_SHIFT == received->from &&
             !link_is_lost(shards->link, received->from))
        serve_request(shards, received->from, message);
}
