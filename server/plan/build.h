/* build.h - the steps that plan_open takes, one after the other. */
#ifndef PLAN_BUILD_H
#define PLAN_BUILD_H

#include "plan/plan.h"
#include "plan/seeds.h"

/* The seeds of a stage in a graph: a named dataset draws once, however often it is mentioned. */
struct drawn_seeds {
    const struct plan_graph *graph;
    const struct spec_stage *stage;
    struct seed_pair pair;
};

struct plan_builder {
    struct plan *plan;
    struct spec_errors *errors;
    struct seed_source seeds;
    struct drawn_seeds *drawn;
    uint32_t drawn_count;
    uint32_t depth; /* of functions inside functions */
};

/* The name that the stage shares its draws by, or NULL: it draws for itself. */
const char *draws_name(const struct spec_stage *stage);

/* The ordinal before `node` that numbers for the stage, by its name, or NULL: it needs one. */
const struct plan_node *draws_ordinal(const struct spec_stage *stage, const struct plan_node *node);

/* 1. Stages to nodes, seeds drawn in the order written. */
tundish_status build_graph(struct plan_builder *builder, const struct spec_dataset *dataset,
                           struct plan_graph *outside, struct plan_node *outer,
                           uint32_t *function_index, struct plan_graph **ret_graph);

/* Make `node`, which only moves elements, read `below`, and give it the same columns. */
void build_stand_after(struct plan_node *node, struct plan_node *below);

/* A new node that reads `below` and only moves its elements. */
struct plan_node *build_inserted(struct plan_graph *graph, struct plan_node *below,
                                 const struct order_ops *order);
void build_graph_close(struct plan_graph *graph);

/* 2. The columns after every node; sources and content stages are opened. */
tundish_status build_types(struct plan_builder *builder, struct plan_graph *graph);

/* 3. Rebatching and sharding put in, where TensorFlow puts them. */
tundish_status build_distribution(struct plan_builder *builder);

/* 4. Words of an element, and numbers of dataset objects. */
tundish_status build_layout(struct plan_builder *builder, struct plan_graph *graph);

/* 4a. The random nodes of a graph that are one dataset object get one number. */
void build_objects(struct plan_graph *graph);

/* 5. Content stages see what follows them; those that are cheaper together are made together. */
tundish_status build_fusion(struct plan_builder *builder, struct plan_graph *graph);

/* 6. Ordinals get the counters that they count in, stages that draw the ordinals that they draw by.
 */
tundish_status build_draws(struct plan_builder *builder);

/* 7. Columns of sources that stages take by their words are found, and sources of which blank
 * records are passed over. */
void build_words(struct plan_graph *graph);

/* 8. deliver.widen, once the columns of a batch are known. Close accepts a half-made plan. */
tundish_status build_widen(struct plan_builder *builder);
void build_widen_close(struct plan *plan);

/* Must a slice of what `node` yields be cut from the content of the whole batch? */
bool build_is_wide(const struct plan_node *node);

/* The node whose only input this is, or NULL. */
struct plan_node *build_reader_of(const struct plan_graph *graph, const struct plan_node *node);

/* A stage that needs its input's end, which never comes, is complained of. */
tundish_status build_check_end(const struct plan_builder *builder, const struct plan_node *node);

#endif
