/* plan_node.h - the plan's tree as data: one node a stage, and the graphs that nodes share a life
 * in.
 *
 * Sources, order and content stages read it; only the planner (plan.h) writes it. After plan_open
 * nothing here changes, and any thread may read it.
 */
#ifndef PLAN_PLAN_NODE_H
#define PLAN_PLAN_NODE_H

#include "column/schema.h"
#include "column/words.h"
#include "spec/spec.h"

struct content_ops;
struct order_ops;
struct source_ops;

enum { PLAN_WIDTH_MAX = 64 };

/* A column of a source of which stages may make integers, word by word (column/words.h). */
struct plan_words {
    bool are_enough;          /* nobody reads the texts themselves */
    struct words_maker maker; /* of a stage that all rows come to; zeros: of none */
};

struct plan_node {
    const struct spec_stage *stage;    /* NULL: put in by distribution */
    const char *name;                  /* the stage's, or deal_split, deal_carry, shard */
    const struct order_ops *order;     /* SOURCE and ORDER, else NULL */
    const struct source_ops *source;   /* SOURCE, else NULL */
    const struct content_ops *content; /* CONTENT (and answers to an order stage), else NULL */
    void *state;                       /* of source or content ops */

    uint32_t input_count;
    struct plan_node **inputs;
    struct plan_graph *body; /* interleave, flat_map: what runs on each outer element */

    uint32_t number;      /* in its graph: index of its dataset object's state, which nodes share */
    uint32_t index;       /* in the plan, bodies included: below plan->node_count */
    struct schema schema; /* of an element after this stage */
    uint32_t depth;       /* how often it has been batched */
    uint32_t width;       /* words of an element; PLAN_WIDTH_MAX at most */
    uint64_t run_words;   /* bit i: word i owns a run */
    uint32_t first_word;  /* as an input of a stage that unites several: where its words go */
    uint32_t draw_word; /* of a stage that draws: the word of its input that says by which number */
    bool replays;       /* it counts with nodes elsewhere: no element can be leapt over */
    bool batch_wide;    /* a slice cannot be made from its rows alone */
    uint64_t learned_hash; /* of the statistics that this stage uses; 0: none */

    /* Stages that are made as one, the last of which this is: the first of them, and how. NULL: it
     * is made alone. */
    const struct plan_node *first;
    const struct content_ops *fused;
    void *fused_state;

    struct plan_words *words; /* of each column of a source; NULL: it is none */

    bool random;          /* draws seeds when an iterator is made */
    bool seeds_fixed;     /* reshuffle_each_iteration: false */
    uint64_t seed, seed2; /* by TensorFlow's rule */

    /* The stage that the seeds were drawn for: nodes of one graph that have the same are one
     * dataset object, which is mentioned several times. NULL: it draws nothing. */
    const struct spec_stage *seeds_for;

    /* The rows of its input's elements are not in their runs but only in their content: unbatch,
     * rebatch and the stages that deal cut them from there (order/arguments.h). */
    bool cuts_content;

    /* A reader whose filenames the plan has put before it: it reads the outer element's. */
    bool reads_outer_name;

    struct schema answers; /* to the questions of its order stage, one element of its input each */

    uint64_t *table; /* that its order stage has made of a file (order_ops.take_numbers) */
    uint64_t table_count;

    void *arguments; /* the plan's decisions: order_ops.arguments_bytes (order/arguments.h) */
};

/* The nodes that share a life: a stream, or a function's body, whose datasets are made again for
 * every outer element. */
struct plan_graph {
    struct plan_node *root;     /* the last stage */
    uint32_t node_count;        /* plan_node.number is below */
    struct plan_node **nodes;   /* in the order written: inputs before what reads them */
    struct plan_graph *outside; /* the graph in whose node's body this is, or NULL */
    struct plan_node *outer;    /* the input of that node: whose columns $name means here */
    struct schema outer_schema; /* outer's columns, then those from farther out it does not hide */
    bool captures;              /* content in here (or deeper) uses $name */
    uint32_t draw_count;        /* of the top: ordinal_arguments.counter is below; in bodies 0 */
    uint32_t own_draw_count;    /* those before it count at the top, the others in bodies alone */
};

/* May the texts of a source's column be left out, if they are words? */
static inline bool
plan_by_words(const struct plan_node *node, uint32_t column)
{
    return node->words != NULL && node->words[column].are_enough;
}

/* The only source that has an input. */
static inline bool
plan_is_cache_in_file(const struct plan_node *node)
{
    return node->source != NULL && node->input_count > 0;
}

#endif
