/* build.h - the steps that plan_open takes, one after the other. */
#ifndef PLAN_BUILD_H
#define PLAN_BUILD_H

#include "plan/plan.h"
#include "plan/seeds.h"

struct plan_builder {
    struct plan *plan;
    struct spec_errors *errors;
    struct seed_source seeds;
    uint32_t depth; /* of functions inside functions */
};

/* 1. Stages to nodes, seeds drawn in the order written. */
tundish_status build_graph(struct plan_builder *builder, const struct spec_dataset *dataset,
                           struct plan_graph *outside, struct plan_node *outer,
                           uint32_t *function_place, struct plan_graph **ret_graph);
struct plan_node *build_node(struct plan_graph *graph, const struct spec_stage *stage,
                             const char *name);
void build_graph_close(struct plan_graph *graph);

/* Are sample_from_datasets' weights, if any, together finite? */
tundish_status build_check_weights(const struct plan_builder *builder,
                                   const struct spec_stage *stage);

/* Does it draw from this one? Those of weight 0 are left out; where all are, the first stands for
 * an empty dataset and nothing is drawn. */
bool build_is_drawn(const struct spec_stage *stage, uint32_t dataset);
bool build_is_draw(const struct spec_stage *stage);

/* 2. The columns after every node; sources and content stages are opened. */
tundish_status build_types(struct plan_builder *builder, struct plan_graph *graph);

/* The columns of an order stage's elements. */
tundish_status build_order_types(struct plan_builder *builder, struct plan_node *node);

/* 3. Rebatching and sharding put in, where TensorFlow puts them. */
tundish_status build_distribution(struct plan_builder *builder);

/* 4. Words of an element, and numbers of dataset objects. */
tundish_status build_layout(struct plan_builder *builder, struct plan_graph *graph);

/* 5. Content stages that are cheaper together are made together. */
void build_fusion(struct plan_graph *graph);

/* 6. deliver.widen, once the columns of a batch are known. Close accepts a half-made plan. */
tundish_status build_widen(struct plan_builder *builder);
void build_widen_close(struct plan *plan);

/* Must a slice of what `node` yields be cut from the content of the whole batch? */
bool build_is_wide(const struct plan_node *node);

/* Is it a cache in a file of batches whose columns all have the rows that the order knows? Then the
 * element is a run, with the batch's record at every row; else it is one record. */
bool build_keeps_batches(const struct plan_node *node);

/* Does `node` go on for ever? (If its input has any element.) */
bool build_is_endless(const struct plan_node *node);

/* A stage that needs its input's end, which never comes, is complained of. */
tundish_status build_check_end(struct plan_builder *builder, const struct plan_node *node);

/* Complain at a node's stage. */
tundish_status build_complain(const struct plan_builder *builder, const struct plan_node *node,
                              const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The literal integer of a stage's parameter, or `otherwise` if it is a variable, null or absent.
 */
int64_t build_literal(const struct plan_node *node, const char *parameter, int64_t otherwise);

bool node_is(const struct plan_node *node, const char *name);

#endif
