/* await.c - wait until the line has an entry for the reader, or something ends the wait. */
#include <string.h>
#include <unistd.h>

#include "client/delivery.h"
#include "core/clock.h"
#include "core/status.h"
#include "shm/stats.h"

/* The server's heartbeat comes once a second. A busy machine delays it, so silence counts only
 * after several missed beats. */
#define SILENCE_MIN_NS UINT64_C(5000000000)

/* By default. After SPINS_IN_VAIN spins in a row only one wait in WAITS_PER_SPIN spins: batches
 * take longer than that to come, and the server may have a use for the processor. */
#define SPIN_DEFAULT_NS INT64_C(20000)
enum { SPINS_IN_VAIN = 8, WAITS_PER_SPIN = 64 };

/* The server has removed this group's cursor. It sent the reason first; if that does not arrive in
 * time, a general sentence takes its place. */
tundish_status
tnd_reader_take_detachment(tundish_reader *reader)
{
    static const char text[] = "the server detached this group";
    int64_t deadline_ns = tnd_clock_deadline_ns(TND_RING_SLEEP_MAX_NS);

    while (reader->final == TUNDISH_OK && tnd_clock_left_ns(deadline_ns) > 0)
        if (tnd_reader_listen_for(reader, tnd_clock_left_ns(deadline_ns)) != TUNDISH_OK)
            break;
    if (reader->final == TUNDISH_OK)
        tnd_reader_set_final(reader, TUNDISH_E_DETACHED, text, strlen(text));
    return tnd_reader_tell_final(reader);
}

/* Take the messages that precede the next batch. OK: none of them stops the reader. */
static tundish_status
take_notices(tundish_reader *reader)
{
    struct attachment *attachment = reader->attachments;
    /* Acquire pairs with the addition in tnd_ring_notify: the server sends the message first, so it
     * is in the socket when the counter shows it. */
    uint32_t notice = atomic_load_explicit(&attachment->view.batches->notice, memory_order_acquire);

    if (notice != attachment->notice) {
        tundish_status status;

        /* Before the socket is read: a message that arrives meanwhile changes the counter again. */
        attachment->notice = notice;
        status = tnd_reader_listen(reader);
        if (status != TUNDISH_OK)
            return status;
    }
    if (reader->final != TUNDISH_OK)
        return tnd_reader_tell_final(reader);
    if (atomic_load_explicit(&tnd_own_line(attachment)->told, memory_order_acquire) != 0)
        return tnd_reader_take_detachment(reader);
    if (reader->is_lost_pending) {
        reader->is_lost_pending = false;
        return tnd_fail(TUNDISH_E_PEER_LOST, "%s", reader->lost_text);
    }
    return TUNDISH_OK;
}

static void
describe_wait(const struct attachment *attachment, struct tnd_ring_wait *wait)
{
    *wait = (struct tnd_ring_wait){
        .batches = attachment->view.batches,
        .returns = attachment->returns,
        .counter = attachment->delivery->counter(attachment),
        .position = attachment->taken,
        .notice = attachment->notice,
    };
}

/* Tell a sleeping server that this reader has nothing left. In a queue it then grants a batch. In a
 * lane without room it may then take a segment beyond the lane's usual memory: the others may
 * release their batches only after this reader has its own. */
static void
show_waiting(struct attachment *attachment)
{
    struct tnd_returns *returns = attachment->returns;
    bool is_new = false;

    if (atomic_load_explicit(&returns->waiting_since_ns, memory_order_relaxed) == 0) {
        atomic_store(&returns->waiting_since_ns, (uint64_t)tnd_clock_ns());
        is_new = true;
    }
    if (attachment->delivery->ask != NULL && attachment->delivery->ask(attachment))
        is_new = true;
    /* The stores above and this load are seq_cst, as are the server's store of server_waits and its
     * loads of these words: either we see that it sleeps, or it sees that we wait. */
    if (is_new && atomic_load(&attachment->view.batches->server_waits) != 0)
        tnd_release_wake(attachment);
}

/* Count the wait that has ended, for the server's metrics. This reader alone writes these words, so
 * a load and a store suffice. */
static void
end_waiting(struct tnd_returns *returns)
{
    uint64_t since_ns = atomic_load_explicit(&returns->waiting_since_ns, memory_order_relaxed);
    uint64_t waited_ns;
    _Atomic uint32_t *count;

    if (since_ns == 0)
        return;
    waited_ns = (uint64_t)tnd_clock_ns() - since_ns;
    count = &returns->waits[tnd_stats_bucket(waited_ns)];
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&returns->waited_ns,
                          atomic_load_explicit(&returns->waited_ns, memory_order_relaxed) +
                              waited_ns,
                          memory_order_relaxed);
    atomic_store_explicit(&returns->waiting_since_ns, 0, memory_order_relaxed);
}

