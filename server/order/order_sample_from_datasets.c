/* order_sample_from_datasets.c - draw the input of each element at random, by weight.
 *
 * The draws are TensorFlow's: two words of Philox are the seed of a stateless multinomial, which
 * compares 52 bits with the cumulative weights. They repeat in every iterator, as tf.data's do by
 * default. If the drawn input is exhausted, another is drawn. The iterators of all inputs are made
 * at once. Datasets of weight 0 are not inputs.
 *
 * Landmarks are by draws, those of inputs that are used up included.
 */
#include "order/branches.h"
#include "order/columns.h"
#include "order/failure.h"
#include "order/noting.h"
#include "order/rewind.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/philox.h"

static const double LN_2 = 0x1.62e42fefa39efp-1;
static const double LN_2_HIGH = 0x1.62e42fee00000p-1; /* few bits, so that multiples are exact */
static const double LN_2_LOW = 0x1.a39ef35793c76p-33;
static const double SQRT_HALF = 0x1.6a09e667f3bcdp-1;

/* Draws are made side by side: a few, then more and more. */
enum { DRAWS_FIRST = 16, DRAWS_MAX = 256 };

struct sample {
    struct order_branches branches;
    double *limits; /* input i is drawn by numbers in [limits[i - 1], limits[i]) */
    struct tnd_philox random;
    uint64_t draws;           /* that have been used */
    uint32_t drawn_count, at; /* of them those before `at` have been used */
    uint32_t drawn[DRAWS_MAX];
    struct order_failure **errors; /* of elements passed over, still to be told of */
    uint32_t error_count;
    struct order_noting noting;
};

static struct sample *
state_of(struct order_iterator *iterator)
{
    return (struct sample *)iterator->state;
}

static const struct spec_value *
weights_of(const struct spec_stage *stage)
{
    const struct spec_value *weights = spec_get(stage, "weights");

    return weights != NULL && weights->kind == SPEC_LIST ? weights : NULL;
}

static double
total_of(const struct spec_value *weights)
{
    double total = 0;

    for (uint32_t i = 0; i < weights->count; i++)
        total += weights->items[i].number;
    return total;
}

/* The logarithm of a positive number, in plain arithmetic, which is the same on every machine. */
static double
logarithm(double number)
{
    int exponent;
    double fraction = frexp(number, &exponent), ratio, square, sum = 0;

    if (fraction < SQRT_HALF) {
        fraction *= 2;
        exponent--;
    }
    ratio = (fraction - 1) / (fraction + 1);
    square = ratio * ratio;
    for (int i = 27; i > 0; i -= 2)
        sum = sum * square + 1.0 / i;
    return exponent * LN_2 + 2 * ratio * sum;
}

/* e to a number that is at most 0, likewise. */
static double
exponential(double number)
{
    double halves = floor(number / LN_2 + 0.5), rest, sum = 1;

    if (halves < -1000)
        return 0;
    rest = number - halves * LN_2_HIGH - halves * LN_2_LOW;
    for (int i = 16; i > 0; i--)
        sum = 1 + sum * rest / i;
    return ldexp(sum, (int)halves);
}

/* The cumulative weights of the inputs (weights that are not 0). TensorFlow takes their logarithms
 * as float32, and the exponentials of these, the largest being 1. */
static void
read_weights(const struct plan_node *node, double *ret_limits)
{
    const struct spec_value *list = weights_of(node->stage);
    uint32_t count = list == NULL ? node->input_count : list->count, input = 0;
    double most = -INFINITY, sum = 0;

    for (uint32_t i = 0; i < count; i++) {
        float weight = list == NULL ? 1 : (float)list->items[i].number;

        if (list != NULL && list->items[i].number == 0)
            continue;
        /* A number that float32 does not hold has a logarithm that is not finite, and is never
         * drawn. */
        ret_limits[input] = weight > 0 && isfinite(weight) ? (float)logarithm(weight) : -INFINITY;
        most = fmax(most, ret_limits[input++]);
    }
    for (uint32_t i = 0; i < input; i++) {
        sum += isfinite(ret_limits[i]) ? exponential(ret_limits[i] - most) : 0;
        ret_limits[i] = sum;
    }
}

