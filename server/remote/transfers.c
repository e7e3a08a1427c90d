/* transfers.c - see transfers.h. */
#include "remote/transfers.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "remote/remote.h"
#include "remote/transfer.h"

/* Pauses grow from the first to the last of these. A server's Retry-After is honoured up to
 * ASKED_PAUSE_S_MAX. */
enum {
    FIRST_PAUSE_MS = 100,
    PAUSE_DOUBLINGS_MAX = 8,
    PAUSE_MS_MAX = 20000,
    ASKED_PAUSE_S_MAX = 60
};
enum { IDLE_MS = 600000, CHECK_MS = 200 };

/* A request that takes SLOW_FACTOR times the median is repeated, at most CUTS_MAX times. */
enum { SLOW_FACTOR = 3, CUTS_MAX = 3 };
#define SLOW_LEAST_NS INT64_C(1000000000)

struct queue {
    struct transfer *first, *last;
};

struct transfers {
    const struct curl_library *curl;
    struct transfer_limits limits;
    CURLM *multi;
    pthread_t thread;
    _Atomic int is_stopping;

    pthread_mutex_t lock; /* of the queues and the count */
    struct queue urgent, later;
    uint32_t waiting_count;

    /* The thread's own. */
    struct transfer *paused; /* until their next attempt */
    struct transfer *active;
    _Atomic uint32_t active_count;
    uint64_t draws;
};

static void
queue_put(struct queue *queue, struct transfer *transfer)
{
    transfer->next = NULL;
    if (queue->last != NULL)
        queue->last->next = transfer;
    else
        queue->first = transfer;
    queue->last = transfer;
}

static struct transfer *
queue_take(struct queue *queue)
{
    struct transfer *transfer = queue->first;

    if (transfer == NULL)
        return NULL;
    queue->first = transfer->next;
    if (queue->first == NULL)
        queue->last = NULL;
    return transfer;
}

void
transfers_add(struct transfers *transfers, const struct transfer_want *want)
{
    struct transfer *transfer = transfer_open(transfers->curl, want);

    pthread_mutex_lock(&transfers->lock);
    queue_put(want->is_urgent ? &transfers->urgent : &transfers->later, transfer);
    transfers->waiting_count++;
    pthread_mutex_unlock(&transfers->lock);
    transfers->curl->curl_multi_wakeup(transfers->multi);
}

bool
transfers_are_busy(struct transfers *transfers)
{
    uint32_t active = atomic_load_explicit(&transfers->active_count, memory_order_relaxed);
    bool is_busy;

    pthread_mutex_lock(&transfers->lock);
    is_busy = active + transfers->waiting_count >= transfers->limits.connections;
    pthread_mutex_unlock(&transfers->lock);
    return is_busy;
}

/* A paused one whose time has come, else one that somebody waits for, else any. */
static struct transfer *
take_next(struct transfers *transfers)
{
    struct transfer *transfer;
    int64_t now = tnd_clock_ns();

    for (struct transfer **link = &transfers->paused; *link != NULL; link = &(*link)->next)
        if ((*link)->due_ns <= now || remote_has_given_up()) {
            transfer = *link;
            *link = transfer->next;
            return transfer;
        }
    pthread_mutex_lock(&transfers->lock);
    transfer = queue_take(&transfers->urgent);
    if (transfer == NULL)
        transfer = queue_take(&transfers->later);
    if (transfer != NULL)
        transfers->waiting_count--;
    pthread_mutex_unlock(&transfers->lock);
    return transfer;
}

static void
finish(struct transfer *transfer, tundish_status status)
{
    if (status != TUNDISH_OK)
        (void)tnd_fail(status, "%s", transfer->sentence);
    transfer->want.done(transfer->want.context, status, &transfer->answer);
    transfer_close(transfer);
}

