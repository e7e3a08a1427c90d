/* order_rows.c - elements of an indexed input by their numbers: those of a list (rows), or drawn by
 * weights (sample_rows, as torch's WeightedRandomSampler).
 *
 * Weights become integers once, a sum of those so far for each row, so that every machine draws
 * alike. With replacement a draw follows from its own number alone. Without, an iterator draws all
 * of its rows when the first is wanted. Either way any position can be reached directly.
 */
#include "order/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"
#include "core/philox.h"
#include "order/cardinality.h"
#include "order/planning.h"

enum { CHUNK = 256 };

static const uint64_t WHOLE = UINT64_C(1) << 62; /* the sum of all weights */

/* node->arguments; the table is node->table. */
struct rows_arguments {
    uint64_t count; /* elements of a pass */
    uint64_t needs; /* rows of the input: at least, or in all */
    bool needs_all;
    bool draws;
};

struct rows {
    struct order_iterator *input;
    bool is_ready;
    uint64_t at;
    uint64_t *drawn; /* without replacement */
    const uint64_t *list;
    struct tnd_philox philox;
};

static struct rows *
state_of(struct order_iterator *iterator)
{
    return (struct rows *)iterator->state;
}

static const struct rows_arguments *
arguments_of(const struct order_iterator *iterator)
{
    return iterator->node->arguments;
}

static tundish_status
rows_open(struct order_iterator *iterator)
{
    return order_open(iterator->node->inputs[0], iterator->instance, &state_of(iterator)->input);
}

/* The rows whose weights reach beyond the targets, in their place. All are sought side by side, so
 * that they wait for memory together. */
static void
find_rows(const uint64_t *sums, uint64_t count, uint64_t *targets, size_t target_count)
{
    uint64_t lows[CHUNK] = { 0 };

    while (count > 1) {
        uint64_t half = count / 2;

        for (size_t i = 0; i < target_count; i++)
            lows[i] += half & -(uint64_t)(sums[lows[i] + half - 1] <= targets[i]);
        count -= half;
    }
    memcpy(targets, lows, target_count * sizeof *targets);
}

/* A tree of sums (Fenwick's), of which a row is taken out at a time. */
struct urn {
    uint64_t *sums; /* [i] of the i & -i weights up to weight i - 1; from 1 on */
    uint64_t count, step, total;
};

static void
urn_open(struct urn *urn, const uint64_t *sums, uint64_t count)
{
    urn->sums = tnd_alloc((count + 1) * sizeof *urn->sums);
    urn->count = count;
    urn->step = 1;
    while (urn->step <= count / 2)
        urn->step *= 2;
    urn->total = count > 0 ? sums[count - 1] : 0;
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t before = i - (i & -i);

        urn->sums[i] = sums[i - 1] - (before > 0 ? sums[before - 1] : 0);
    }
}

static uint64_t
urn_take(struct urn *urn, uint64_t target)
{
    uint64_t row = 0, weight;

    for (uint64_t step = urn->step; step > 0; step /= 2)
        if (row + step <= urn->count && urn->sums[row + step] <= target) {
            row += step;
            target -= urn->sums[row];
        }
    /* Its own weight: that of the smallest tree it ends, less the others in it. */
    weight = urn->sums[row + 1];
    for (uint64_t i = row, end = row + 1 - ((row + 1) & -(row + 1)); i > end; i -= i & -i)
        weight -= urn->sums[i];
    for (uint64_t i = row + 1; i <= urn->count; i += i & -i)
        urn->sums[i] -= weight;
    urn->total -= weight;
    return row;
}

/* Uniform below `limit`, which is at most WHOLE or little more. */
static uint64_t
draw_below(struct tnd_random *random, uint64_t limit)
{
    uint64_t mask = UINT64_MAX >> __builtin_clzll(limit), number;

    do {
        number = tnd_random_next(random);
        number = (number << 32 | tnd_random_next(random)) & mask;
    } while (number >= limit);
    return number;
}

static uint64_t *
draw_all(const struct plan_node *node, const struct tnd_philox *philox, uint64_t count)
{
    struct tnd_random random = tnd_random_of(*philox);
    uint64_t *drawn = tnd_alloc((count + 1) * sizeof *drawn);
    struct urn urn;

    urn_open(&urn, node->table, node->table_count);
    for (uint64_t i = 0; i < count; i++)
        drawn[i] = urn_take(&urn, draw_below(&random, urn.total));
    free(urn.sums);
    return drawn;
}

