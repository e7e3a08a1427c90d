/* plan.c - a stream's plan, step by step. */
#include "plan/plan.h"

#include <stdlib.h>

#include "content/content.h"
#include "core/memory.h"
#include "core/plural.h"
#include "order/order.h"
#include "plan/build.h"
#include "source/source.h"

static void
number_nodes(struct plan *plan, struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        graph->nodes[i]->index = plan->node_count++;
        if (graph->nodes[i]->body != NULL)
            number_nodes(plan, graph->nodes[i]->body);
    }
}

static tundish_status
build(struct plan_builder *builder)
{
    struct plan *plan = builder->plan;
    tundish_status status =
        build_graph(builder, &plan->stream->dataset, NULL, NULL, NULL, &plan->graph);

    if (status != TUNDISH_OK || plan->graph->root == NULL)
        return TUNDISH_E_PIPELINE;
    plan->user_root = plan->graph->root;
    status = build_types(builder, plan->graph);
    if (status == TUNDISH_OK)
        status = build_distribution(builder);
    if (status == TUNDISH_OK)
        status = build_layout(builder, plan->graph);
    if (status == TUNDISH_OK)
        status = build_fusion(builder, plan->graph);
    if (status == TUNDISH_OK)
        status = build_draws(builder);
    if (status != TUNDISH_OK)
        return status;
    build_words(plan->graph);
    number_nodes(plan, plan->graph);
    plan->rows_apart = plan->graph->root->width == 1 && plan->graph->root->run_words == 1 &&
                       !order_gathered(plan->graph->root, 0).in_pieces &&
                       !build_is_wide(plan->graph->root);
    plan->cuts_batches = plan->graph->root->order != NULL &&
                         plan->graph->root->order->form == ORDER_SLICES &&
                         plan->graph->root->cuts_content;
    schema_pass_all(&plan->element_spec, &plan->graph->root->schema);
    /* With several workers a slice may be empty on any step, so its row count is never static. */
    for (uint32_t i = 0; plan->options.worker_count > 1 && i < plan->element_spec.count; i++)
        if (plan->element_spec.columns[i].rank > 0)
            plan->element_spec.columns[i].shape[0] = -1;
    return build_widen(builder);
}

/* Only lanes share out a batch. Readers of a queue or a broadcast, and readers of an evaluation,
 * get whole batches. */
static uint32_t
replicas_of(const struct spec_distribute *distribute, uint32_t asked)
{
    if (distribute->delivery != DELIVER_LANES || distribute->evaluation_shards != 0)
        return 1;
    return asked != 0 ? asked : distribute->replicas;
}

tundish_status
plan_open(const struct spec_file *file, const struct spec_stream *stream,
          const struct plan_options *options, struct spec_errors *errors, struct plan **ret_plan)
{
    struct plan *plan = tnd_zalloc(1, sizeof *plan);
    struct plan_builder builder = { .plan = plan, .errors = errors };
    tundish_status status;

    plan->file = file;
    plan->stream = stream;
    plan->options = *options;
    plan->replicas = replicas_of(&stream->distribute, options->replicas);
    plan->global_batch = -1;
    seed_source_open(&builder.seeds, file, options->root_seed);
    status = build(&builder);
    free(builder.drawn);
    plan->draws_from_root |= builder.seeds.root_draws > 0;
    if (status != TUNDISH_OK) {
        plan_close(plan);
        return tnd_fail(TUNDISH_E_PIPELINE, "the pipeline file has %zu error%s", errors->count,
                        TND_PLURAL(errors->count));
    }
    *ret_plan = plan;
    return TUNDISH_OK;
}

void
plan_close(struct plan *plan)
{
    if (plan == NULL)
        return;
    build_graph_close(plan->graph);
    build_widen_close(plan);
    schema_close(&plan->element_spec);
    free(plan->policy_reason);
    free(plan->rule_reason);
    free(plan);
}

bool
plan_fetches_once(const struct plan *plan)
{
    return plan->file->remote.fetch_once && plan->policy != SHARD_FILE;
}

bool
plan_has_owners(const struct plan *plan)
{
    return plan->stream->distribute.files_local || plan_fetches_once(plan);
}

const struct plan_node *
plan_find_whole_files(const struct plan_graph *graph)
{
    const struct plan_node *found = NULL;

    for (uint32_t i = 0; i < graph->node_count && found == NULL; i++) {
        const struct plan_node *node = graph->nodes[i];

        if ((node->source != NULL && node->source->whole_files) ||
            (node->content != NULL && node->content->paths_of != NULL))
            found = node;
        else if (node->body != NULL)
            found = plan_find_whole_files(node->body);
    }
    return found;
}

char *
plan_learned(const struct plan_node *node)
{
    char *(*learned)(const void *state) = node->source != NULL    ? node->source->learned
                                          : node->content != NULL ? node->content->learned
                                                                  : NULL;

    return learned != NULL ? learned(node->state) : NULL;
}

const char *
plan_policy_name(enum spec_auto_shard policy)
{
    static const char *const names[] = { "AUTO", "FILE", "DATA", "HINT", "OFF" };

    return names[policy];
}
