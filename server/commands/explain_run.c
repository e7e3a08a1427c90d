/* explain_run.c - goes to the step: a place says where and with which seeds, as when a job resumes.
 */
#include "commands/explain.h"

#include <stdlib.h>

#include "core/memory.h"
#include "core/plural.h"
#include "session/checkpoint/place_landmarks.h"
#include "source/source.h"

tundish_status
explain_read_place(struct explain *explain)
{
    uint64_t count = 0;
    tundish_status status;

    explain->place_bytes = tnd_alloc(tnd_place_token_decoded_bytes(explain->token) + 1);
    status = tnd_place_token_read(explain->token, explain->place_bytes, &count);
    if (status == TUNDISH_OK)
        status = tnd_place_read(explain->place_bytes, count, &explain->standing);
    if (status == TUNDISH_OK)
        status =
            place_read(explain->standing.header, explain->standing.header_bytes, &explain->place);
    if (status == TUNDISH_OK && explain->place.worker_count > WORKERS_MAX)
        status = tnd_fail(TUNDISH_E_PLACE, "a place of %u workers: it is damaged",
                          explain->place.worker_count);
    if (status != TUNDISH_OK)
        return status;
    explain->pipeline_options.seed = explain->place.root_seed;
    explain->pipeline_options.has_seed = true;
    if (!explain->has_workers && explain->place.worker_count > 1)
        explain->pipeline_options.worker_count = explain->place.worker_count;
    return TUNDISH_OK;
}

/* A place names the next batch; another step of the run may be asked for. */
static void
choose_step(struct explain *explain)
{
    if (!explain->has_epoch && !explain->has_step)
        explain->step = explain->standing.step;
    if (!explain->has_epoch)
        explain->epoch = explain->standing.epoch;
}

static tundish_status
check_place(const struct explain *explain)
{
    const struct plan *plan = explain_plan(explain);
    struct place_files files = { 0 };
    tundish_status status;

    if (explain->token == NULL)
        return TUNDISH_OK;
    status = place_files_open(plan, &files);
    if (status == TUNDISH_OK)
        status = place_check(&explain->place, plan, &files);
    place_files_close(&files);
    return status;
}

static tundish_status
check_stream(const struct explain *explain)
{
    const struct plan *plan = explain_plan(explain);
    const struct spec_stream *stream = plan->stream;
    uint64_t epochs = stream->deliver.epochs;

    if (stream->distribute.evaluation_shards != 0)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "stream '%s' is an evaluation (evaluation_shards): which reader gets which "
                        "shard is decided while it runs, so no epoch and step name a batch",
                        stream->name);
    if (stream->distribute.files_local && plan->options.worker_count > 1)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "stream '%s' has files: local, and the files of other workers are not "
                        "known here: collect all files on one machine and set files: shared",
                        stream->name);
    if (explain->token == NULL && !explain->pipeline_options.has_seed && plan->draws_from_root)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "stream '%s' has random stages without a seed, which differ from run to "
                        "run: name the run with --place, or with --seed as the server logged it",
                        stream->name);
    if (epochs != 0 && explain->epoch >= epochs)
        return tnd_fail(TUNDISH_E_ARGUMENT, "epoch %llu: stream '%s' has %llu (deliver.epochs)",
                        (unsigned long long)explain->epoch, stream->name,
                        (unsigned long long)epochs);
    return TUNDISH_OK;
}

static tundish_status
open_dealer(const struct explain *explain, const struct plan *plan, struct dealer **ret_dealer)
{
    const struct dealer_options options = {
        .files = explain->files,
        .skip_bad = plan->stream->deliver.skip_errors,
        .landmarks = plan == explain_plan(explain) ? place_landmarks_all(explain->landmarks) : NULL,
    };

    return dealer_open(plan, &options, ret_dealer);
}

/* The state of a place is that of its epoch's start. An earlier epoch is reached from the run's
 * start, where all counts are zero. */
static tundish_status
go_to_step(struct explain *explain, const struct plan *plan, struct dealer *dealer)
{
    uint64_t zeros[PLACE_STATE_MAX] = { 0 };
    struct dealer_standing standing = { .epoch = explain->epoch, .step = explain->step };
    size_t own = dealer_state_words(dealer);

    if (explain->token != NULL && explain->epoch >= explain->standing.header_epoch) {
        standing.from = explain->standing.header_epoch;
        standing.words = explain->place.state;
        standing.word_count = explain->place.state_count;
        place_own_state(plan, own, &standing.words, &standing.word_count);
    } else {
        standing.words = zeros;
        standing.word_count = own;
    }
    if (own > PLACE_STATE_MAX)
        return tnd_fail(TUNDISH_E_PIPELINE, "a place stores the state of at most %d random stages",
                        PLACE_STATE_MAX / 2);
    explain->counts_epochs |= own > 0 && standing.from != standing.epoch;
    return dealer_go_to(dealer, &standing);
}

