/* helpers.c - the helpers of a session, and a thread for each connection to them. */
#include "helpers/helpers.h"

#include <stdlib.h>
#include <string.h>

#include "batch/portable.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "helpers/helpers_private.h"

/* Connections of all helpers together, and of each. */
enum { LINES_MAX = 256, LINES_OF_HELPER = 16, HELPERS_MAX = 64 };

/* Cut the list at its commas. Returns how many there are. */
static uint32_t
cut_list(char *text)
{
    uint32_t count = 1;

    for (; *text != '\0'; text++)
        if (*text == ',') {
            *text = '\0';
            count++;
        }
    return count;
}

tundish_status
helpers_check(const char *addresses)
{
    char *text = tnd_strdup(addresses);
    uint32_t count = cut_list(text);
    struct byte_view key;
    tundish_status status = helper_key(&key);

    if (status == TUNDISH_OK && count > HELPERS_MAX)
        status = tnd_fail(TUNDISH_E_ARGUMENT, "--helpers names %u helpers; at most %d", count,
                          HELPERS_MAX);
    for (const char *at = text; status == TUNDISH_OK && count > 0; at += strlen(at) + 1, count--) {
        const char *colon = strrchr(at, ':');

        if (colon == NULL || colon == at || colon[1] == '\0')
            status =
                tnd_fail(TUNDISH_E_ARGUMENT, "--helpers: an address is HOST:PORT, not '%s'", at);
    }
    free(text);
    return status;
}

static void
open_helper(struct helpers *helpers, struct helper *helper, const char *address)
{
    char labels[TND_STATS_LABEL_BYTES];

    helper->address = address;
    helper->pause_ns = HELPER_PAUSE_NS;
    pthread_mutex_init(&helper->lock, NULL);
    session_stats_label(labels, helpers->session);
    stats_label(labels, "helper", address);
    helper->stats = stats_add(helpers->session->counters.stats, TND_STATS_KIND_helper, labels);
}

/* Without metrics of its own: those of a thread are for the server's processors. */
static tundish_status
open_line(struct helpers *helpers, struct line *line, struct helper *helper, uint32_t number)
{
    struct session *session = helpers->session;
    struct worker *worker = &line->worker;
    struct byte_view key;
    tundish_status status = helper_key(&key);

    if (status != TUNDISH_OK)
        return status;
    line->helpers = helpers;
    line->helper = helper;
    line->number = number;
    worker->session = session;
    worker->evaluation = (struct evaluation){
        .files = session->files,
        .scratch = scratch_open(),
        .skip_bad = session->plan->stream->deliver.skip_errors,
    };
    worker->memory.budget = session->budget;
    scratch_share(worker->evaluation.scratch, &worker->memory);
    helper_line_open(&line->wire, session, key, helpers->sums);
    return tnd_codec_context_open(true, &worker->context);
}

static uint32_t
lines_of_each(uint32_t helper_count)
{
    uint32_t lines = LINES_MAX / helper_count;

    return lines < LINES_OF_HELPER ? lines : LINES_OF_HELPER;
}

tundish_status
helpers_open(struct session *session, const char *addresses, struct helpers **ret_helpers)
{
    char *obstacle = portable_obstacle(session->plan);
    struct helpers *helpers;
    tundish_status status = TUNDISH_OK;
    const char *address;

    if (obstacle != NULL) {
        tnd_log(TND_LOG_NOTICE, "helpers", "%s: parts are made by this server alone: %s",
                session->plan->stream->name, obstacle);
        free(obstacle);
        *ret_helpers = NULL;
        return TUNDISH_OK;
    }
    helpers = tnd_zalloc(1, sizeof *helpers);
    helpers->session = session;
    helpers->sums = helper_sums_open();
    helpers->opened_ns = tnd_clock_ns();
    helpers->text = tnd_strdup(addresses);
    helpers->helper_count = cut_list(helpers->text);
    helpers->list = tnd_zalloc(helpers->helper_count, sizeof *helpers->list);
    helpers->line_count = helpers->helper_count * lines_of_each(helpers->helper_count);
    helpers->lines = tnd_zalloc(helpers->line_count, sizeof *helpers->lines);
    tnd_condition_open(&helpers->wanted);
    tnd_condition_open(&helpers->later);
    address = helpers->text;
    for (uint32_t i = 0; i < helpers->helper_count; i++, address += strlen(address) + 1)
        open_helper(helpers, &helpers->list[i], address);
    for (uint32_t i = 0; status == TUNDISH_OK && i < helpers->line_count; i++)
        status = open_line(helpers, &helpers->lines[i], &helpers->list[i % helpers->helper_count],
                           i / helpers->helper_count);
    if (status == TUNDISH_OK)
        *ret_helpers = helpers;
    else
        helpers_close(helpers);
    return status;
}

void
helpers_close(struct helpers *helpers)
{
    if (helpers == NULL)
        return;
    for (uint32_t i = 0; i < helpers->line_count; i++) {
        struct line *line = &helpers->lines[i];

        if (line->helpers == NULL)
            continue;
        helper_line_close(&line->wire);
        scratch_close(line->worker.evaluation.scratch);
        tnd_codec_context_close(line->worker.context);
    }
    for (uint32_t i = 0; i < helpers->helper_count; i++) {
        stats_drop(helpers->session->counters.stats, helpers->list[i].stats);
        helper_steps_close(&helpers->list[i].steps);
        pthread_mutex_destroy(&helpers->list[i].lock);
    }
    helper_sums_close(helpers->sums);
    pthread_cond_destroy(&helpers->wanted);
    pthread_cond_destroy(&helpers->later);
    free(helpers->lines);
    free(helpers->list);
    free(helpers->text);
    free(helpers);
}

void
helpers_wake(struct helpers *helpers)
{
    if (helpers == NULL)
        return;
    if (atomic_load_explicit(&helpers->session->stop, memory_order_relaxed) != 0) {
        pthread_cond_broadcast(&helpers->wanted);
        pthread_cond_broadcast(&helpers->later);
    } else if (!helpers->is_watched) {
        pthread_cond_signal(&helpers->wanted);
    }
}

tundish_status
helpers_run(struct helpers *helpers)
{
    tundish_status status;

    if (helpers == NULL)
        return TUNDISH_OK;
    status = tnd_memory_for_threads(helpers->line_count);
    for (uint32_t i = 0; status == TUNDISH_OK && i < helpers->line_count; i++) {
        struct worker *worker = &helpers->lines[i].worker;
        int error = pthread_create(&worker->thread, NULL, helper_work, &helpers->lines[i]);

        worker->started = error == 0;
        if (error != 0)
            status = tnd_fail_errno(error, "cannot start a thread");
    }
    return status;
}

void
helpers_join(struct helpers *helpers)
{
    for (uint32_t i = 0; helpers != NULL && i < helpers->line_count; i++) {
        struct line *line = &helpers->lines[i];

        if (line->worker.started)
            pthread_join(line->worker.thread, NULL);
        line->worker.started = false;
        if (line->wire.wire.socket < 0)
            continue;
        helper_line_hang_up(&line->wire);
        line->helper->connected--;
        tnd_stats_set(&line->helper->stats->connections, line->helper->connected);
    }
}
