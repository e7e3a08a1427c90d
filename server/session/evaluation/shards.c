/* shards.c - a tracker of shards. */
#include "session/evaluation/shards_private.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"

enum { SHARDS_PER_READER = 5 };
static const int64_t LOOK_NS = 20000000; /* how often lost nodes are looked for */
/* How often other nodes are told that shards are wanted, and how long that holds there. */
static const int64_t TELL_WANTED_NS = 500000000, WANTED_NS = 2000000000;

#define FREE 0U
#define DONE UINT32_MAX

static void
set_count(struct shards *shards, uint32_t count)
{
    must_in_debug(count > 0 && shards->owner == NULL);
    shards->count = count;
    shards->owner = tnd_zalloc(count, sizeof *shards->owner);
    shards->is_held = tnd_zalloc(count, sizeof *shards->is_held);
}

struct shards *
shards_open(uint32_t count, int64_t gather_ns, struct link *link, uint32_t stream)
{
    struct shards *shards = tnd_zalloc(1, sizeof *shards);

    pthread_mutex_init(&shards->lock.mutex, NULL);
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
    pthread_mutex_destroy(&shards->lock.mutex);
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

    must_hold(&shards->lock);
    return at < shards->reader_count && shards->readers[at].number == reader ? &shards->readers[at]
                                                                             : NULL;
}

static void
set_waiting(struct shards *shards, struct shards_reader *reader, bool is_waiting)
{
    must_in_debug(shards->waiting_count >= reader->is_waiting);
    must_hold(&shards->lock);
    shards->waiting_count += is_waiting;
    shards->waiting_count -= reader->is_waiting;
    reader->is_waiting = is_waiting;
}

static void
set_wants(struct shards *shards, struct shards_reader *reader, bool wants)
{
    must_in_debug(shards->wants_count >= reader->wants);
    must_hold(&shards->lock);
    shards->wants_count += wants;
    shards->wants_count -= reader->wants;
    reader->wants = wants;
}

static bool
is_in(const struct shards *shards, const struct shards_reader *reader)
{
    return reader->has_asked && reader->epoch == shards->epoch;
}

/* Rank 0 hears of thousands of readers: those that are in the epoch are counted, not looked for. */
static void
set_asked(struct shards *shards, struct shards_reader *reader, uint64_t epoch, bool has_asked)
{
    must_in_debug(shards->in_count >= is_in(shards, reader));
    must_hold(&shards->lock);
    shards->in_count -= is_in(shards, reader);
    reader->epoch = epoch;
    reader->has_asked = has_asked;
    shards->in_count += is_in(shards, reader);
}

static void
add_reader(struct shards *shards, uint32_t reader, int64_t now_ns)
{
    uint32_t at = place_of(shards, reader);

    must_hold(&shards->lock);
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
    must_hold(&shards->lock);
    must_in_debug(shard < shards->count && shards->done >= shards->is_held[shard]);
    shards->done -= shards->is_held[shard];
    shards->is_held[shard] = false;
}

static void
free_shard(struct shards *shards, uint32_t shard)
{
    must_hold(&shards->lock);
    let_go(shards, shard);
    shards->owner[shard] = FREE;
    shards->first_free = shard < shards->first_free ? shard : shards->first_free;
}

static void
drop_reader(struct shards *shards, uint32_t reader)
{
    struct shards_reader *dropped = find_reader(shards, reader);

    must_hold(&shards->lock);
    for (uint32_t i = 0; i < shards->count; i++)
        if (shards->owner[i] == reader)
            free_shard(shards, i);
    if (dropped == NULL)
        return;
    set_waiting(shards, dropped, false);
    set_wants(shards, dropped, false);
    set_asked(shards, dropped, shards->epoch, false);
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

    must_hold(&shards->lock);
    if (now_ns - shards->looked_ns < LOOK_NS)
        return;
    shards->looked_ns = now_ns;
    for (uint32_t i = shards->reader_count; i-- > 0;)
        if (is_of_gone_node(shards, shards->readers[i].number))
            drop_reader(shards, shards->readers[i].number);
}

/* All shards are done, or no reader is in the epoch that would do the rest. */
static bool
is_over(const struct shards *shards)
{
    return shards->done == shards->count || shards->in_count == 0;
}

