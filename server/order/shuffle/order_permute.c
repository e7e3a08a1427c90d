/* order_permute.c - all elements of an indexed input in random order, in constant memory. It has no
 * window, and any position can be reached directly. Each iterator has another order.
 *
 * Up to SMALL elements the permutation is a table, shuffled by Fisher and Yates. Beyond that it is
 * a Feistel network over a rectangle of rows x columns, the smallest nearly square one that holds
 * all numbers. Each round rotates the row by a hash of the column, then the column by a hash of the
 * row. The few numbers of the rectangle that are too large pass through again until the result is
 * not (cycle walking), so the numbers below the count are permuted among themselves.
 */
#include "order/cardinality.h"
#include "order/planning.h"

#include <stdlib.h>

#include "core/memory.h"
#include "core/must.h"
#include "core/philox.h"

enum { SMALL = 1 << 16, ROUNDS = 4, CHUNK = 256, LANES = 8 };

struct permute {
    struct order_iterator *input;
    bool counted;
    uint64_t count, at;
    uint32_t *table; /* for a small count */
    uint64_t rows, columns;
    uint64_t row_keys[ROUNDS], column_keys[ROUNDS];
};

static struct permute *
state_of(struct order_iterator *iterator)
{
    return (struct permute *)iterator->state;
}

static tundish_status
permute_open(struct order_iterator *iterator)
{
    const struct plan_node *input = iterator->node->inputs[0];

    if (!order_is_indexed(input))
        return order_fail(iterator, TUNDISH_E_PIPELINE,
                          "its input does not support random access: put permute directly after a "
                          "source, or use shuffle");
    return order_open(input, iterator->instance, &state_of(iterator)->input);
}

/* Uniform below `limit`, without bias. */
static uint32_t
draw_below(struct tnd_random *random, uint32_t limit)
{
    uint32_t unfair = (uint32_t)(0 - limit) % limit; /* 2^32 mod limit */
    uint64_t product;

    do
        product = (uint64_t)tnd_random_next(random) * limit;
    while ((uint32_t)product < unfair);
    return (uint32_t)(product >> 32);
}

static void
make_table(struct permute *permute, struct tnd_random *random)
{
    uint32_t count = (uint32_t)permute->count;

    permute->table = tnd_alloc(count * sizeof *permute->table);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t other = draw_below(random, i + 1);

        permute->table[i] = permute->table[other];
        permute->table[other] = i;
    }
}

/* Integer square root, bit by bit: the rectangle must be the same on every machine. */
static uint64_t
square_root(uint64_t number)
{
    uint64_t root = 0;

    for (uint64_t bit = UINT64_C(1) << 31; bit != 0; bit >>= 1)
        if ((root | bit) * (root | bit) <= number)
            root |= bit;
    return root;
}

/* Count the input and draw the keys, on first use: counting may scan files. Each iterator draws
 * from its own stretch of the generator, long enough for the largest table. */
static tundish_status
prepare(struct order_iterator *iterator)
{
    struct permute *permute = state_of(iterator);
    const struct plan_node *node = iterator->node;
    struct tnd_philox philox = tnd_philox_of_seeds(node->seed, node->seed2);
    struct tnd_random random;
    tundish_status status;

    if (permute->counted)
        return TUNDISH_OK;
    status = permute->input->ops->count(permute->input, &permute->count);
    if (status != TUNDISH_OK)
        return status;
    permute->counted = true;
    tnd_philox_skip(&philox, node->seeds_fixed ? 0 : iterator->iterator_number * (2 * SMALL));
    random = tnd_random_of(philox);
    if (permute->count <= SMALL) {
        make_table(permute, &random);
        return TUNDISH_OK;
    }
    permute->rows = square_root(permute->count - 1) + 1;
    permute->columns = (permute->count - 1) / permute->rows + 1;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t words[4];

        for (int k = 0; k < 4; k++)
            words[k] = tnd_random_next(&random);
        permute->row_keys[i] = (uint64_t)words[0] << 32 | words[1];
        permute->column_keys[i] = (uint64_t)words[2] << 32 | words[3];
    }
    return TUNDISH_OK;
}

