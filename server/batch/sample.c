/* sample.c - see sample.h. */
#include "batch/sample.h"

#include <stdlib.h>

#include "batch/content_budget.h"
#include "batch/evaluate.h"
#include "batch/inputs.h"
#include "core/memory.h"
#include "core/must.h"
#include "order/failure.h"
#include "source/files/files.h"

struct sample {
    struct spec_stream stream; /* the stages before the one that asks */
    struct plan *plan;
    struct source_files *files;
    struct evaluation evaluation;
    struct budget_task memory;
    struct order_services services;
    struct order_instance *instance;
    struct order_iterator *iterator;
};

static tundish_status
sample_plan(struct sample *sample, const struct plan *plan, const struct spec_stage *stage)
{
    const struct spec_dataset *dataset = &plan->stream->dataset;
    struct plan_options options = plan->options;
    struct spec_errors errors = { 0 };
    uint32_t before = 0;
    tundish_status status;

    while (before < dataset->stage_count && &dataset->stages[before] != stage)
        before++;
    if (before == dataset->stage_count || before == 0)
        return tnd_fail(TUNDISH_E_PIPELINE, "it stands in a dataset within the stream's");
    if (plan->stream->distribute.files_local)
        return tnd_fail(TUNDISH_E_PIPELINE, "each node has files of its own (files: local)");
    sample->stream = *plan->stream;
    sample->stream.dataset.stage_count = before;
    sample->stream.distribute =
        (struct spec_distribute){ .replicas = 1, .from_function = true, .groups = 1 };
    options.learning = NULL;
    options.worker = 0;
    options.worker_count = options.replicas = 1;
    status = plan_open(plan->file, &sample->stream, &options, &errors, &sample->plan);
    spec_errors_close(&errors);
    if (status != TUNDISH_OK)
        return tnd_fail(TUNDISH_E_PIPELINE, "the stages before it cannot be run by themselves");
    return inputs_name_urls(sample->plan->graph)
               ? tnd_fail(TUNDISH_E_PIPELINE, "its input is behind URLs")
               : TUNDISH_OK;
}

static tundish_status
sample_open(struct sample *sample)
{
    const struct plan *plan = sample->plan;
    const struct source_files_options files_options = {
        .root = plan->file->root,
        .cache_folder = plan->options.cache_folder,
        .remote = &plan->file->remote,
    };
    tundish_status status = source_files_open(&files_options, &sample->files);

    sample->evaluation = (struct evaluation){ .files = sample->files, .scratch = scratch_open() };
    sample->memory.budget = content_budget_open(plan, 1);
    scratch_share(sample->evaluation.scratch, &sample->memory);
    if (status != TUNDISH_OK)
        return status;
    sample->services = (struct order_services){
        .files = sample->files,
        .worker_count = 1,
        .replicas_in_sync = 1,
        .root_seed = plan->options.root_seed,
        .samples = true,
    };
    evaluate_serve_order(&sample->evaluation, &sample->services);
    sample->instance = order_instance_open(plan->graph, NULL, &sample->services);
    return order_open(plan->graph->root, sample->instance, &sample->iterator);
}

static tundish_status
sample_use(struct sample *sample, int64_t most,
           tundish_status (*use)(void *context, const struct frame *input), void *context)
{
    const struct plan_node *root = sample->plan->graph->root;
    uint64_t *words = tnd_zalloc((size_t)most * root->width + 1, sizeof *words);
    struct evaluate_request request = { .words = words, .stride = root->width };
    struct frame frame;
    tundish_status status = TUNDISH_OK;

    while (request.count < most) {
        size_t got;
        enum order_result result =
            order_next(sample->iterator, words + (size_t)request.count * root->width,
                       (size_t)(most - request.count), &got);

        request.count += (int64_t)got;
        must_in_debug(request.count <= most);
        status = order_status(result);
        if (result != ORDER_OK)
            break;
    }
    if (status == TUNDISH_OK && request.count == 0)
        status = tnd_fail(TUNDISH_E_DATA, "its input has no element");
    if (status == TUNDISH_OK) {
        scratch_reset(sample->evaluation.scratch);
        status = evaluate(&sample->evaluation, root, &request, &frame);
    }
    if (status == TUNDISH_OK)
        status = use(context, &frame);
    run_words_release(words, (size_t)request.count, root->width, root->run_words);
    free(words);
    return status;
}

static void
sample_close(struct sample *sample)
{
    order_close(sample->iterator);
    order_instance_close(sample->instance);
    scratch_close(sample->evaluation.scratch);
    budget_close(sample->memory.budget);
    source_files_close(sample->files);
    plan_close(sample->plan);
}

tundish_status
sample_input(const struct plan *plan, const struct spec_stage *stage, int64_t most,
             tundish_status (*use)(void *context, const struct frame *input), void *context)
{
    struct sample sample = { 0 };
    tundish_status status = sample_plan(&sample, plan, stage);

    if (status == TUNDISH_OK)
        status = sample_open(&sample);
    if (status == TUNDISH_OK)
        status = sample_use(&sample, most, use, context);
    sample_close(&sample);
    return status;
}
