/* order_sample_from_datasets.c - each element from an input drawn at random, in the proportion of
 * the weights.
 *
 * The draws are our own: 64 bits of Philox each, compared with the weights' running sum. They are
 * the same in every iterator, as tf.data's are by default. A draw of an input that is used up is
 * drawn again. All inputs' iterators are made at once, but for those of weight 0.
 */
#include "order/order.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/philox.h"

struct sample {
    struct order_iterator **inputs; /* NULL: used up, or of weight 0 */
    uint64_t *limits;               /* an input is drawn by numbers below its limit, not below the
                                       one before */
    uint32_t open_count;
    bool stop_on_empty;
    struct tnd_random random;
};

static struct sample *
state_of(struct order_iterator *iterator)
{
    return (struct sample *)iterator->state;
}

/* The running sums of the weights, the last one stretched to 2^64 - 1. */
static tundish_status
read_weights(struct order_iterator *iterator, double *weights)
{
    struct sample *sample = state_of(iterator);
    const struct plan_node *node = iterator->node;
    const struct spec_value *list = spec_get(node->stage, "weights");
    double total = 0, sum = 0;

    if (list != NULL && list->count != node->input_count)
        return order_fail(iterator, TUNDISH_E_PIPELINE, "there are %u datasets, but %u weights",
                          node->input_count, list->count);
    for (uint32_t i = 0; i < node->input_count; i++) {
        weights[i] = list == NULL ? 1 : list->items[i].number;
        if (!(weights[i] >= 0) || isinf(weights[i]))
            return order_fail(iterator, TUNDISH_E_PIPELINE, "weight %u is %g; it must be 0 or more",
                              i, weights[i]);
        total += weights[i];
    }
    if (!(total > 0) || isinf(total))
        return order_fail(iterator, TUNDISH_E_PIPELINE, "the weights add up to %g", total);
    for (uint32_t i = 0; i < node->input_count; i++) {
        double limit;

        sum += weights[i];
        limit = sum / total * 0x1p64;
        sample->limits[i] = limit < 0x1p64 ? (uint64_t)limit : UINT64_MAX;
    }
    return TUNDISH_OK;
}

static tundish_status
sample_open(struct order_iterator *iterator)
{
    struct sample *sample = state_of(iterator);
    const struct plan_node *node = iterator->node;
    double *weights = tnd_zalloc(node->input_count, sizeof *weights);
    tundish_status status;

    sample->inputs = tnd_zalloc(node->input_count, sizeof(struct order_iterator *));
    sample->limits = tnd_zalloc(node->input_count, sizeof *sample->limits);
    sample->random = tnd_random_of_seeds(node->seed, node->seed2);
    sample->stop_on_empty = spec_bool(node->stage, "stop_on_empty_dataset");
    status = read_weights(iterator, weights);
    for (uint32_t i = 0; i < node->input_count && status == TUNDISH_OK; i++)
        if (weights[i] > 0) {
            status = order_open(node->inputs[i], iterator->instance, &sample->inputs[i]);
            sample->open_count++;
        }
    free(weights);
    return status;
}

static uint32_t
draw(struct sample *sample, uint32_t input_count)
{
    uint64_t number = (uint64_t)tnd_random_next(&sample->random) << 32;
    uint32_t i = 0;

    number |= tnd_random_next(&sample->random);
    while (i + 1 < input_count && number >= sample->limits[i])
        i++;
    return i;
}

static enum order_result
sample_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct sample *sample = state_of(iterator);
    const struct plan_node *node = iterator->node;

    while (*ret_count < max) {
        uint64_t *element = words + *ret_count * node->width;
        uint32_t drawn = draw(sample, node->input_count);
        const struct plan_node *input = node->inputs[drawn];
        enum order_result result;
        size_t count;

        if (sample->inputs[drawn] == NULL)
            continue;
        result = order_next(sample->inputs[drawn], element, 1, &count);
        if (result == ORDER_FAILED)
            return result;
        if (result == ORDER_OK) {
            order_spread(element, 1, input->width, node->width, input->first_word);
            element[0] = drawn;
            ++*ret_count;
            continue;
        }
        order_drop(&sample->inputs[drawn]);
        if (--sample->open_count == 0 || sample->stop_on_empty)
            return ORDER_END;
    }
    return ORDER_OK;
}

static struct order_gathered
sample_gathered(const struct plan_node *node, uint32_t word)
{
    const struct plan_node *input = order_united_input(node, word, &word);

    return order_gathered(input, word);
}

static void
sample_close(struct order_iterator *iterator)
{
    struct sample *sample = state_of(iterator);

    for (uint32_t i = 0; sample->inputs != NULL && i < iterator->node->input_count; i++)
        order_close(sample->inputs[i]);
    free(sample->inputs);
    free(sample->limits);
}

const struct order_ops order_sample_from_datasets = {
    .name = "sample_from_datasets",
    .state_bytes = sizeof(struct sample),
    .open = sample_open,
    .next = sample_next,
    .close = sample_close,
    .gathered = sample_gathered,
};
