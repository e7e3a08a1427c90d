/* shards_peer.c - readers of a node without the tracker: requests to rank 0's, and its answers.
 */
#include <stdlib.h>

#include "core/clock.h"
#include "core/memory.h"
#include "session/evaluation/shards_private.h"

static const int64_t JOIN_NS = 30000000000;
/* The pause after WAIT, which is said only at the beginning. Later an answer comes when there is
 * one; a reader that has waited for so long asks again, so that rank 0 looks who is lost. */
static const int64_t WAIT_NS = 100000000, ASK_AGAIN_NS = 1000000000;
/* A node that has left the job still answers for a while before it ends. */
static const int64_t ANSWER_NS = 5000000000;

/* The lock is held, here and below. */
static struct peer_reader *
find_peer_reader(struct shards *shards, uint32_t reader)
{
    struct peer_reader *at = shards->peer_readers;

    must_hold(&shards->lock);
    while (at != NULL && at->reader != reader)
        at = at->next;
    return at;
}

static void
add_peer_reader(struct shards *shards, uint32_t reader)
{
    struct peer_reader *added = tnd_zalloc(1, sizeof *added);

    must_hold(&shards->lock);
    added->reader = reader;
    added->next = shards->peer_readers;
    shards->peer_readers = added;
}

static void
drop_peer_reader(struct shards *shards, uint32_t reader)
{
    for (struct peer_reader **at = &shards->peer_readers; *at != NULL; at = &(*at)->next)
        if ((*at)->reader == reader) {
            struct peer_reader *dropped = *at;

            *at = dropped->next;
            free(dropped);
            return;
        }
}

struct joining {
    struct shards *shards;
    struct shards_membership *membership;
};

static bool
has_joined(struct link *link, void *context)
{
    struct joining *joining = context;
    const struct peer_reader *reader;
    bool joined;

    (void)link;
    tnd_lock_take(&joining->shards->lock);
    reader = find_peer_reader(joining->shards, joining->membership->reader);
    joined = reader != NULL && reader->has_joined;
    if (joined) {
        joining->membership->epoch = reader->epoch;
        joining->membership->done = reader->done;
    }
    tnd_lock_release(&joining->shards->lock);
    return joined;
}

tundish_status
shards_peer_join(struct shards *shards, struct shards_membership *membership)
{
    struct shards_message message = { .kind = SHARDS_JOIN, .reader = membership->reader };
    struct joining joining = { .shards = shards, .membership = membership };
    tundish_status status;

    tnd_lock_take(&shards->lock);
    add_peer_reader(shards, membership->reader);
    tnd_lock_release(&shards->lock);
    shards_send(shards, 0, &message);
    status = link_wait_for_one(shards->link, 0, has_joined, &joining, JOIN_NS, NULL);
    if (status != TUNDISH_OK) {
        shards_peer_leave(shards, membership->reader);
        return tnd_fail_while(status, "asking rank 0 for shards");
    }
    return TUNDISH_OK;
}

static enum shards_next
lost(const struct shards *shards)
{
    char name[160];

    link_name(shards->link, 0, name, sizeof name);
    (void)tnd_fail(TUNDISH_E_PEER_LOST, "%s is lost, which gave out the shards of the evaluation",
                   name);
    return SHARDS_LOST;
}

/* No answer will come. */
static bool
is_hopeless(struct shards *shards, int64_t asked_ns, int64_t now_ns)
{
    struct link *link = shards->link;

    return link_is_lost(link, 0) || link_is_lost(link, link_rank(link)) ||
           (link_has_left(link, 0) && now_ns - asked_ns > ANSWER_NS);
}

/* An answer for an epoch that the reader has left since. Does it name a shard? That is for others.
 */
static bool
take_late_answer(struct peer_reader *asker, uint64_t epoch, struct shards_message *ret_letter)
{
    if (asker == NULL || !asker->is_answered || asker->epoch == epoch)
        return false;
    asker->is_answered = false;
    asker->again_ns = 0;
    *ret_letter = (struct shards_message){ .kind = SHARDS_GIVE_BACK,
                                           .reader = asker->reader,
                                           .epoch = asker->epoch,
                                           .shard = asker->shard };
    return asker->answer == SHARDS_TAKEN;
}

/* True: this is to be sent. The answer for an epoch that the reader has left will find it asking
 * for another. */
static bool
ask(struct peer_reader *asker, uint64_t epoch, int64_t now_ns, struct shards_message *ret_letter)
{
    if (asker->is_asking && asker->epoch != epoch) {
        asker->is_asking = false;
        asker->again_ns = 0;
    }
    if (now_ns < asker->again_ns)
        return false;
    if (!asker->is_asking) {
        asker->is_asking = true;
        asker->ask++;
        asker->epoch = epoch;
        asker->asked_ns = now_ns;
    }
    asker->again_ns = now_ns + ASK_AGAIN_NS;
    *ret_letter = (struct shards_message){
        .kind = SHARDS_TAKE, .reader = asker->reader, .epoch = epoch, .ask = asker->ask
    };
    return true;
}