static void
next_epoch(struct shards *shards)
{
    must_in_debug(is_over(shards));
    must_hold(&shards->lock);
    shards->epoch++;
    shards->in_count = 0;
    for (uint32_t i = 0; i < shards->reader_count; i++)
        shards->in_count += is_in(shards, &shards->readers[i]);
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

/* The epoch that a reader begins with which comes now. */
static uint64_t
begin_epoch(const struct shards *shards)
{
    must_hold(&shards->lock);
    return shards->epoch + (shards->count > 0 && shards->done == shards->count);
}

static enum shards_next
take_free(struct shards *shards, struct shards_reader *reader, struct shards_given *ret_given)
{
    bool is_over = reader->epoch < shards->epoch ||
                   (reader->epoch == shards->epoch && shards->done == shards->count);
    bool waits = !is_over && (reader->epoch > shards->epoch || !has_free(shards));

    must_hold(&shards->lock);
    set_wants(shards, reader, waits);
    if (waits)
        return SHARDS_WAIT;
    *ret_given = (struct shards_given){ .epoch = begin_epoch(shards) };
    if (is_over)
        return SHARDS_OVER;
    must_in_debug(shards->owner[shards->first_free] == FREE);
    ret_given->shard = shards->first_free;
    shards->owner[shards->first_free++] = reader->number;
    return SHARDS_TAKEN;
}

/* Tell the nodes whose readers have shards that others want one. */
static void
tell_wanted(struct shards *shards, int64_t now_ns)
{
    const struct shards_message message = { .kind = SHARDS_WANTED, .count = shards->count };
    uint32_t last_rank = 0;

    must_hold(&shards->lock);
    if (shards->link == NULL || shards->wants_count == 0 ||
        now_ns - shards->told_wanted_ns < TELL_WANTED_NS)
        return;
    shards->told_wanted_ns = now_ns;
    for (uint32_t i = 0; i < shards->count; i++) {
        uint32_t rank = shards->owner[i] == DONE ? 0 : shards->owner[i] >> SHARDS_NODE_SHIFT;

        if (rank != 0 && rank != last_rank)
            shards_send(shards, rank, &message);
        last_rank = rank != 0 ? rank : last_rank;
    }
}

static enum shards_next
take_shard(struct shards *shards, uint32_t reader, uint64_t epoch, int64_t now_ns,
           struct shards_given *ret_given)
{
    struct shards_reader *asker;
    enum shards_next next;

    must_hold(&shards->lock);
    if (shards->count == 0 && now_ns >= shards->counted_at_ns)
        set_count(shards, shards->reader_count * SHARDS_PER_READER);
    drop_gone(shards);
    asker = find_reader(shards, reader);
    if (asker == NULL)
        return SHARDS_WAIT;
    set_asked(shards, asker, epoch, true);
    if (shards->count == 0)
        return SHARDS_WAIT;
    if (epoch > shards->epoch && is_over(shards))
        next_epoch(shards);
    next = take_free(shards, asker, ret_given);
    tell_wanted(shards, now_ns);
    return next;
}

static void
answer(struct shards *shards, struct shards_reader *reader, enum shards_next next,
       const struct shards_given *given)
{
    struct shards_message message = { .kind = SHARDS_ANSWER,
                                      .reader = reader->number,
                                      .shard = given->shard,
                                      .count = shards->count,
                                      .epoch = reader->epoch,
                                      .begin = given->epoch,
                                      .answer = next,
                                      .ask = reader->ask };

    must_hold(&shards->lock);
    set_waiting(shards, reader, false);
    shards_send(shards, reader->number >> SHARDS_NODE_SHIFT, &message);
}

/* Something has changed: those whose answer was not known yet may have it now. */
static void
answer_waiting(struct shards *shards)
{
    bool waits_for_next = false;
    struct shards_given given = { 0 };

    must_hold(&shards->lock);
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
            next = take_free(shards, reader, &given);
        if (next != SHARDS_WAIT)
            answer(shards, reader, next, &given);
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
    must_hold(&shards->lock);
    /* A message may be late, or another node's may be hostile. Only the owner can finish a shard,
     * and only in this epoch. */
    if (!has_shard(shards, reader, epoch, shard))
        return;
    let_go(shards, shard);
    must_in_debug(shards->done < shards->count);
    shards->owner[shard] = DONE;
    shards->done++;
}

static void
wait_beside(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard)
{
    must_hold(&shards->lock);
    if (!has_shard(shards, reader, epoch, shard) || shards->is_held[shard])
        return;
    shards->is_held[shard] = true;
    shards->done++;
}

static void
give_back(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard)
{
    must_hold(&shards->lock);
    if (has_shard(shards, reader, epoch, shard))
        free_shard(shards, shard);
}

/* A reader of another node asks for nothing any more, either. */
static void
take_back(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard, bool is_out)
{
    struct shards_reader *owner = find_reader(shards, reader);

    must_hold(&shards->lock);
    if (owner == NULL || !has_shard(shards, reader, epoch, shard))
        return;
    free_shard(shards, shard);
    set_waiting(shards, owner, false);
    set_wants(shards, owner, false);
    if (is_out)
        set_asked(shards, owner, owner->epoch, false);
}

tundish_status
shards_join(struct shards *shards, int64_t now_ns, struct shards_membership *ret_membership)
{
    uint32_t reader = shards->link != NULL ? link_rank(shards->link) << SHARDS_NODE_SHIFT : 0;

    tnd_lock_take(&shards->lock);
    reader |= ++shards->last_reader;
    if (!shards_are_of_peer(shards))
        add_reader(shards, reader, now_ns);
    *ret_membership = (struct shards_membership){ reader, shards->done, shards->epoch };
    tnd_lock_release(&shards->lock);
    return shards_are_of_peer(shards) ? shards_peer_join(shards, ret_membership) : TUNDISH_OK;
}

void
shards_leave(struct shards *shards, uint32_t reader)
{
    if (shards_are_of_peer(shards)) {
        shards_peer_leave(shards, reader);
        return;
    }
    tnd_lock_take(&shards->lock);
    drop_reader(shards, reader);
    answer_waiting(shards);
    tnd_lock_release(&shards->lock);
}

enum shards_next
shards_take(struct shards *shards, uint32_t reader, uint64_t epoch, int64_t now_ns,
            struct shards_given *ret_given)
{
    enum shards_next next;

    if (shards_are_of_peer(shards))
        return shards_peer_take(shards, reader, epoch, now_ns, ret_given);
    tnd_lock_take(&shards->lock);
    next = take_shard(shards, reader, epoch, now_ns, ret_given);
    answer_waiting(shards);
    tnd_lock_release(&shards->lock);
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
    tnd_lock_take(&shards->lock);
    here(shards, reader, epoch, shard);
    answer_waiting(shards);
    tnd_lock_release(&shards->lock);
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

void
shards_take_back(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard,
                 bool is_out)
{
    if (shards_are_of_peer(shards)) {
        shards_peer_take_back(shards, reader, epoch, shard, is_out);
        return;
    }
    tnd_lock_take(&shards->lock);
    take_back(shards, reader, epoch, shard, is_out);
    answer_waiting(shards);
    tnd_lock_release(&shards->lock);
}

/* Here there is an answer as soon as it is asked for. */
void
shards_ask_no_more(struct shards *shards, uint32_t reader)
{
    if (shards_are_of_peer(shards))
        shards_peer_ask_no_more(shards, reader);
}

bool
shards_are_wanted(struct shards *shards, uint32_t reader, int64_t now_ns)
{
    const struct shards_reader *found;
    bool are;

    tnd_lock_take(&shards->lock);
    found = find_reader(shards, reader);
    if (shards_are_of_peer(shards))
        are = shards->wanted_ns != 0 && now_ns - shards->wanted_ns < WANTED_NS;
    else
        are = shards->wants_count > (found != NULL && found->wants);
    tnd_lock_release(&shards->lock);
    return are;
}

uint32_t
shards_count(struct shards *shards)
{
    uint32_t count;

    tnd_lock_take(&shards->lock);
    count = shards->count;
    tnd_lock_release(&shards->lock);
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
    struct shards_given given = { 0 };

    must_hold(&shards->lock);
    if (reader == NULL || (reader->ask == message->ask && !reader->is_waiting))
        return;
    reader->ask = message->ask;
    next = take_shard(shards, message->reader, message->epoch, now_ns, &given);
    reader = find_reader(shards, message->reader); /* others may have been dropped */
    if (reader == NULL)
        return;
    set_asked(shards, reader, message->epoch, true);
    set_waiting(shards, reader, true);
    if (next != SHARDS_WAIT || shards->count == 0)
        answer(shards, reader, next, &given);
}

static void
serve_request(struct shards *shards, uint32_t from, struct shards_message message)
{
    int64_t now_ns = tnd_clock_ns();

    tnd_lock_take(&shards->lock);
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
    } else if (message.kind == SHARDS_TAKE_BACK) {
        take_back(shards, message.reader, message.epoch, message.shard, message.answer != 0);
    } else if (message.kind == SHARDS_LEAVE) {
        drop_reader(shards, message.reader);
    }
    answer_waiting(shards);
    tnd_lock_release(&shards->lock);
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