static tundish_status
sample_open(struct order_iterator *iterator)
{
    struct sample *sample = state_of(iterator);
    const struct plan_node *node = iterator->node;
    bool is_empty = weights_of(node->stage) != NULL && node->input_count == 1;

    order_branches_begin(&sample->branches, iterator, node->input_count);
    sample->limits = tnd_zalloc(node->input_count, sizeof *sample->limits);
    sample->random = tnd_philox_of_seeds(node->seed, node->seed2);
    if (is_empty) /* all weights are 0: a single dataset would not have made a node */
        return TUNDISH_OK;
    read_weights(node, sample->limits);
    order_noting_begin(&sample->noting, iterator, false);
    return order_branches_open(&sample->branches, iterator);
}

/* The first input whose limit is above the number. Limits do not fall: where there are few, those
 * that are not above are counted, which no branch has to guess. */
static inline uint32_t
input_of(const double *limits, uint32_t input_count, double number)
{
    uint32_t input = 0;

    if (input_count <= 16)
        for (uint32_t i = 0; i + 1 < input_count; i++)
            input += number >= limits[i];
    else
        while (input + 1 < input_count && number >= limits[input])
            input++;
    return input;
}

static void
draw_some(struct sample *sample, uint32_t input_count)
{
    uint32_t count = sample->drawn_count < DRAWS_MAX ? 2 * sample->drawn_count : DRAWS_MAX;
    uint32_t seeds[2 * DRAWS_MAX], words[2 * DRAWS_MAX];

    sample->drawn_count = count > 0 ? count : DRAWS_FIRST;
    sample->at = 0;
    tnd_philox_fill(&sample->random, sample->drawn_count / 2, seeds);
    tnd_philox_of_pairs(seeds, sample->drawn_count, words);
    for (uint32_t k = 0; k < sample->drawn_count; k++) {
        uint64_t bits = (uint64_t)(words[2 * k] & 0xfffff) << 32 | words[2 * k + 1];
        double number = (double)bits * 0x1p-52 * sample->limits[input_count - 1];

        sample->drawn[k] = input_of(sample->limits, input_count, number);
    }
}

static inline uint32_t
draw(struct sample *sample, uint32_t input_count)
{
    if (sample->at == sample->drawn_count)
        draw_some(sample, input_count);
    sample->draws++;
    return sample->drawn[sample->at++];
}

/* So many elements were taken of each input, `more` ahead of those; and was its end met? */
static void
note(struct order_iterator *iterator, const uint64_t *more)
{
    struct sample *sample = state_of(iterator);
    struct order_state_writer *state;

    if (!order_noting_wants(&sample->noting, iterator, sample->draws))
        return;
    state = order_noting_state(iterator);
    order_branches_write(&sample->branches, more, state);
    order_noting_note(&sample->noting, iterator, sample->draws, state);
}

static enum order_result
tell_error(struct sample *sample)
{
    struct order_failure *error = sample->errors[--sample->error_count];

    order_failure_tell(error);
    free(error);
    return ORDER_FAILED;
}

static enum order_result
sample_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct sample *sample = state_of(iterator);
    const struct plan_node *node = iterator->node;

    if (sample->error_count > 0)
        return tell_error(sample);
    while (*ret_count < max && sample->branches.open_count > 0) {
        uint64_t *element = words + *ret_count * node->width;
        const struct plan_node *input;
        enum order_result result;
        uint32_t drawn;
        size_t count;

        if (sample->draws == sample->noting.next)
            note(iterator, NULL);
        drawn = draw(sample, node->input_count);
        input = node->inputs[drawn];
        if (sample->branches.inputs[drawn] == NULL) /* used up */
            continue;
        result = order_next(sample->branches.inputs[drawn], element, 1, &count);
        if (result == ORDER_FAILED) {
            order_noting_end(&sample->noting);
            return result;
        }
        if (result == ORDER_OK) {
            sample->branches.taken[drawn]++;
            sample->noting.passed++;
            order_spread(element, 1, input->width, node->width, input->first_word);
            element[0] = drawn;
            ++*ret_count;
            continue;
        }
        if (order_branches_end(&sample->branches, drawn))
            return ORDER_END;
    }
    return sample->branches.open_count > 0 ? ORDER_OK : ORDER_END;
}

