/* evaluate.h - references to content: reads the rows of some elements and takes them through every
 * stage up to a node of the plan.
 *
 * The content part mirrors the plan's tree. Order stages are passed over, but for those that change
 * what an element is: batch puts its rows' columns together, enumerate adds its ordinal, zip
 * unites, concatenate sorts by branch, interleave hands the outer element down.
 */
#ifndef BATCH_EVALUATE_H
#define BATCH_EVALUATE_H

#include "column/frame.h"
#include "order/order.h"
#include "stats/stats_writer.h"

struct kept_rows;

/* Where a thread counts what each stage costs it. */
struct evaluation_stage {
    struct tnd_stats_stage *values;
    struct tnd_stats_vocabulary **vocabularies; /* frame.vocabularies, or NULL */
    uint64_t what;                              /* in events */
    uint64_t own_ns;                            /* of its last call that was timed */
};

/* The work of the stages before the one that runs. */
struct evaluation_inner {
    int64_t ns;  /* spent */
    bool failed; /* one of them has */
};

struct evaluation_counters {
    struct evaluation_stage *stages;     /* by plan_node.index */
    struct tnd_stats_track_entry *track; /* and what it did, when */
    struct tnd_stats_stage **order; /* order_services.counters: the dealing thread's, or NULL */
    int64_t now_ns;                 /* read a moment ago, where nothing was done since; else 0 */
    bool is_untimed;                /* do not read the clock: it is a part among many short ones */
    uint64_t untimed_parts;         /* since one was timed */
    struct evaluation_inner inner;
    struct tnd_stats_stage *running; /* the stage that runs, and on how many elements */
    uint64_t running_count;
};

/* An element that was made to cut a slice from it, for the other slices that the same task cuts. */
struct evaluated_whole {
    const struct plan_node *node; /* that cuts; NULL: none was made */
    const uint64_t *words;        /* the element's, of the request that made it */
    struct frame frame;           /* in the evaluation's scratch, never changed */
};

/* One thread's means. */
struct evaluation {
    struct source_files *files;
    struct scratch *scratch;              /* results live in here; the caller resets it */
    struct evaluation_counters *counters; /* or NULL: nobody counts */
    const _Atomic int *stop;              /* frame.stop */
    bool skip_bad;                        /* leave bad rows out instead of failing */
    uint64_t skipped;                     /* rows left out so far, with the last one's text */
    char skipped_text[1024];
    void *observations;                  /* handed to every frame */
    const struct file_notes *file_notes; /* frame.file_notes */
    struct kept_rows *kept;              /* of looks, or NULL */
    struct evaluated_whole *whole;       /* while slices of one element are cut, else NULL */
};

struct evaluate_request {
    const uint64_t *words; /* the first element's */
    size_t stride;         /* words from one element to the next */
    int64_t count;
    const struct frame *outer; /* inside a function's body, else NULL: one element for each */
    void *const *destinations; /* of the node's columns, or NULL (frame.h) */
    const size_t *destination_bytes;
};

/* The columns of `request->count` elements of `node`. E_DATA with tnd_error_text for bad content.
 */
tundish_status evaluate(struct evaluation *evaluation, const struct plan_node *node,
                        const struct evaluate_request *request, struct frame *ret_frame);

/* Let stages of the order look at content by `evaluation`, whose scratch each look resets. */
void evaluate_serve_order(struct evaluation *evaluation, struct order_services *services);

/* The same by `evaluation`, another thread's: look, and say what came of it. Rows that it leaves
 * out are the look's, and not counted as the thread's. */
void evaluate_look(struct evaluation *evaluation, struct order_look *look);

#endif