static void
begin_some(struct transfers *transfers)
{
    while (atomic_load_explicit(&transfers->active_count, memory_order_relaxed) <
           transfers->limits.connections) {
        struct transfer *transfer = take_next(transfers);

        if (transfer == NULL)
            return;
        transfer_begin(transfer);
        store_count(&transfer->want.store->requests, 1);
        store_count(&transfer->want.store->active, 1);
        atomic_fetch_add_explicit(&transfers->active_count, 1, memory_order_relaxed);
        tnd_must_have(transfers->curl->curl_multi_add_handle(transfers->multi, transfer->easy) ==
                      CURLM_OK);
        transfer->next = transfers->active;
        transfers->active = transfer;
    }
}

/* Full jitter: clients that failed together do not come back together. */
static int64_t
pause_ns(struct transfers *transfers, const struct transfer *transfer)
{
    uint32_t doublings = transfer->failures - 1;
    uint64_t limit_ms = (uint64_t)FIRST_PAUSE_MS
                        << (doublings < PAUSE_DOUBLINGS_MAX ? doublings : PAUSE_DOUBLINGS_MAX);
    uint64_t drawn = tnd_hash_farm(&transfers->draws, sizeof transfers->draws);
    int64_t asked_s = answer_pause_s(&transfer->answer, tnd_clock_wall_ns() / 1000000000);
    int64_t ns;

    transfers->draws++;
    if (limit_ms > PAUSE_MS_MAX)
        limit_ms = PAUSE_MS_MAX;
    ns = (int64_t)(drawn % (limit_ms * 1000)) * 1000;
    if (asked_s > ASKED_PAUSE_S_MAX)
        asked_s = ASKED_PAUSE_S_MAX;
    return asked_s * 1000000000 + ns;
}

static void
count_end(const struct transfer *transfer, enum transfer_cause cause)
{
    static const enum store_retry retries[] = { [CAUSE_CONNECT] = RETRY_CONNECTION,
                                                [CAUSE_STALLED] = RETRY_STALLED,
                                                [CAUSE_SERVER] = RETRY_SERVER,
                                                [CAUSE_SHORT] = RETRY_SHORT,
                                                [CAUSE_WRONG] = RETRY_RANGE };
    struct store *store = transfer->want.store;
    int64_t took_ns = tnd_clock_ns() - transfer->begun_ns;

    store_count(&store->active, UINT64_MAX);
    store_count(&store->received_bytes, transfer->attempt_got);
    if (cause == CAUSE_NONE) {
        tnd_stats_observe(&store->times, (uint64_t)took_ns);
        if (transfer->want.is_ranged)
            store_note(store, took_ns);
    } else if (transfer->is_over)
        store_count(&store->failures, 1);
    else if (cause != CAUSE_ASK)
        store_count(&store->retries[retries[cause]], 1);
}

static void
take_from_active(struct transfers *transfers, struct transfer *transfer)
{
    struct transfer **link = &transfers->active;

    while (*link != transfer)
        link = &(*link)->next;
    *link = transfer->next;
    transfers->curl->curl_multi_remove_handle(transfers->multi, transfer->easy);
    atomic_fetch_sub_explicit(&transfers->active_count, 1, memory_order_relaxed);
}

static void
pause_until(struct transfers *transfers, struct transfer *transfer, int64_t due_ns)
{
    transfer->due_ns = due_ns;
    transfer->next = transfers->paused;
    transfers->paused = transfer;
}

static void
end_one(struct transfers *transfers, struct transfer *transfer, CURLcode result)
{
    enum transfer_cause cause;

    take_from_active(transfers, transfer);
    cause = transfer_end(transfer, result);
    transfer->is_over = cause == CAUSE_NONE || cause == CAUSE_FINAL ||
                        transfer->failures > transfers->limits.retries || remote_has_given_up();
    count_end(transfer, cause);
    if (transfer->is_over) {
        finish(transfer, cause == CAUSE_NONE ? TUNDISH_OK : transfer->status);
    } else {
        int64_t pause = cause == CAUSE_ASK ? 0 : pause_ns(transfers, transfer);

        pause_until(transfers, transfer, tnd_clock_ns() + pause);
    }
}

