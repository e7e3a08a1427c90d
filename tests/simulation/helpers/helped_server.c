/* helped_server.c - as much of a server as its ring, workers and helpers look at, and its trainer.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "batch/portable.h"
#include "core/log.h"
#include "deliver/wakeup.h"
#include "help_private.h"

/* These stand for what is left out. */
void __wrap_tnd_log(enum tnd_log_level level, const char *event, const char *format, ...);
tundish_status __wrap_tnd_memory_for_threads(uint32_t count);
void *__wrap_stats_add(struct stats *stats, enum tnd_stats_kind kind, const char *labels);
void __wrap_stats_drop(struct stats *stats, void *values);
tundish_status __wrap_tnd_codec_context_open(int for_encoding,
                                             struct tnd_codec_context **ret_context);
void __wrap_tnd_codec_context_close(struct tnd_codec_context *context);
struct scratch *__wrap_scratch_open(void);
void __wrap_scratch_share(struct scratch *scratch, struct budget_task *task);
void __wrap_scratch_reset(struct scratch *scratch);
void __wrap_scratch_close(struct scratch *scratch);
char *__wrap_portable_obstacle(const struct plan *plan);
struct lane *__wrap_feed_lane(struct feed *feed, uint32_t replica);
bool __wrap_lane_is_awaited(struct lane *lane);
tundish_status __wrap_feed_reserve(struct feed *feed, uint32_t replica, struct slot *slot);
void __wrap_lane_seal(struct lane *lane, struct slot *slot);
void __wrap_lane_publish(struct lane *lane, struct slot *slot);
void __wrap_lane_seal_and_publish(struct lane *lane, struct slot *slot);
void __wrap_lane_cancel(struct lane *lane, struct slot *slot);
void __wrap_wakeup_signal(struct wakeup *wakeup);
bool __wrap_wakeup_wait(struct wakeup *wakeup, int64_t spin_ns, int64_t timeout_ns);
int64_t __wrap_fill_rows(const struct fill *fill, const struct deal_slice *slice);
void __wrap_fill_bring_near(const struct deal_slice *slice);
int64_t __wrap_fill_describe(const struct fill *fill, const struct deal_slice *slice,
                             struct slot *slot);
void __wrap_fill_begin(const struct fill *fill, const struct deal_slice *slice, struct slot *slot);
tundish_status __wrap_fill_part(const struct fill *fill, struct evaluation *evaluation,
                                const struct deal_slice *slice, int64_t begin, int64_t end,
                                struct slot *slot);
void *__wrap_session_deal(void *session);
void __wrap_dealer_take_back(struct dealer *dealer, struct deal_round *round);

/* Thousands of threads would say the same. */
void
__wrap_tnd_log(enum tnd_log_level level, const char *event, const char *format, ...)
{
    (void)level;
    (void)event;
    (void)format;
}

tundish_status
__wrap_tnd_memory_for_threads(uint32_t count)
{
    (void)count;
    return TUNDISH_OK;
}

void *
__wrap_stats_add(struct stats *stats, enum tnd_stats_kind kind, const char *labels)
{
    (void)stats;
    (void)kind;
    (void)labels;
    return calloc(1, sizeof(struct tnd_stats_helper));
}

void
__wrap_stats_drop(struct stats *stats, void *values)
{
    (void)stats;
    free(values);
}

tundish_status
__wrap_tnd_codec_context_open(int for_encoding, struct tnd_codec_context **ret_context)
{
    (void)for_encoding;
    *ret_context = NULL;
    return TUNDISH_OK;
}

void
__wrap_tnd_codec_context_close(struct tnd_codec_context *context)
{
    (void)context;
}

struct scratch *
__wrap_scratch_open(void)
{
    return NULL;
}

void
__wrap_scratch_share(struct scratch *scratch, struct budget_task *task)
{
    (void)scratch;
    (void)task;
}

void
__wrap_scratch_reset(struct scratch *scratch)
{
    (void)scratch;
}

void
__wrap_scratch_close(struct scratch *scratch)
{
    (void)scratch;
}

char *
__wrap_portable_obstacle(const struct plan *plan)
{
    (void)plan;
    return NULL;
}

struct helped_server *
helped_server_here(void)
{
    return &helps_present->servers[fibers_charged()];
}

static struct lane_slot *
slot_at(struct helped_server *server, uint64_t position)
{
    return &server->slots[position % SLOTS];
}

struct lane *
__wrap_feed_lane(struct feed *feed, uint32_t replica)
{
    (void)replica;
    return (struct lane *)feed;
}

bool
__wrap_lane_is_awaited(struct lane *lane)
{
    return ((struct helped_server *)lane)->trainer_waits;
}