/* So many elements are surely left of the input; 0: it is not known. Where a pass has an element
 * and all are alike, the input never ends. */
static uint64_t
surely_left(const struct sample *sample, const struct plan_node *node, uint32_t input)
{
    struct order_iterator *iterator = sample->branches.inputs[input];
    uint64_t count, taken = sample->branches.taken[input];

    if (iterator == NULL)
        return 0;
    if (taken == 0 && iterator->ops->surely != NULL)
        return iterator->ops->surely(iterator);
    if (order_is_indexed(node->inputs[input]))
        return iterator->ops->count(iterator, &count) == TUNDISH_OK && count > taken ? count - taken
                                                                                     : 0;
    return taken > 0 && order_is_endless(node->inputs[input]) &&
                   order_can_rewind(node->inputs[input]) &&
                   order_passes_are_alike(node->inputs[input])
               ? UINT64_MAX
               : 0;
}

/* Draw at most `count` elements, up to the first that may not be there. Returns how many. */
static uint64_t
count_draws(struct order_iterator *iterator, uint64_t count, uint64_t *ret_counts)
{
    struct sample *sample = state_of(iterator);
    const struct plan_node *node = iterator->node;
    uint64_t *left = tnd_zalloc(node->input_count, sizeof *left);
    uint64_t drawn = 0;

    for (uint32_t i = 0; i < node->input_count; i++)
        left[i] = surely_left(sample, node, i);
    while (drawn < count && sample->branches.open_count > 0) {
        uint32_t input;

        if (sample->draws == sample->noting.next)
            note(iterator, ret_counts);
        input = draw(sample, node->input_count);
        if (sample->branches.inputs[input] == NULL) /* used up */
            continue;
        if (ret_counts[input] == left[input]) {
            sample->at--; /* to be drawn again */
            sample->draws--;
            break;
        }
        ret_counts[input]++;
        sample->noting.passed++;
        drawn++;
    }
    free(left);
    return drawn;
}

/* Pass over elements of an input. Failures are kept. Returns how many there were. */
static uint64_t
pass_over_input(struct sample *sample, uint32_t input, uint64_t count)
{
    uint64_t passed, failed = 0;
    enum order_result result = ORDER_OK;

    sample->branches.taken[input] += count;
    while (count > 0 && result != ORDER_END) {
        result = order_pass_over(sample->branches.inputs[input], count, &passed);
        count -= passed + (result == ORDER_FAILED);
        if (result != ORDER_FAILED)
            continue;
        sample->errors =
            tnd_realloc(sample->errors, sample->error_count + 1, sizeof *sample->errors);
        sample->errors[sample->error_count++] = order_failure_keep();
        failed++;
    }
    return failed + count;
}

/* Stand where `draws` of them have been used. Each block of random words is for two. */
static void
seek_draws(struct sample *sample, uint64_t draws, uint32_t input_count)
{
    tnd_philox_skip(&sample->random, draws / 2);
    if (draws % 2 != 0)
        (void)draw(sample, input_count);
    sample->draws = draws;
}

/* NO_VALUE: no stage can have left the landmark. */
static tundish_status
leap(struct order_iterator *iterator, const struct order_landmark *landmark)
{
    struct sample *sample = state_of(iterator);
    tundish_status status = order_branches_go_to(iterator, &sample->branches, landmark);

    if (status != TUNDISH_OK)
        return status;
    seek_draws(sample, landmark->taken, iterator->node->input_count);
    order_noting_stand_at(&sample->noting, iterator, landmark, 0);
    return TUNDISH_OK;
}