/* On first use: counting the input may scan files. */
static tundish_status
prepare(struct order_iterator *iterator)
{
    const struct rows_arguments *arguments = arguments_of(iterator);
    const struct plan_node *node = iterator->node;
    struct rows *rows = state_of(iterator);
    uint64_t there = 0;
    tundish_status status;

    if (rows->is_ready)
        return TUNDISH_OK;
    status = rows->input->ops->count(rows->input, &there);
    if (status != TUNDISH_OK)
        return status;
    if (arguments->needs_all && there != arguments->needs)
        return order_fail(iterator, TUNDISH_E_PIPELINE,
                          "there are %llu weights, and its input has %llu elements: there must be "
                          "one for each",
                          (unsigned long long)arguments->needs, (unsigned long long)there);
    if (there < arguments->needs)
        return order_fail(iterator, TUNDISH_E_PIPELINE,
                          "row %llu is asked for, and its input has %llu elements: the numbers of "
                          "rows begin with 0",
                          (unsigned long long)arguments->needs - 1, (unsigned long long)there);
    rows->list = node->table;
    rows->philox = tnd_philox_of_seeds(node->seed, iterator->iterator_number);
    if (arguments->draws && !order_is_true(node, "replacement"))
        rows->list = rows->drawn = draw_all(node, &rows->philox, arguments->count);
    else if (arguments->draws)
        rows->list = NULL;
    rows->is_ready = true;
    return TUNDISH_OK;
}

/* The draw of a position, with replacement: a number below the sum of all weights. */
static uint64_t
draw_at(const struct rows *rows, uint64_t position)
{
    struct tnd_philox philox = rows->philox;
    uint32_t words[4];
    const uint32_t *own = &words[position % 2 * 2]; /* a block serves two */

    tnd_philox_skip(&philox, position / 2);
    tnd_philox_block(&philox, words);
    return ((uint64_t)own[0] << 32 | own[1]) & (WHOLE - 1);
}

/* The elements at some positions: `positions`, or, if that is NULL, those from `from` on. */
static tundish_status
take(struct order_iterator *iterator, const uint64_t *positions, uint64_t from, size_t count,
     uint64_t *words)
{
    const struct rows *rows = state_of(iterator);
    uint64_t numbers[CHUNK];
    tundish_status status = TUNDISH_OK;

    for (size_t done = 0; done < count && status == TUNDISH_OK;) {
        size_t some = count - done < CHUNK ? count - done : CHUNK;

        for (size_t i = 0; i < some; i++) {
            uint64_t position = positions != NULL ? positions[done + i] : from + done + i;

            must(position < arguments_of(iterator)->count);
            numbers[i] = rows->list != NULL ? rows->list[position] : draw_at(rows, position);
        }
        if (rows->list == NULL)
            find_rows(iterator->node->table, iterator->node->table_count, numbers, some);
        status =
            rows->input->ops->at(rows->input, numbers, some, words + done * iterator->node->width);
        done += some;
    }
    return status;
}

static tundish_status
rows_at(struct order_iterator *iterator, const uint64_t *indices, size_t index_count,
        uint64_t *words)
{
    tundish_status status = prepare(iterator);

    return status == TUNDISH_OK ? take(iterator, indices, 0, index_count, words) : status;
}

static enum order_result
rows_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct rows *rows = state_of(iterator);
    uint64_t left = arguments_of(iterator)->count - rows->at;

    if (prepare(iterator) != TUNDISH_OK)
        return ORDER_FAILED;
    if (left == 0)
        return ORDER_END;
    if (max > left)
        max = (size_t)left;
    if (take(iterator, NULL, rows->at, max, words) != TUNDISH_OK)
        return ORDER_FAILED;
    rows->at += max;
    *ret_count = max;
    return ORDER_OK;
}

static enum order_result
rows_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct rows *rows = state_of(iterator);
    uint64_t left = arguments_of(iterator)->count - rows->at;

    *ret_passed = count < left ? count : left;
    rows->at += *ret_passed;
    return count <= left ? ORDER_OK : ORDER_END;
}

static tundish_status
rows_count(struct order_iterator *iterator, uint64_t *ret_count)
{
    *ret_count = arguments_of(iterator)->count;
    return prepare(iterator);
}

static int64_t
rows_cardinality(const struct plan_node *node, const struct order_counting *counting)
{
    const struct rows_arguments *arguments = node->arguments;

    (void)counting;
    return (int64_t)arguments->count;
}

static void
rows_close(struct order_iterator *iterator)
{
    struct rows *rows = state_of(iterator);

    free(rows->drawn);
    order_close(rows->input);
}

static tundish_status
rows_check_inputs(const struct order_planning *planning, const struct plan_node *node)
{
    if (order_is_indexed(node->inputs[0]))
        return TUNDISH_OK;
    return order_complain(planning->errors, node,
                          "%s needs a random-access input (a source, or take, skip, shard or "
                          "flat_map of one), not %s: put %s directly after the source",
                          node->name, order_node(node->inputs[0])->name, node->name);
}