static void
end_some(struct transfers *transfers)
{
    CURLMsg *message;
    int left;

    while ((message = transfers->curl->curl_multi_info_read(transfers->multi, &left)) != NULL) {
        char *transfer = NULL;
        CURLcode result = message->data.result;

        if (message->msg != CURLMSG_DONE)
            continue;
        transfers->curl->curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
        end_one(transfers, (struct transfer *)(void *)transfer, result);
    }
}

/* A few requests to a store meet a slow path or a slow disk. Another attempt is soon done, and the
 * one that is cut has lost no bytes. Each time the patience grows, for a large rest may be slow on
 * every path. */
static bool
is_slow(const struct transfer *transfer, int64_t now_ns)
{
    int64_t median_ns = store_median_ns(transfer->want.store);
    int64_t patience_ns =
        SLOW_FACTOR * median_ns > SLOW_LEAST_NS ? SLOW_FACTOR * median_ns : SLOW_LEAST_NS;

    return median_ns > 0 && transfer->want.is_ranged && transfer->cuts < CUTS_MAX &&
           now_ns - transfer->begun_ns > patience_ns << transfer->cuts;
}

static void
cut_slow(struct transfers *transfers)
{
    int64_t now_ns = tnd_clock_ns();
    struct transfer *next;

    for (struct transfer *transfer = transfers->active; transfer != NULL; transfer = next) {
        next = transfer->next;
        if (!is_slow(transfer, now_ns))
            continue;
        take_from_active(transfers, transfer);
        store_count(&transfer->want.store->active, UINT64_MAX);
        store_count(&transfer->want.store->received_bytes, transfer->attempt_got);
        store_count(&transfer->want.store->retries[RETRY_SLOW], 1);
        transfer_cut(transfer);
        pause_until(transfers, transfer, now_ns);
    }
}

/* Until the next pause is over. */
static int
wait_ms(const struct transfers *transfers)
{
    int64_t ms = IDLE_MS;

    for (const struct transfer *paused = transfers->paused; paused != NULL; paused = paused->next) {
        int64_t left = tnd_clock_left_ns(paused->due_ns) / 1000000 + 1;

        ms = left < ms ? left : ms;
    }
    if (ms > CHECK_MS && (transfers->active != NULL || transfers->paused != NULL))
        ms = CHECK_MS;
    return (int)ms;
}

static void *
run(void *context)
{
    struct transfers *transfers = context;
    int running;

    while (atomic_load_explicit(&transfers->is_stopping, memory_order_relaxed) == 0) {
        begin_some(transfers);
        transfers->curl->curl_multi_perform(transfers->multi, &running);
        end_some(transfers);
        cut_slow(transfers);
        begin_some(transfers);
        transfers->curl->curl_multi_poll(transfers->multi, NULL, 0, wait_ms(transfers), NULL);
    }
    return NULL;
}

tundish_status
transfers_open(const struct curl_library *curl, const struct transfer_limits *limits,
               struct transfers **ret_transfers)
{
    struct transfers *transfers = tnd_zalloc(1, sizeof *transfers);
    sigset_t all, before;
    int error;

    transfers->curl = curl;
    transfers->limits = *limits;
    transfers->draws = (uint64_t)tnd_clock_wall_ns();
    pthread_mutex_init(&transfers->lock, NULL);
    transfers->multi = curl->curl_multi_init();
    tnd_must_have(transfers->multi != NULL);
    curl->curl_multi_setopt(transfers->multi, CURLMOPT_MAXCONNECTS, (long)limits->connections);
    /* Signals are for the thread that waits for them. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&transfers->thread, NULL, run, transfers);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        curl->curl_multi_cleanup(transfers->multi);
        pthread_mutex_destroy(&transfers->lock);
        free(transfers);
        return tnd_fail_errno(error, "cannot start the thread that reads URLs");
    }
    *ret_transfers = transfers;
    return TUNDISH_OK;
}

void
transfers_stop(struct transfers *transfers)
{
    atomic_store_explicit(&transfers->is_stopping, 1, memory_order_relaxed);
    transfers->curl->curl_multi_wakeup(transfers->multi);
    pthread_join(transfers->thread, NULL);
}
