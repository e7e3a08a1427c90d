/* helper_state.c - a helper is there, is lost, or is not used any more; and its figures. */
#include <stdio.h>

#include "core/clock.h"
#include "core/log.h"
#include "helpers/helpers_private.h"

/* For steps of a helper, in a line of the log. */
enum { STEPS_BYTES = 1024 };

/* Connections beyond the helper's threads: it finds something to do when it has answered. */
enum { LINES_AHEAD = 6 };

/* Asks that the helper could not answer in a row before the connection is given up. */
enum { REFUSALS_MAX = 8 };

/* A lost helper is called again after HELPER_PAUSE_NS at first, and this at most. */
static const int64_t PAUSE_MOST_NS = 30000000000;

/* A part is late after LATE_NS, and LATE_TIMES the time of a part. */
static const int64_t LATE_NS = 2000000000;
enum { LATE_TIMES = 16 };

/* Count a part as excess load if a trainer waited for it and it took more than MISSED_TIMES its
 * local duration. */
enum { MISSED_TIMES = 2 };
static const int64_t REST_LEAST_NS = 1000000, REST_MOST_NS = 30000000000;

/* How long until this connection may call its helper; 0: now. */
int64_t
helper_until_call(struct line *line)
{
    struct helper *helper = line->helper;
    int64_t wait_ns;

    pthread_mutex_lock(&helper->lock);
    wait_ns = helper->call_ns - tnd_clock_ns();
    if (helper->is_barred || (line->number > 0 && line->number >= helper->threads + LINES_AHEAD) ||
        wait_ns > HELPERS_SLEEP_NS || line->helpers->is_over)
        wait_ns = HELPERS_SLEEP_NS;
    pthread_mutex_unlock(&helper->lock);
    return wait_ns > 0 ? wait_ns : 0;
}

void
helper_note_up(struct line *line, uint32_t threads)
{
    struct helper *helper = line->helper;
    bool is_news;

    pthread_mutex_lock(&helper->lock);
    is_news = !helper->is_up;
    helper->is_up = true;
    helper->connected++;
    helper->threads = threads;
    tnd_stats_set(&helper->stats->connections, helper->connected);
    tnd_stats_set(&helper->stats->threads, threads);
    pthread_mutex_unlock(&helper->lock);
    line->refusals = 0;
    if (is_news)
        tnd_log(TND_LOG_NOTICE, "helpers", "%s: helper %s makes parts, %u at a time",
                line->worker.session->plan->stream->name, helper->address, threads);
}

/* The connection is over. The thread's error text says why. */
void
helper_note_lost(struct line *line, bool was_connected)
{
    struct helper *helper = line->helper;
    int64_t now_ns = tnd_clock_ns();
    bool is_news;

    helper_line_hang_up(&line->wire);
    if (helpers_stop(line->worker.session))
        return;
    pthread_mutex_lock(&helper->lock);
    helper->connected -= was_connected;
    is_news = helper->is_up || tnd_stats_get(&helper->stats->lost) == 0;
    if (is_news)
        tnd_stats_add(&helper->stats->lost, 1);
    is_news &= !helper->is_barred;
    helper->is_up = false;
    /* Its connections are lost together, which is one loss. */
    if (now_ns >= helper->call_ns) {
        helper->call_ns = now_ns + helper->pause_ns;
        helper->pause_ns =
            helper->pause_ns < PAUSE_MOST_NS / 2 ? 2 * helper->pause_ns : PAUSE_MOST_NS;
    }
    tnd_stats_set(&helper->stats->connections, helper->connected);
    pthread_mutex_unlock(&helper->lock);
    if (is_news)
        tnd_log(TND_LOG_WARNING, "helpers",
                "%s: helper %s is lost: %s; its parts are made here until it is back",
                line->worker.session->plan->stream->name, helper->address, tnd_error_text());
}

/* Trainers have been given what it made: the log names all of these steps. */
static void
tell_bar(const struct line *line, const char *reason)
{
    const struct helper *helper = line->helper;
    const char *stream = line->worker.session->plan->stream->name;
    char text[STEPS_BYTES];
    uint32_t next = 0;

    tnd_log(
        TND_LOG_ERROR, "helpers",
        "%s: helper %s is not used any more: %s. It had made %llu parts, in %llu steps. Compare "
        "the machines' builds and files",
        stream, helper->address, reason, (unsigned long long)tnd_stats_get(&helper->stats->parts),
        (unsigned long long)helper->steps.steps);
    while (next < helper->steps.count) {
        next = helper_steps_text(&helper->steps, next, text, sizeof text);
        tnd_log(TND_LOG_ERROR, "helpers", "%s: helper %s had made rows of %s%s", stream,
                helper->address, text,
                helper->steps.is_rough ? " (and some steps between were not of its making)" : "");
    }
}

void
helper_bar(struct line *line)
{
    struct helper *helper = line->helper;
    char reason[512];
    bool is_news;

    snprintf(reason, sizeof reason, "%s", tnd_error_text());
    pthread_mutex_lock(&helper->lock);
    is_news = !helper->is_barred;
    helper->is_barred = true;
    tnd_stats_set(&helper->stats->barred, 1);
    pthread_mutex_unlock(&helper->lock);
    if (is_news)
        tell_bar(line, reason);
    (void)tnd_fail(TUNDISH_E_CORRUPT, "%s", reason);
    helper_note_lost(line, true);
}

int64_t
helper_usual_time(struct line *line, int64_t own_ns)
{
    struct helper *helper = line->helper;
    int64_t part_ns;

    pthread_mutex_lock(&helper->lock);
    part_ns = helper->part_ns;
    pthread_mutex_unlock(&helper->lock);
    return own_ns > part_ns ? own_ns : part_ns;
}