tundish_status
__wrap_feed_reserve(struct feed *feed, uint32_t replica, struct slot *slot)
{
    struct helped_server *server = (struct helped_server *)feed;

    (void)replica;
    if (slot->position >= server->released + SLOTS)
        return TUNDISH_E_TIMEOUT;
    memset(slot_at(server, slot->position), 0, sizeof *server->slots);
    return TUNDISH_OK;
}

void
__wrap_lane_seal(struct lane *lane, struct slot *slot)
{
    (void)lane;
    (void)slot;
}

void
__wrap_lane_publish(struct lane *lane, struct slot *slot)
{
    struct helped_server *server = (struct helped_server *)lane;
    struct lane_slot *own = slot_at(server, slot->position);

    if (slot->position < server->published || slot->position >= server->released + SLOTS ||
        own->is_ready)
        complain("step %llu is published twice", (unsigned long long)slot->position);
    own->is_ready = true;
    while (server->published < server->released + SLOTS &&
           slot_at(server, server->published)->is_ready)
        server->published++;
    pthread_cond_signal(&server->batch);
}

void
__wrap_lane_seal_and_publish(struct lane *lane, struct slot *slot)
{
    __wrap_lane_publish(lane, slot);
}

void
__wrap_lane_cancel(struct lane *lane, struct slot *slot)
{
    (void)lane;
    (void)slot;
}

void
__wrap_wakeup_signal(struct wakeup *wakeup)
{
    struct helped_server *server = (struct helped_server *)wakeup;

    server->is_signalled = true;
    pthread_cond_signal(&server->changed);
}

bool
__wrap_wakeup_wait(struct wakeup *wakeup, int64_t spin_ns, int64_t timeout_ns)
{
    struct helped_server *server = (struct helped_server *)wakeup;

    (void)spin_ns;
    (void)timeout_ns;
    pthread_mutex_lock(&server->lock);
    while (!server->is_signalled)
        pthread_cond_wait(&server->changed, &server->lock);
    server->is_signalled = false;
    pthread_mutex_unlock(&server->lock);
    return true;
}

int64_t
__wrap_fill_rows(const struct fill *fill, const struct deal_slice *slice)
{
    (void)fill;
    (void)slice;
    return helps_present->options->rows;
}

void
__wrap_fill_bring_near(const struct deal_slice *slice)
{
    (void)slice;
}

int64_t
__wrap_fill_describe(const struct fill *fill, const struct deal_slice *slice, struct slot *slot)
{
    (void)fill;
    (void)slice;
    (void)slot;
    return helps_present->options->part_rows;
}

void
__wrap_fill_begin(const struct fill *fill, const struct deal_slice *slice, struct slot *slot)
{
    (void)fill;
    (void)slice;
    (void)slot;
}

static void
write_rows(struct helped_server *server, uint64_t position, int64_t begin, int64_t end, uint8_t how)
{
    struct lane_slot *slot = slot_at(server, position);

    for (int64_t row = begin; row < end; row++)
        slot->rows[row] = (uint8_t)(slot->rows[row] + how);
}

void
helped_server_write(struct helped_server *server, const struct part *part, uint8_t how)
{
    write_rows(server, part->step->position, part->begin, part->end, how);
}

/* On one of the cores, whose turns come in the order in which they are wanted. */
tundish_status
__wrap_fill_part(const struct fill *fill, struct evaluation *evaluation,
                 const struct deal_slice *slice, int64_t begin, int64_t end, struct slot *slot)
{
    struct helped_server *server = helped_server_here();
    uint64_t turn = server->turns++;

    (void)fill;
    (void)evaluation;
    (void)slice;
    pthread_mutex_lock(&server->lock);
    while (turn >= server->turns_over + helps_present->options->cores)
        pthread_cond_wait(&server->turn, &server->lock);
    pthread_mutex_unlock(&server->lock);
    fibers_sleep(help_rows_ns(end - begin));
    server->turns_over++;
    pthread_cond_broadcast(&server->turn);
    write_rows(server, slot->position, begin, end, ROW_RIGHT);
    return TUNDISH_OK;
}

/* The order never ends. */
void *
__wrap_session_deal(void *argument)
{
    bool is_more = true;

    for (uint64_t number = 0; is_more; number++) {
        struct deal_round round = { .step = number, .present_count = 1, .replicas = 1 };

        round.slices = calloc(1, sizeof *round.slices);
        round.slices->present = true;
        is_more = ring_push(argument, TND_SLOT_BATCH, 0, number, &round, TUNDISH_OK);
    }
    return NULL;
}

void
__wrap_dealer_take_back(struct dealer *dealer, struct deal_round *round)
{
    (void)dealer; /* there is none */
    dealer_release_round(round);
}

