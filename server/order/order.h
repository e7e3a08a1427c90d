/* order.h - an order stage says which element comes next. It moves references (run.h) and never
 * looks inside a row.
 *
 * One thread calls. Iterators mirror the plan's nodes; content nodes have none. A stage never pulls
 * more elements from its input, nor makes an iterator of it earlier, than tf.data would: the count
 * of iterators feeds reshuffling seeds, and ordinals count pulled elements. So a caller's max is an
 * upper bound that each stage passes on (or lowers: take, batch) to its input.
 */
#ifndef ORDER_ORDER_H
#define ORDER_ORDER_H

#include <stdatomic.h>
#include <stddef.h>

#include "order/run.h"
#include "plan/plan.h"

enum order_result {
    ORDER_OK,    /* at least one element */
    ORDER_END,   /* none, and none will follow */
    ORDER_FAILED /* none; tnd_error_text says why. The next call goes on behind the error, as
                    tf.data's iterators do, where the stage can; else ORDER_END */
};

struct order_scope;
struct source_files;

/* What a session lends to all iterators of one worker. */
struct order_services {
    struct source_files *files; /* source/files.h */
    const _Atomic int *stop;    /* not 0: give up waiting and fail. May be NULL */
    uint32_t worker, worker_count, replicas_in_sync;
    uint64_t root_seed;

    /* Content of some elements of `node`, for stages that must look: the predicate of filter, the
     * columns of an outer element. Implemented in batch/evaluate.h; here to keep the layers. */
    tundish_status (*evaluate)(struct order_services *services, const struct plan_node *node,
                               const struct order_scope *scope, const uint64_t *words,
                               uint64_t count, const struct frame **ret_frame);
    void *evaluator;
};

/* The outer elements that stages inside a function's body see as $name. */
struct order_scope {
    const struct order_scope *outside; /* of the enclosing body, or NULL */
    const struct schema *schema;       /* of the outer element */
    struct frame *values;              /* that one element; owned by the scope */
    const uint64_t *words;             /* its words, for elements that carry them along */
};

/* A graph brought to life: its dataset objects, which live longer than their iterators. */
struct order_instance {
    const struct plan_graph *graph;
    const struct order_scope *scope; /* NULL at the top */
    uint64_t *iterator_counts;       /* by plan_node.number: iterators made so far */
    struct order_services *services;
};

struct order_iterator {
    const struct plan_node *node;
    struct order_instance *instance;
    uint64_t iterator_number; /* 0 for the first that its dataset object made */
    max_align_t state[];
};

struct order_ops {
    const char *name;
    size_t state_bytes;

    /* Ready the state (zeroed). May fail half-way: close is called either way. */
    tundish_status (*open)(struct order_iterator *iterator);

    /* Write 1 to max elements (max >= 1) of node->width words each to `words`. */
    enum order_result (*next)(struct order_iterator *iterator, uint64_t *words, size_t max,
                              size_t *ret_count);

    /* Free everything, elements held included. Must accept a state that is all zeros. */
    void (*close)(struct order_iterator *iterator);
};

/* The table's entry for a stage, or NULL: not in this build. */
const struct order_ops *order_find(const char *name);

/* Bring a graph to life, and back. */
struct order_instance *order_instance_open(const struct plan_graph *graph,
                                           const struct order_scope *scope,
                                           struct order_services *services);
void order_instance_close(struct order_instance *instance);

/* Make an iterator of `node` (of its nearest order stage, if it is a content node). */
tundish_status order_open(const struct plan_node *node, struct order_instance *instance,
                          struct order_iterator **ret_iterator);

/* Elements of order_open's node. *ret_count is set in every case. */
enum order_result order_next(struct order_iterator *iterator, uint64_t *words, size_t max,
                             size_t *ret_count);
void order_close(struct order_iterator *iterator); /* accepts NULL */

/* The order stage that decides the elements of `node`: node itself, or the nearest above it. */
const struct plan_node *order_node(const struct plan_node *node);

/* Make a scope for one outer element of `node` (evaluates it), and back. Takes over the words'
 * ownership. */
tundish_status order_scope_open(struct order_instance *instance, const struct plan_node *node,
                                const uint64_t *words, struct order_scope **ret_scope);
void order_scope_close(struct order_scope *scope, const struct plan_node *node);

/* A parameter that may be a variable, where this iterator stands. Fails naming the stage's line if
 * the variable's value is not an integer scalar. */
tundish_status order_int(const struct order_iterator *iterator, const char *parameter,
                         int64_t *ret_value);

/* The same for any value of a stage: a list's item, say. Text goes to ret_text. */
tundish_status order_value_int(const struct order_instance *instance,
                               const struct spec_value *value, int64_t *ret_value);
tundish_status order_value_text(const struct order_instance *instance,
                                const struct spec_value *value, struct byte_view *ret_text);

/* Fail naming file and line of the iterator's stage. */
tundish_status order_fail(const struct order_iterator *iterator, tundish_status status,
                          const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