static tundish_status
no_such_step(const struct explain *explain)
{
    return tnd_fail(TUNDISH_E_ARGUMENT,
                    "epoch %llu ends before step %llu: its next batch is --epoch %llu --step 0",
                    (unsigned long long)explain->epoch, (unsigned long long)explain->step,
                    (unsigned long long)explain->epoch + 1);
}

/* How many slices the step of another worker has. */
static tundish_status
count_slices(struct explain *explain, uint32_t worker, uint32_t *ret_count)
{
    const struct plan *plan = explain->pipeline.plans[worker];
    struct deal_round round = { 0 };
    struct dealer *dealer = NULL;
    tundish_status status = open_dealer(explain, plan, &dealer);

    if (status == TUNDISH_OK)
        status = go_to_step(explain, plan, dealer);
    if (status == TUNDISH_OK)
        status = dealer_next(dealer, &round);
    *ret_count = round.present_count;
    dealer_release_round(&round);
    dealer_close(dealer);
    return status;
}

/* An epoch ends for all workers at the same step: when none has a slice, or, with
 * drop_remainder_step, when not all have one. Other workers are asked only where that decides. */
static tundish_status
check_delivered(struct explain *explain)
{
    const struct plan *plan = explain_plan(explain);
    bool drop_partial = plan->stream->distribute.drop_remainder_step;
    uint32_t workers = explain->pipeline.worker_count, present = explain->round.present_count;
    tundish_status status = TUNDISH_OK;

    for (uint32_t w = 0; w < workers && status == TUNDISH_OK && (present == 0 || drop_partial);
         w++) {
        uint32_t count = 0;

        if (w != explain->worker)
            status = count_slices(explain, w, &count);
        present += count;
    }
    if (status == TUNDISH_OK &&
        (present == 0 || (drop_partial && present < workers * plan->replicas)))
        status = no_such_step(explain);
    return status;
}

static tundish_status
deal(struct explain *explain)
{
    const struct plan *plan = explain_plan(explain);
    struct source_files_options options = {
        .root = plan->file->root,
        .cache_folder = explain->pipeline_options.cache,
        .row_group_bytes = plan->stream->deliver.memory_limit,
        .skip_damage = plan->stream->deliver.skip_errors,
        .remote = &plan->file->remote,
    };
    tundish_status status = source_files_open(&options, &explain->files);

    explain->landmarks = place_landmarks_open(plan, NULL);
    if (status == TUNDISH_OK)
        status = open_dealer(explain, plan, &explain->dealer);
    if (status == TUNDISH_OK)
        status = go_to_step(explain, plan, explain->dealer);
    if (status == TUNDISH_OK)
        status = dealer_next(explain->dealer, &explain->round);
    return status == TUNDISH_OK ? check_delivered(explain) : status;
}

static void
find_origins(struct explain *explain)
{
    const struct plan *plan = explain_plan(explain);
    const struct deal_slice *slice = &explain->round.slices[explain->replica];

    explain->evaluation = (struct evaluation){
        .files = explain->files,
        .scratch = scratch_open(),
        .skip_bad = plan->stream->deliver.skip_errors,
    };
    /* Content has the limits that a server would have. */
    explain->memory.budget = content_budget_open(plan, 1);
    scratch_share(explain->evaluation.scratch, &explain->memory);
    fill_open(plan, &explain->fill);
    if (slice->present)
        origins_open(&explain->evaluation, plan->graph->root, slice->words, &explain->origins);
}

tundish_status
explain_find(struct explain *explain)
{
    tundish_status status;

    choose_step(explain);
    status = check_stream(explain);
    if (status == TUNDISH_OK)
        status = check_place(explain);
    if (status == TUNDISH_OK)
        status = deal(explain);
    if (status != TUNDISH_OK)
        return status;
    find_origins(explain);
    if (explain->has_row && explain->row >= explain->origins.row_count)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "--row %llu, but the batch has %zu row%s (0 is the first)",
                        (unsigned long long)explain->row, explain->origins.row_count,
                        TND_PLURAL(explain->origins.row_count));
    return TUNDISH_OK;
}

void
explain_close(struct explain *explain)
{
    origins_close(&explain->origins);
    fill_close(&explain->fill);
    scratch_close(explain->evaluation.scratch);
    budget_close(explain->memory.budget);
    dealer_release_round(&explain->round);
    dealer_close(explain->dealer);
    place_landmarks_close(explain->landmarks);
    source_files_close(explain->files);
    pipeline_close(&explain->pipeline);
    free(explain->place_bytes);
}