enum shards_next
shards_peer_take(struct shards *shards, uint32_t reader, uint64_t epoch, int64_t now_ns,
                 struct shards_given *ret_given)
{
    struct shards_message letter, late;
    struct peer_reader *asker;
    enum shards_next next = SHARDS_WAIT;
    int64_t asked_ns = now_ns;
    bool asks = false, is_late;

    tnd_lock_take(&shards->lock);
    asker = find_peer_reader(shards, reader);
    is_late = take_late_answer(asker, epoch, &late);
    if (asker != NULL && asker->is_answered) {
        next = asker->answer;
        *ret_given = (struct shards_given){ .shard = asker->shard, .epoch = asker->begin };
        asker->is_answered = false;
        asker->again_ns = 0; /* ask for the next one at once */
    } else if (asker != NULL) {
        asks = ask(asker, epoch, now_ns, &letter);
        asked_ns = asker->is_asking ? asker->asked_ns : now_ns;
    }
    tnd_lock_release(&shards->lock);
    if (is_late)
        shards_send(shards, 0, &late);
    if (asks)
        shards_send(shards, 0, &letter);
    return next == SHARDS_WAIT && is_hopeless(shards, asked_ns, now_ns) ? lost(shards) : next;
}

/* Tell rank 0 about a shard that the reader has. */
static void
tell(struct shards *shards, enum shards_message_kind kind, uint32_t reader, uint64_t epoch,
     uint32_t shard)
{
    struct shards_message message = {
        .kind = kind, .reader = reader, .epoch = epoch, .shard = shard
    };

    shards_send(shards, 0, &message);
}

void
shards_peer_finish(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard)
{
    tell(shards, SHARDS_FINISH, reader, epoch, shard);
}

void
shards_peer_wait_beside(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard)
{
    tell(shards, SHARDS_WAIT_BESIDE, reader, epoch, shard);
}

void
shards_peer_give_back(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard)
{
    tell(shards, SHARDS_GIVE_BACK, reader, epoch, shard);
}

void
shards_peer_take_back(struct shards *shards, uint32_t reader, uint64_t epoch, uint32_t shard,
                      bool is_out)
{
    struct shards_message message = {
        .kind = SHARDS_TAKE_BACK, .reader = reader, .epoch = epoch, .shard = shard, .answer = is_out
    };

    shards_peer_ask_no_more(shards, reader);
    shards_send(shards, 0, &message);
}

/* An answer that is still to come is then unwanted. */
void
shards_peer_ask_no_more(struct shards *shards, uint32_t reader)
{
    struct peer_reader *asker;
    bool has_one = false;
    uint64_t epoch = 0;
    uint32_t shard = 0;

    tnd_lock_take(&shards->lock);
    asker = find_peer_reader(shards, reader);
    if (asker != NULL) {
        has_one = asker->is_answered && asker->answer == SHARDS_TAKEN;
        shard = asker->shard;
        epoch = asker->epoch;
        asker->is_asking = asker->is_answered = false;
        asker->again_ns = 0;
    }
    tnd_lock_release(&shards->lock);
    if (has_one)
        shards_peer_give_back(shards, reader, epoch, shard);
}

void
shards_peer_leave(struct shards *shards, uint32_t reader)
{
    struct shards_message message = { .kind = SHARDS_LEAVE, .reader = reader };

    tnd_lock_take(&shards->lock);
    drop_peer_reader(shards, reader);
    tnd_lock_release(&shards->lock);
    shards_send(shards, 0, &message);
}

static void
take_answer(struct peer_reader *reader, const struct shards_message *message)
{
    reader->is_asking = false;
    reader->is_answered = message->answer != SHARDS_WAIT;
    reader->again_ns = tnd_clock_ns() + WAIT_NS;
    reader->answer = message->answer == SHARDS_TAKEN ? SHARDS_TAKEN : SHARDS_OVER;
    reader->shard = message->shard;
    reader->begin = message->begin;
}

void
shards_peer_hear(struct shards *shards, const struct shards_message *message)
{
    struct peer_reader *reader;
    bool is_unwanted = false;

    tnd_lock_take(&shards->lock);
    if (shards->count == 0)
        shards->count = message->count;
    reader = find_peer_reader(shards, message->reader);
    if (message->kind == SHARDS_WANTED) {
        shards->wanted_ns = tnd_clock_ns();
    } else if (reader != NULL && message->kind == SHARDS_JOINED) {
        reader->has_joined = true;
        reader->epoch = message->epoch;
        reader->done = message->answer;
    } else if (message->kind == SHARDS_ANSWER) {
        is_unwanted = reader == NULL || !reader->is_asking || reader->ask != message->ask;
        if (!is_unwanted)
            take_answer(reader, message);
    }
    tnd_lock_release(&shards->lock);
    if (is_unwanted && message->answer == SHARDS_TAKEN)
        shards_peer_give_back(shards, message->reader, message->epoch, message->shard);
}

void
shards_peer_close(struct shards *shards)
{
    while (shards->peer_readers != NULL)
        drop_peer_reader(shards, shards->peer_readers->reader);
}