/* A number below `limit` (at most 2^32) that depends on all bits of `value` and `key`. */
static inline uint64_t
hash_below(uint64_t value, uint64_t key, uint64_t limit)
{
    uint64_t hash = (value ^ key) * UINT64_C(0xD6E8FEB86659FD93);

    hash = (hash ^ hash >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return (hash >> 32) * limit >> 32;
}

/* value + by modulo limit, both below the limit, without a division. */
static inline uint64_t
rotate(uint64_t value, uint64_t by, uint64_t limit)
{
    value += by;
    return value >= limit ? value - limit : value;
}

static inline uint64_t
image_of(const struct permute *permute, uint64_t row, uint64_t column)
{
    for (;;) {
        uint64_t number;

        for (int i = 0; i < ROUNDS; i++) {
            row =
                rotate(row, hash_below(column, permute->row_keys[i], permute->rows), permute->rows);
            column = rotate(column, hash_below(row, permute->column_keys[i], permute->columns),
                            permute->columns);
        }
        number = column * permute->rows + row;
        if (number < permute->count)
            return number;
    }
}

/* image_of for LANES numbers at once. One image is a long chain of dependent steps; side by side
 * the chains overlap. */
static inline void
images_of(const struct permute *permute, uint64_t *rows, uint64_t *columns, uint64_t *ret_images)
{
    for (int i = 0; i < ROUNDS; i++) {
        for (int lane = 0; lane < LANES; lane++)
            rows[lane] =
                rotate(rows[lane], hash_below(columns[lane], permute->row_keys[i], permute->rows),
                       permute->rows);
        for (int lane = 0; lane < LANES; lane++)
            columns[lane] = rotate(
                columns[lane], hash_below(rows[lane], permute->column_keys[i], permute->columns),
                permute->columns);
    }
    for (int lane = 0; lane < LANES; lane++) {
        uint64_t number = columns[lane] * permute->rows + rows[lane];

        ret_images[lane] = __builtin_expect(number < permute->count, 1)
                               ? number
                               : image_of(permute, rows[lane], columns[lane]);
    }
}

/* The images of the `count` (at most CHUNK) numbers from permute->at on. Rows and columns are
 * counted up, since a division for each is slow. The last group may produce images beyond `count`,
 * which are not used. */
static void
images_of_stretch(const struct permute *permute, size_t count, uint64_t *ret_images)
{
    uint64_t row = permute->at % permute->rows;
    uint64_t column = permute->at / permute->rows;

    for (size_t i = 0; i < count; i += LANES) {
        uint64_t rows[LANES], columns[LANES];

        for (int lane = 0; lane < LANES; lane++) {
            rows[lane] = row;
            columns[lane] = column;
            row = row + 1 == permute->rows ? 0 : row + 1;
            column += row == 0;
            /* A number outside the permutation may never reach the count: the cycle walk would not
             * end. */
            if (column * permute->rows + row >= permute->count)
                row = column = 0;
        }
        images_of(permute, rows, columns, ret_images + i);
    }
}

static tundish_status
permute_at(struct order_iterator *iterator, const uint64_t *indices, size_t index_count,
           uint64_t *words)
{
    struct permute *permute = state_of(iterator);
    uint64_t images[CHUNK];
    tundish_status status = prepare(iterator);

    for (size_t done = 0; done < index_count && status == TUNDISH_OK;) {
        size_t some = index_count - done < CHUNK ? index_count - done : CHUNK;

        for (size_t i = 0; i < some; i++) {
            uint64_t index = indices[done + i];

            must(index < permute->count);
            images[i] = permute->table != NULL
                            ? permute->table[index]
                            : image_of(permute, index % permute->rows, index / permute->rows);
        }
        status = permute->input->ops->at(permute->input, images, some,
                                         words + done * iterator->node->width);
        done += some;
    }
    return status;
}

/* Read `count` consecutive positions from permute->at on. */
static tundish_status
stretch(struct order_iterator *iterator, uint64_t *words, size_t count)
{
    struct permute *permute = state_of(iterator);
    uint64_t images[CHUNK];
    tundish_status status = TUNDISH_OK;

    for (size_t done = 0; done < count && status == TUNDISH_OK;) {
        size_t some = count - done < CHUNK ? count - done : CHUNK;

        if (permute->table != NULL)
            for (size_t i = 0; i < some; i++)
                images[i] = permute->table[permute->at + i];
        else
            images_of_stretch(permute, some, images);
        status = permute->input->ops->at(permute->input, images, some,
                                         words + done * iterator->node->width);
        permute->at += some;
        done += some;
    }
    return status;
}

static enum order_result
permute_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct permute *permute = state_of(iterator);

    if (prepare(iterator) != TUNDISH_OK)
        return ORDER_FAILED;
    if (permute->at == permute->count)
        return ORDER_END;
    if (max > permute->count - permute->at)
        max = (size_t)(permute->count - permute->at);
    if (stretch(iterator, words, max) != TUNDISH_OK)
        return ORDER_FAILED;
    *ret_count = max;
    return ORDER_OK;
}

static enum order_result
permute_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct permute *permute = state_of(iterator);
    uint64_t left;

    *ret_passed = 0;
    if (prepare(iterator) != TUNDISH_OK)
        return ORDER_FAILED;
    left = permute->count - permute->at;
    *ret_passed = count < left ? count : left;
    permute->at += *ret_passed;
    return count <= left ? ORDER_OK : ORDER_END;
}

static tundish_status
permute_count(struct order_iterator *iterator, uint64_t *ret_count)
{
    tundish_status status = prepare(iterator);

    if (status == TUNDISH_OK)
        *ret_count = state_of(iterator)->count;
    return status;
}

static void
permute_close(struct order_iterator *iterator)
{
    struct permute *permute = state_of(iterator);

    free(permute->table);
    order_close(permute->input);
}

static enum order_seeds
permute_seeds(const struct spec_stage *stage)
{
    (void)stage;
    return ORDER_SEEDS_OWN;
}

static tundish_status
permute_check_inputs(const struct order_planning *planning, const struct plan_node *node)
{
    if (order_is_indexed(node->inputs[0]))
        return TUNDISH_OK;
    return order_complain(planning->errors, node,
                          "permute needs a random-access input (a source, or take, skip, shard or "
                          "flat_map of one), not %s: put permute before it, or use shuffle",
                          order_node(node->inputs[0])->name);
}

const struct order_ops order_permute = {
    .name = "permute",
    .form = ORDER_PASSES,
    .selection = ORDER_ONLY_ORDERS,
    .alike = ORDER_ALIKE_ELEMENTS,
    .search = ORDER_SEARCH_INPUT,
    .state_bytes = sizeof(struct permute),
    .open = permute_open,
    .next = permute_next,
    .close = permute_close,
    .count = permute_count,
    .at = permute_at,
    .pass_over = permute_pass_over,
    .seeds = permute_seeds,
    .check_inputs = permute_check_inputs,
    .cardinality = order_count_input,
};