static bool
is_silent(const tundish_reader *reader)
{
    uint64_t beat_ns = atomic_load_explicit(&reader->attachments->view.batches->heartbeat_ns,
                                            memory_order_relaxed);
    uint64_t now_ns = (uint64_t)tnd_clock_ns();
    uint64_t silent_ns = beat_ns < now_ns ? now_ns - beat_ns : 0;

    return silent_ns > SILENCE_MIN_NS && silent_ns > (uint64_t)reader->server_timeout_ns;
}

/* After a sleep that brought nothing: is the server still there? */
static tundish_status
check_server(tundish_reader *reader)
{
    tundish_status status = tnd_reader_listen(reader);

    if (status == TUNDISH_OK && !reader->attachments->is_gone && is_silent(reader)) {
        pthread_mutex_lock(&reader->lock);
        tnd_attachment_hang_up(reader->attachments);
        pthread_mutex_unlock(&reader->lock);
    }
    return status;
}

/* Make the descriptor unreadable until the server raises the event again. */
static void
quiet_descriptor(const tundish_reader *reader)
{
    uint64_t count;

    if (reader->descriptor >= 0 && !reader->attachments->is_gone &&
        read(reader->attachments->event, &count, sizeof count) < 0)
        return;
}

static tundish_status
nothing_in_time(void)
{
    return tnd_fail(TUNDISH_E_TIMEOUT, "no batch in time");
}

/* Nothing more comes from this server: the next call attaches again. */
tundish_status
tnd_reader_tell_gone(tundish_reader *reader)
{
    reader->is_gone_told = true;
    return tnd_fail(TUNDISH_E_SERVER_GONE,
                    "the server at %s is gone; the next call waits for its return", reader->path);
}

/* Look for an entry before a sleep. */
static bool
spin(tundish_reader *reader, const struct tnd_ring_wait *wait, int64_t left_ns)
{
    int64_t spin_ns = reader->spin_ns;
    bool is_ready;

    if (spin_ns == 0) {
        if (reader->vain_spins >= SPINS_IN_VAIN && reader->vain_spins % WAITS_PER_SPIN != 0) {
            reader->vain_spins++;
            return false;
        }
        spin_ns = SPIN_DEFAULT_NS;
    }
    is_ready = tnd_ring_spin(wait, left_ns < spin_ns ? left_ns : spin_ns);
    reader->vain_spins = is_ready ? 0 : reader->vain_spins + 1;
    return is_ready;
}

/* Wait until the line has an entry that we have not passed. */
tundish_status
tnd_reader_await_entry(tundish_reader *reader, int64_t deadline_ns)
{
    struct attachment *attachment = reader->attachments;
    struct tnd_ring_wait wait;
    bool has_spun = false;

    for (;;) {
        tundish_status status = take_notices(reader);

        describe_wait(attachment, &wait);
        if (status != TUNDISH_OK)
            return status;
        /* Acquire pairs with tnd_ring_publish: the slots below the counter are whole. */
        if (atomic_load_explicit(wait.counter, memory_order_acquire) > wait.position)
            break;
        /* Only now: batches that the server published before it died are still good. */
        if (attachment->is_gone)
            return tnd_reader_tell_gone(reader);
        if (attachment->delivery->ask != NULL)
            show_waiting(attachment);
        if (!has_spun) {
            has_spun = true;
            if (spin(reader, &wait, tnd_clock_left_ns(deadline_ns)))
                continue;
        }
        show_waiting(attachment);
        tnd_siblings_tell(reader);
        if (tnd_clock_left_ns(deadline_ns) == 0) {
            /* The event is read first and the counter after it (tnd_ring_ready below): a batch
             * published in between is either seen here or raises the event again. */
            quiet_descriptor(reader);
            status = check_server(reader);
            if (status != TUNDISH_OK)
                return status;
            if (!attachment->is_gone && !tnd_ring_ready(&wait))
                return nothing_in_time();
            continue;
        }
        /* A sleep that brought nothing is the moment to look at the socket: a server that died
         * wakes nobody. */
        if (!tnd_ring_sleep(&wait, tnd_clock_left_ns(deadline_ns)))
            status = check_server(reader);
        if (status != TUNDISH_OK)
            return status;
    }
    end_waiting(attachment->returns);
    return TUNDISH_OK;
}