static tundish_status
take_list(const struct order_planning *planning, struct plan_node *node,
          const struct order_numbers *numbers)
{
    struct rows_arguments *arguments = node->arguments;

    if (!numbers->are_integers)
        return order_complain(planning->errors, node,
                              "%s: indices are integers: save them as numpy.int64", node->name);
    node->table = tnd_alloc((numbers->count + 1) * sizeof *node->table);
    node->table_count = arguments->count = numbers->count;
    for (uint64_t i = 0; i < numbers->count; i++) {
        int64_t index = order_numbers_integer(numbers, i);

        if (index < 0)
            return order_complain(planning->errors, node,
                                  "%s: index %llu of the file is %lld: "
                                  "the numbers of rows begin with 0",
                                  node->name, (unsigned long long)i, (long long)index);
        node->table[i] = (uint64_t)index;
        if (node->table[i] >= arguments->needs)
            arguments->needs = node->table[i] + 1;
    }
    return TUNDISH_OK;
}

/* Is each a weight? *ret_sum of all, *ret_drawable: those that are not 0. */
static tundish_status
add_weights(const struct order_planning *planning, const struct plan_node *node,
            const struct order_numbers *numbers, double *ret_sum, uint64_t *ret_drawable)
{
    *ret_sum = 0;
    *ret_drawable = 0;
    for (uint64_t i = 0; i < numbers->count; i++) {
        double weight = order_numbers_float(numbers, i);

        if (!(weight >= 0) || !isfinite(weight))
            return order_complain(planning->errors, node,
                                  "%s: weight %llu of the file is %g: a weight is 0 or more",
                                  node->name, (unsigned long long)i, weight);
        *ret_sum += weight;
        *ret_drawable += weight > 0;
    }
    if (!isfinite(*ret_sum))
        return order_complain(planning->errors, node,
                              "%s: the sum of the weights is too large: divide them all by one "
                              "number",
                              node->name);
    return TUNDISH_OK;
}

/* Sums of the weights so far, as parts of WHOLE. A weight above 0 has a part, however small. */
static void
make_sums(struct plan_node *node, const struct order_numbers *numbers, double sum)
{
    uint64_t before = 0, last = 0;
    double so_far = 0;

    node->table = tnd_alloc((numbers->count + 1) * sizeof *node->table);
    node->table_count = numbers->count;
    for (uint64_t i = 0; i < numbers->count; i++) {
        double weight = order_numbers_float(numbers, i);

        so_far += weight;
        if (weight > 0) {
            uint64_t here = (uint64_t)(so_far / sum * (double)WHOLE);

            before = here > before ? here : before + 1;
            last = i;
        }
        node->table[i] = before;
    }
    /* Rounding must not leave a rest that belongs to no row. */
    for (uint64_t i = last; i < numbers->count; i++)
        if (node->table[i] < WHOLE)
            node->table[i] = WHOLE;
}

static tundish_status
take_weights(const struct order_planning *planning, struct plan_node *node,
             const struct order_numbers *numbers)
{
    struct rows_arguments *arguments = node->arguments;
    int64_t asked = order_literal(node, "num_samples", -1);
    uint64_t drawable;
    double sum;
    tundish_status status = add_weights(planning, node, numbers, &sum, &drawable);

    arguments->count = asked >= 0 ? (uint64_t)asked : numbers->count;
    arguments->needs = numbers->count;
    arguments->needs_all = arguments->draws = true;
    if (status != TUNDISH_OK)
        return status;
    if (arguments->count > 0 && drawable == 0)
        return order_complain(planning->errors, node, "%s: no weight is more than 0", node->name);
    if (!order_is_true(node, "replacement") && arguments->count > drawable)
        return order_complain(planning->errors, node,
                              "%s: %llu rows are to be drawn, each once, and %llu have a weight of "
                              "more than 0: lower num_samples, or write replacement: true",
                              node->name, (unsigned long long)arguments->count,
                              (unsigned long long)drawable);
    make_sums(node, numbers, sum);
    return TUNDISH_OK;
}

static enum order_seeds
rows_seeds(const struct spec_stage *stage)
{
    (void)stage;
    return ORDER_SEEDS_OWN;
}

#define ROWS_OPS                                                                                   \
    .form = ORDER_PASSES, .alike = ORDER_ALIKE_COUNT,                                              \
    .arguments_bytes = sizeof(struct rows_arguments), .state_bytes = sizeof(struct rows),          \
    .open = rows_open, .next = rows_next, .close = rows_close, .count = rows_count, .at = rows_at, \
    .pass_over = rows_pass_over, .check_inputs = rows_check_inputs,                                \
    .cardinality = rows_cardinality

const struct order_ops order_rows = {
    .name = "rows", .numbers = "indices", .take_numbers = take_list, ROWS_OPS
};

const struct order_ops order_sample_rows = { .name = "sample_rows",
                                             .numbers = "weights",
                                             .take_numbers = take_weights,
                                             .seeds = rows_seeds,
                                             ROWS_OPS };