/* Each of the step's rows was made once, and right. */
static void
judge_step(struct helped_server *server, uint64_t number)
{
    struct lane_slot *slot = slot_at(server, number);

    for (uint32_t row = 0; row < helps_present->options->rows; row++)
        if (slot->rows[row] != ROW_RIGHT)
            complain("node %u: row %u of step %llu was made %s",
                     (unsigned)(server - helps_present->servers), row, (unsigned long long)number,
                     slot->rows[row] == 0           ? "nowhere"
                     : slot->rows[row] >= ROW_WRONG ? "wrong"
                                                    : "twice");
    slot->is_ready = false;
}

static void
wait_for_batch(struct helped_server *server, uint64_t number)
{
    int64_t began_ns = fibers_now_ns();

    if (server->published > number)
        return;
    server->waits += help_is_later();
    server->trainer_waits = true;
    __wrap_wakeup_signal((struct wakeup *)server);
    pthread_mutex_lock(&server->lock);
    while (server->published <= number && !helps_present->is_over)
        pthread_cond_wait(&server->batch, &server->lock);
    pthread_mutex_unlock(&server->lock);
    server->trainer_waits = false;
    if (fibers_now_ns() - began_ns > 20 * SECOND)
        complain("a trainer waited for %lld s", (long long)((fibers_now_ns() - began_ns) / SECOND));
}

static void
train(struct helped_server *server)
{
    int64_t step_ns = helps_present->options->step_ns;

    for (uint64_t number = 0; !helps_present->is_over; number++) {
        wait_for_batch(server, number);
        if (helps_present->is_over)
            return;
        judge_step(server, number);
        server->steps += help_is_later();
        fibers_sleep(step_ns / 2 + (int64_t)fibers_draw((uint64_t)step_ns + 1));
        server->released = number + 1;
        __wrap_wakeup_signal((struct wakeup *)server);
    }
}

static void
open_ring(struct session *session)
{
    struct ring *ring = &session->ring;

    ring_open(ring, "train", 0);
    ring_size(ring, SLOTS + 4, SLOTS, session->worker_count, 1);
    ring->steps = calloc(ring->capacity, sizeof *ring->steps);
    for (uint32_t i = 0; i < ring->capacity; i++)
        ring->steps[i].shares = calloc(1, sizeof *ring->steps[i].shares);
}

void
helped_server_open(struct helped_server *server)
{
    static struct tnd_stats_track_entry track; /* nobody reads it */
    struct session *session = &server->session;

    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->turn, NULL);
    pthread_cond_init(&server->batch, NULL);
    pthread_cond_init(&server->changed, NULL);
    server->stream.name = "train";
    server->plan.stream = &server->stream;
    server->plan.replicas = 1;
    server->lane.values = &server->lane_values;
    session->plan = &server->plan;
    session->nodes = &nodes_alone;
    session->fill.in_place = true;
    session->feed = (struct feed *)server;
    session->wakeup = (struct wakeup *)server;
    session->counters.stream = &server->stream_values;
    session->counters.lanes = &server->lane;
    session->dealing.counters.evaluation.track = &track;
    session->worker_count = helps_present->options->cores;
    session->workers = server->workers;
    for (uint32_t i = 0; i < session->worker_count; i++) {
        server->workers[i].session = session;
        server->workers[i].counters.thread = &server->thread_values;
        server->workers[i].counters.evaluation.track = &track;
    }
    open_ring(session);
}

static void
sum_up(const struct helped_server *server)
{
    const struct helpers *helpers = server->session.helpers;
    struct help_result *result = helps_present->result;

    result->steps += server->steps;
    result->waits += server->waits;
    for (uint32_t i = 0; helpers != NULL && i < helpers->helper_count; i++) {
        result->made += tnd_stats_get(&helpers->list[i].stats->parts);
        result->remade += tnd_stats_get(&helpers->list[i].stats->remade);
        result->overtaken += tnd_stats_get(&helpers->list[i].stats->overtaken);
        result->lost += tnd_stats_get(&helpers->list[i].stats->lost);
        result->barred += helpers->list[i].is_barred;
    }
}

void
helped_server_live(void *argument)
{
    struct helped_server *server = argument;
    struct session *session = &server->session;

    if (helps_present->options->helpers > 0 &&
        helpers_open(session, helps_present->addresses, &session->helpers) != TUNDISH_OK)
        complain("helpers: %s", tnd_error_text());
    tnd_lock_take(&session->control.lock);
    if (session_run(session) != TUNDISH_OK)
        complain("threads: %s", tnd_error_text());
    tnd_lock_release(&session->control.lock);
    train(server);
    sum_up(server); /* before what is under way is given up */
    session_halt(session);
    helpers_close(session->helpers);
    server->is_over = true;
}

void
helped_server_close(struct helped_server *server)
{
    struct ring *ring = &server->session.ring;

    for (uint32_t i = 0; i < ring->capacity; i++) {
        dealer_release_round(&ring->steps[i].round);
        free(ring->steps[i].shares);
    }
    free(ring->steps);
}