/* The draws are counted, and each input passes over as many elements as it was drawn. Notes made
 * meanwhile hold if none of them fails. */
static enum order_result
sample_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct sample *sample = state_of(iterator);
    const struct plan_node *node = iterator->node;
    struct order_landmark landmark;
    uint64_t *counts, draws = sample->draws;
    tundish_status status = TUNDISH_NO_VALUE;

    if (sample->error_count > 0 || sample->branches.open_count == 0)
        return ORDER_OK;
    if (draws == 0 && order_noting_before(&sample->noting, count, &landmark))
        status = leap(iterator, &landmark);
    if (status != TUNDISH_NO_VALUE) {
        *ret_passed = sample->noting.passed;
        return status == TUNDISH_OK ? ORDER_OK : ORDER_FAILED;
    }
    counts = tnd_zalloc(node->input_count, sizeof *counts);
    *ret_passed = count_draws(iterator, count, counts);
    for (uint32_t i = 0; i < node->input_count; i++)
        if (counts[i] > 0)
            *ret_passed -= pass_over_input(sample, i, counts[i]);
    if (sample->error_count > 0)
        order_noting_take_back(&sample->noting, draws);
    free(counts);
    return ORDER_OK;
}

static uint64_t
sample_surely(struct order_iterator *iterator)
{
    const struct sample *sample = state_of(iterator);

    return sample->draws == 0 ? order_noting_reach(&sample->noting) : 0;
}

static void
sample_close(struct order_iterator *iterator)
{
    struct sample *sample = state_of(iterator);

    while (sample->error_count > 0)
        free(sample->errors[--sample->error_count]);
    free(sample->errors);
    free(sample->limits);
    order_noting_end(&sample->noting);
    order_branches_close(&sample->branches);
}

static tundish_status
sample_check_stage(const struct spec_stage *stage, struct spec_errors *errors)
{
    const struct spec_value *weights = weights_of(stage);

    if (weights != NULL && !isfinite(total_of(weights)))
        return spec_complain(errors, weights->line, weights->column,
                             "sample_from_datasets: the weights add up to %g", total_of(weights));
    return TUNDISH_OK;
}

static bool
draws(const struct spec_stage *stage)
{
    const struct spec_value *weights = weights_of(stage);

    return weights == NULL || total_of(weights) > 0;
}

/* TensorFlow's sample_from_datasets omits datasets of weight 0. If all are 0, the first stands for
 * an empty dataset and nothing is drawn. */
static bool
sample_takes(const struct spec_stage *stage, uint32_t dataset)
{
    const struct spec_value *weights = weights_of(stage);

    return weights == NULL || weights->items[dataset].number > 0 || (dataset == 0 && !draws(stage));
}

static enum order_seeds
sample_seeds(const struct spec_stage *stage)
{
    return draws(stage) ? ORDER_SEEDS_TENSORFLOW : ORDER_SEEDS_NONE;
}

static tundish_status
sample_columns(const struct order_planning *planning, struct plan_node *node)
{
    return order_merge_columns(planning, node, node->input_count);
}

static bool
sample_is_endless(const struct plan_node *node)
{
    if (!draws(node->stage))
        return false;
    return spec_bool(node->stage, "stop_on_empty_dataset") ? order_all_are_endless(node)
                                                           : order_any_is_endless(node);
}

const struct order_ops order_sample_from_datasets = {
    .name = "sample_from_datasets",
    .is_noted = true,
    .form = ORDER_BRANCHES,
    .counts_through = true,
    .state_bytes = sizeof(struct sample),
    .open = sample_open,
    .next = sample_next,
    .close = sample_close,
    .pass_over = sample_pass_over,
    .surely = sample_surely,
    .gathered = order_gathered_united,
    .check_stage = sample_check_stage,
    .takes = sample_takes,
    .seeds = sample_seeds,
    .columns = sample_columns,
    .is_endless = sample_is_endless,
};
