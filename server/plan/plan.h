/* plan.h - the plan of a stream, made before anything runs.
 *
 * The plan is a tree of nodes (plan_node.h), one a stage, that mirrors the pipeline file, with the
 * stages that distribution adds (rebatching, sharding) put in where TensorFlow puts them. A node of
 * the order part makes iterators (order.h); a content node is passed over by the order and applied
 * afterwards to the elements that are wanted (batch/evaluate.h). After plan_open nothing here
 * changes, and any thread may read it.
 */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "plan/plan_node.h"
#include "plan/stage.h"

struct catalogue;
struct learned;
struct listed;
struct remote_seen;

/* deliver.widen of one column: what its consumer makes of it. */
struct plan_widen {
    tundish_dtype dtype; /* 0: nothing */
    uint32_t scale_count, offset_count;
    double *scale, *offset;
    tundish_layout layout;
};

enum plan_policy_source { POLICY_ASKED, POLICY_ONE_WORKER, POLICY_FILES_FOUND, POLICY_NO_FILES };

struct plan_options {
    uint32_t worker, worker_count;
    uint32_t replicas;                 /* of streams with lanes; 0: as the pipeline file says */
    uint64_t root_seed;                /* for what has no seed */
    const char *cache_folder;          /* NULL: the default one */
    const struct catalogue *catalogue; /* of all nodes' files (files: local), or NULL */
    struct remote_seen *seen;          /* what stores said, or NULL */
    struct listed *listed;             /* what patterns matched here, or NULL */
    const struct learned *learned;     /* content/learned/learned.h; NULL: nothing is */
    struct plan_learning *learning;    /* while `tundish analyze` runs; else NULL */
    stage_sample *sample;              /* plan/stage.h; NULL: no element can be had */
    bool batches_vary;                 /* rows are handed in: a batch is as many as come together */
};

/* The differences of a plan for learning: asked of every node at the top, in their order, before
 * it is opened. */
struct plan_learning {
    /* Sets *ret_ops to the stage's own, or to others to use instead. Not OK: the
     * node, and what follows it, cannot be part of this plan. */
    tundish_status (*before)(struct plan_learning *learning, const struct plan_node *node,
                             const struct stage_config *config, const struct content_ops **ret_ops);
    struct spec_names *missing; /* stage_config.missing of every node */
};

struct plan {
    const struct spec_file *file;
    const struct spec_stream *stream;
    struct plan_options options;
    uint32_t node_count;
    struct plan_graph *graph; /* graph->root yields slices: slice k is replica k % replicas' */
    uint32_t replicas;
    struct plan_node *user_root; /* the last stage that the user wrote */

    enum spec_auto_shard policy; /* resolved: never AUTO */
    char *policy_reason;         /* one sentence */
    enum spec_rebatch rule;      /* resolved: SPLIT or CARRY; no meaning unless rebatched */
    bool rebatched;              /* with one replica in all nothing is, whatever the rule */
    char *rule_reason;
    int64_t global_batch;       /* -1: not known */
    struct schema element_spec; /* of a slice, as TensorFlow reports it */
    struct plan_widen *widen;   /* one a column of element_spec */
    bool rows_apart;            /* a slice is one run, whose rows may be made apart */
    bool cuts_batches;          /* the slices of a step are cut from the content of one batch */

    /* The first stage that draws random numbers by the rows that its own worker has read; NULL: no
     * draw depends on the number of workers. */
    const struct plan_node *own_draws;

    bool draws_from_root; /* some stage has no seed in the file: the root seed decides for it */
    bool tells_root_seed; /* to a program, whose rows may depend on it */
};

/* Every error goes to `errors`; E_PIPELINE if there is any. */
tundish_status plan_open(const struct spec_file *file, const struct spec_stream *stream,
                         const struct plan_options *options, struct spec_errors *errors,
                         struct plan **ret_plan);
void plan_close(struct plan *plan);

/* Has each file at a URL one node that reads it for all (remote.fetch: once)? Where files are
 * dealt, each has one reader anyway. */
bool plan_fetches_once(const struct plan *plan);

/* Are there files that one node reads for all? */
bool plan_has_owners(const struct plan *plan);

/* A stage that reads files as they are, by their paths, or NULL. */
const struct plan_node *plan_find_whole_files(const struct plan_graph *graph);

/* A parameter that a stage has learned instead of being given it (content_ops.learned), as it would
 * be written. The caller frees it. NULL: there is none. */
char *plan_learned(const struct plan_node *node);

/* As in the pipeline file: AUTO, FILE, DATA, HINT, OFF. */
const char *plan_policy_name(enum spec_auto_shard policy);

#endif