int64_t
helper_deadline(int64_t usual_ns)
{
    return tnd_clock_deadline_ns(LATE_NS + LATE_TIMES * usual_ns);
}

/* The lock is held. */
static void
note_step(struct helper *helper, const struct step *step)
{
    struct tnd_stats_helper *stats = helper->stats;
    const struct helper_steps *steps = &helper->steps;
    const struct helper_range *last;

    helper_steps_add(&helper->steps, (struct helper_step){ step->epoch, step->number });
    last = &steps->list[steps->count - 1];
    tnd_stats_set(&stats->steps, steps->steps);
    tnd_stats_set(&stats->first_epoch, steps->list[0].first.epoch);
    tnd_stats_set(&stats->first_step, steps->list[0].first.number);
    tnd_stats_set(&stats->last_epoch, last->last.epoch);
    tnd_stats_set(&stats->last_step, last->last.number);
}

/* The rows of the part that came. */
static uint64_t
rows_of(const struct line *line, const struct part *part)
{
    int64_t rows = 0;

    if (part->step->shares[part->replica].fill->in_place)
        return (uint64_t)(part->end - part->begin);
    for (uint32_t i = 0; i <= part->more; i++)
        rows += line->wire.slots[i].columns[0].shape[0];
    return (uint64_t)rows;
}

tundish_status
helper_count(struct line *line, const struct part *part, const struct helper_made *made,
             int64_t took_ns)
{
    struct helper *helper = line->helper;
    struct tnd_stats_helper *stats = helper->stats;
    struct helper_wire *wire = &line->wire.wire;

    pthread_mutex_lock(&helper->lock);
    if (helper->is_barred) {
        pthread_mutex_unlock(&helper->lock);
        return tnd_fail(TUNDISH_E_CORRUPT, "it is not used any more");
    }
    helper->part_ns += (took_ns - helper->part_ns) / 8;
    helper->pause_ns = HELPER_PAUSE_NS;
    note_step(helper, part->step);
    tnd_stats_add(&stats->parts, 1);
    tnd_stats_add(&stats->rows, rows_of(line, part));
    /* It says so itself, but it was no longer busy than it was waited for. */
    tnd_stats_add(&stats->busy,
                  made->busy_ns < (uint64_t)took_ns ? made->busy_ns : (uint64_t)took_ns);
    tnd_stats_add(&stats->wait, (uint64_t)took_ns);
    tnd_stats_add(&stats->sent, wire->sent_bytes);
    tnd_stats_add(&stats->received, wire->received_bytes);
    pthread_mutex_unlock(&helper->lock);
    wire->sent_bytes = wire->received_bytes = 0;
    return TUNDISH_OK;
}

/* Helpers that many servers share, or a slow network, may keep parts for longer than threads here
 * take for all that there is room for: these then wait for parts that they would have made
 * themselves. So a line whose part was one too many rests, twice as long each time, and each other
 * part makes its rest a little shorter. */
void
helper_note_time(struct line *line, int64_t took_ns, int64_t own_ns, bool was_missed)
{
    struct helper *helper = line->helper;

    if (was_missed && took_ns > MISSED_TIMES * own_ns) {
        line->rest_ns = line->rest_ns == 0 ? took_ns : 2 * line->rest_ns;
        line->rest_ns = line->rest_ns < REST_MOST_NS ? line->rest_ns : REST_MOST_NS;
    } else {
        line->rest_ns = line->rest_ns < REST_LEAST_NS ? 0 : line->rest_ns - line->rest_ns / 8;
        if (helper->welcome++ < line->helpers->line_count / line->helpers->helper_count)
            pthread_cond_broadcast(&line->helpers->later);
    }
    line->rested_ns = tnd_clock_deadline_ns(line->rest_ns);
    helper->rest_ns = line->rest_ns;
}

/* The connections to a helper begin one after the other, as answers come, and with the rest of
 * those before. */
int64_t
helper_until_ask(struct line *line)
{
    if (!line->has_begun && line->number > line->helper->welcome)
        return HELPERS_SLEEP_NS;
    if (!line->has_begun) {
        line->rest_ns = line->helper->rest_ns;
        line->rested_ns = tnd_clock_deadline_ns(line->rest_ns);
        line->has_begun = true;
    }
    return tnd_clock_left_ns(line->rested_ns);
}

static void
stop_sending(struct line *line)
{
    struct session *session = line->worker.session;
    bool is_news;

    ring_lock(session);
    is_news = !line->helpers->is_over;
    line->helpers->is_over = true;
    ring_unlock(session);
    if (is_news)
        tnd_log(TND_LOG_NOTICE, "helpers", "%s: parts are made by this server alone: %s",
                session->plan->stream->name, tnd_error_text());
}

/* The part was not made elsewhere. */
void
helper_note_failure(struct line *line, tundish_status status)
{
    if (status == TUNDISH_E_PLACE) {
        stop_sending(line);
        helper_note_lost(line, true);
    } else if (status == TUNDISH_E_CORRUPT) {
        pthread_mutex_lock(&line->helper->lock);
        line->helper->pause_ns = PAUSE_MOST_NS; /* who changes messages would do so again */
        pthread_mutex_unlock(&line->helper->lock);
        helper_note_lost(line, true);
    } else if (status != TUNDISH_E_DATA || ++line->refusals >= REFUSALS_MAX) {
        helper_note_lost(line, true);
    }
    pthread_mutex_lock(&line->helper->lock);
    tnd_stats_add(&line->helper->stats->remade, 1);
    pthread_mutex_unlock(&line->helper->lock);
}

void
helper_note_overtaken(struct line *line)
{
    pthread_mutex_lock(&line->helper->lock);
    tnd_stats_add(&line->helper->stats->overtaken, 1);
    pthread_mutex_unlock(&line->helper->lock);
}
