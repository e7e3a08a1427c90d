/* explain.h - one step of a stream, gone to as a job that resumes goes there, and where the rows
 * of one replica's batch come from.
 */
#ifndef COMMANDS_EXPLAIN_H
#define COMMANDS_EXPLAIN_H

#include "batch/content_budget.h"
#include "batch/dealer.h"
#include "batch/origin.h"
#include "commands/commands.h"
#include "session/checkpoint/place_contents.h"
#include "session/fill.h"
#include "shm/place.h"

enum { WORKERS_MAX = 65536 }; /* of a job, as the options have it */

struct explain {
    struct pipeline_options pipeline_options;
    const char *token; /* NULL: a run from its start */
    uint64_t epoch, step, row;
    uint32_t worker, replica;
    bool has_epoch, has_step, has_row, has_workers;
    bool shows, json;

    uint8_t *place_bytes;
    struct tnd_place standing;
    struct place place;

    struct pipeline pipeline;
    struct source_files *files;
    struct place_landmarks *landmarks; /* or NULL */
    struct dealer *dealer;
    struct deal_round round;
    struct fill fill;
    struct evaluation evaluation;
    struct budget_task memory;
    struct origins origins;
    bool counts_epochs; /* the step depends on epochs that are taken to have been read whole */
};

/* Take the place apart, before the plan is made: its seeds and its number of workers go into that.
 */
tundish_status explain_read_place(struct explain *explain);

/* Deal the step, and find where its rows come from. pipeline is open. */
tundish_status explain_find(struct explain *explain);
void explain_close(struct explain *explain); /* accepts zeros */

/* Print what was found. Fails after all rows if content was to be shown and cannot be made. */
tundish_status explain_print(struct explain *explain);

/* The plan of the worker whose batch it is. */
static inline const struct plan *
explain_plan(const struct explain *explain)
{
    return explain->pipeline.plans[explain->worker];
}

#endif
