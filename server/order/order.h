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
#include <stdbool.h>
#include <stddef.h>

#include "order/digest.h"
#include "order/landmarks.h"
#include "order/look.h"
#include "order/ops.h"
#include "order/run.h"
#include "plan/plan_node.h"
#include "shm/stats.h"

struct byte_view;
struct frame;
struct order_iterator;
struct order_scope;
struct source_files;

struct order_services;

/* The frame is lent until the next call. Bad elements may be left out of it. */
typedef tundish_status order_evaluate(struct order_services *services, const struct plan_node *node,
                                      const struct order_scope *scope, const uint64_t *words,
                                      uint64_t count, const struct frame **ret_frame);
typedef tundish_status order_answer(struct order_services *services, const struct order_look *look,
                                    const struct frame **ret_frame);

/* The services that a session lends to all iterators of one worker. */
struct order_services {
    struct source_files *files; /* source/files/files.h */
    const _Atomic int *stop;    /* not 0: give up waiting and fail. May be NULL */
    uint32_t worker, worker_count, replicas_in_sync;
    uint32_t shard, shard_count; /* of an evaluation; 0 of 0: the whole */
    uint64_t root_seed;
    uint64_t memory_limit; /* of what a stage holds, in bytes; 0: what the machine has */
    bool resumed;          /* it stands where a place was taken */
    bool samples;          /* any elements will do, if they come soon: shuffles need not mix far */
    struct order_digest *digest;       /* of the input of the last shard; NULL: none */
    struct order_landmarks *landmarks; /* NULL: stages note none */
    uint64_t left_out;                 /* elements, since content that was looked at is bad */

    /* Where each node counts what its iterators do, by plan_node.index. NULL, or an entry that is:
     * nobody looks, and it goes to `unseen`. */
    struct tnd_stats_stage *const *counters;
    struct tnd_stats_stage unseen;
    int64_t inner_ns; /* spent so far in stages before the one that runs, where that is timed */
    int64_t now_ns;   /* read when a stage began that has done nothing since; else 0 */

    /* For stages that must look: the columns of some elements of `node`, and what the stage `node`
     * asks (order_ops.questions) about elements of its input, a column each. Implemented in
     * batch/evaluate.h; here to keep the layers. */
    order_evaluate *evaluate;
    order_answer *evaluate_answers;
    void *evaluator;

    /* The same by other threads; NULL: there are none. */
    const struct order_looks *looks;
    uint64_t *look_ns; /* by plan_node.index: what an element took of late. 0: it is not known */

    /* Count what a look has left out, as if it had been made here, or forget it. */
    void (*looked)(struct order_services *services, struct order_look *look, bool counts);
};

/* The outer elements that stages inside a function's body see as $name. */
struct order_scope {
    const struct order_scope *outside; /* of the enclosing body, or NULL */
    const struct schema *schema;       /* of the outer element */
    struct frame *values;              /* that one element; owned by the scope */
    const uint64_t *words;             /* its words, for elements that carry them along */
};

/* The state that a dataset object keeps from one iterator to the next (cache). */
struct order_kept {
    void *state;
    void (*close)(void *state);
};

/* A graph brought to life: its dataset objects, which live longer than their iterators. The two
 * counts are what a place stores; a resuming dealer may set them before the first order_open. */
struct order_instance {
    const struct plan_graph *graph;
    const struct order_scope *scope; /* NULL at the top */
    uint64_t *iterator_counts;       /* by plan_node.number: iterators made so far */
    uint64_t *element_counts;        /* by plan_node.number: what `cache` remembers */
    struct order_kept *kept;         /* by plan_node.number */
    uint64_t *draws;                 /* by ordinal_arguments.counter: elements numbered so far. The
                                        top's, which the instances of bodies count on in */
    uint32_t draw_count;             /* of those; 0 where nothing draws */
    struct order_services *services;
};

struct order_iterator {
    const struct plan_node *node;
    const struct order_ops *ops;
    struct order_instance *instance;
    struct tnd_stats_stage *counters; /* never NULL */
    size_t timed_from;                /* ORDER_TIMED_MIN, or SIZE_MAX */
    uint64_t iterator_number;         /* 0 for the first that its dataset object made */
    enum order_result next_result;    /* not OK: what order_next reports next, or from now on */
    struct order_failure *next_error; /* FAILED: to be told with it */
    max_align_t state[];
};

/* Bring a graph to life, and back. */
struct order_instance *order_instance_open(const struct plan_graph *graph,
                                           const struct order_scope *scope,
                                           struct order_services *services);
void order_instance_close(struct order_instance *instance);

/* The same for the body of the iterator's node and one outer element, which the scope holds. Its
 * ordinals go on where those of the bodies before it stand. */
struct order_instance *order_instance_open_body(const struct order_iterator *iterator,
                                                const struct order_scope *scope);

/* Make an iterator of `node` (of its nearest order stage, if it is a content node). */
tundish_status order_open(const struct plan_node *node, struct order_instance *instance,
                          struct order_iterator **ret_iterator);

/* The ways of order_next that are not the usual one. */
enum order_result order_next_settle(struct order_iterator *iterator, enum order_result result,
                                    size_t *ret_count);
enum order_result order_next_held(struct order_iterator *iterator, size_t *ret_count);
enum order_result order_next_timed(struct order_iterator *iterator, uint64_t *words, size_t max,
                                   size_t *ret_count);

/* Time a call only if it asks for at least this many elements and stats are read: below that the
 * clock costs too much. Untimed calls count as time of their caller. */
enum { ORDER_TIMED_MIN = 256 };

/* Elements of order_open's node; the caller owns the runs in them. *ret_count is set in every
 * case: 0 unless OK. May bring fewer than there are; only END is the end. */
static inline enum order_result
order_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    enum order_result result;

    *ret_count = 0;
    if (__builtin_expect(iterator->next_result != ORDER_OK, 0))
        return order_next_held(iterator, ret_count);
    result = max < iterator->timed_from ? iterator->ops->next(iterator, words, max, ret_count)
                                        : order_next_timed(iterator, words, max, ret_count);
    tnd_stats_add(&iterator->counters->rows, *ret_count);
    if (__builtin_expect(result != ORDER_OK, 0))
        return order_next_settle(iterator, result, ret_count);
    return ORDER_OK;
}

/* Pass over `count` elements. OK: all of them; else *ret_passed of them before END or FAILED. */
enum order_result order_pass_over(struct order_iterator *iterator, uint64_t count,
                                  uint64_t *ret_passed);

/* Give the elements at `stride` * index + `offset` of an input that is indexed. */
tundish_status order_at_stride(struct order_iterator *input, const uint64_t *indices,
                               size_t index_count, uint64_t stride, uint64_t offset,
                               uint64_t *words);
void order_close(struct order_iterator *iterator); /* accepts NULL */

/* Close *iterator and forget it. */
void order_drop(struct order_iterator **iterator);

/* The order stage that decides the elements of `node`: node itself, or the nearest above it. */
const struct plan_node *order_node(const struct plan_node *node);

/* Does `node` support random access by element index? */
bool order_is_indexed(const struct plan_node *node);

/* Can it be seen, by a later iterator or in content, if more elements of `node` are pulled than
 * tf.data would pull? If not, a stage may look ahead. */
bool order_shows_lookahead(const struct plan_node *node);

/* Are elements numbered in this body, or in one inside it? Those numbers outlive its datasets. */
bool order_numbers_draws(const struct plan_graph *body);

/* Does this stage make content of its input, to decide the order? */
bool order_reads_content(const struct plan_node *node);

/* The content of the runs in word `word` of an element of `node`. */
struct order_gathered order_gathered(const struct plan_node *node, uint32_t word);

/* Words of one row of them: what `unbatch` makes of this word, so its width is the sum over the
 * words of its input, 1 for those that are not runs. */
uint32_t order_row_width(const struct plan_node *node, uint32_t word);

/* For stages that unite several inputs (plan_node.first_word): the input that word `word` comes
 * from, and its word there. */
const struct plan_node *order_united_input(const struct plan_node *node, uint32_t word,
                                           uint32_t *ret_word);

/* As order_ops.gathered: of stages that unite several inputs; of those whose runs hold elements of
 * their only input. */
struct order_gathered order_gathered_united(const struct plan_node *node, uint32_t word);
struct order_gathered order_gathered_input(const struct plan_node *node, uint32_t word);

/* Does `is` hold for the node, any of its inputs or its body? */
bool order_any(const struct plan_node *node, bool (*is)(const struct plan_node *));

/* Make a scope for one outer element of `node` (evaluates it), and back. Takes over the words'
 * ownership, also when it fails. NO_VALUE: the element is bad and to be passed over. */
tundish_status order_scope_open(struct order_instance *instance, const struct plan_node *node,
                                const uint64_t *words, struct order_scope **ret_scope);
void order_scope_close(struct order_scope *scope, const struct plan_node *node);

/* Move `count` elements of `from_width` words, which lie at the beginning of `words`, apart: each
 * gets `to_width` words, zeros but for its own from `first_word` on. */
void order_spread(uint64_t *words, size_t count, uint32_t from_width, uint32_t to_width,
                  uint32_t first_word);

/* A parameter that may be a variable, where this iterator stands. Fails naming the stage's line if
 * the variable's value is not an integer scalar. */
tundish_status order_int(const struct order_iterator *iterator, const char *parameter,
                         int64_t *ret_value);

/* The same for any value of a stage: a list's item, say. The text of order_value_text is lent by
 * the pipeline file or the scope. */
tundish_status order_value_int(const struct order_instance *instance,
                               const struct spec_value *value, int64_t *ret_value);
tundish_status order_value_text(const struct order_instance *instance,
                                const struct spec_value *value, struct byte_view *ret_text);

/* May a stage hold `count` elements, of `bytes_each` bytes, at once? E_MEMORY naming the stage,
 * what it would take and the way out: less of `parameter`. Asked before room is made, never an
 * element. */
tundish_status order_room(const struct order_iterator *iterator, const char *parameter,
                          uint64_t elements, uint64_t bytes_each);

/* More room for a stage that holds more and more elements: twice what it has, but no more than it
 * will ever hold, nor than there is memory for. E_MEMORY as above if `needed` elements do not fit.
 */
struct order_growth {
    uint64_t room;    /* elements, now */
    uint64_t first;   /* the least that is made */
    uint64_t needed;  /* there must be room for these */
    uint64_t at_most; /* more are never held */
    uint64_t bytes_each;
};
tundish_status order_grow(const struct order_iterator *iterator, const char *parameter,
                          const struct order_growth *growth, size_t *ret_room);

/* Fail naming file and line of the iterator's stage. */
tundish_status order_fail(const struct order_iterator *iterator, tundish_status status,
                          const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
