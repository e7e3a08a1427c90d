/* order_shard.c - every n-th element: the user's shard, and those that distribution adds. */
#include "order/arguments.h"
#include "order/cardinality.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

enum { CHUNK_WORDS = 2048 };

struct shard {
    struct order_iterator *input;
    uint64_t shards, index;
    uint64_t position; /* index of the input's next element in its round of `shards` elements */
    struct order_digest *digest; /* or NULL */
    bool round_is_needed;        /* the first round must be complete, and has not been checked */
    uint64_t *own;               /* the first round's element of this shard */
};

static struct shard *
state_of(struct order_iterator *iterator)
{
    return (struct shard *)iterator->state;
}

static const struct shard_arguments *
arguments_of(const struct plan_node *node)
{
    return node->arguments;
}

/* Evaluation deals shards at run time: the services say which one this iterator reads. */
static bool
is_of_evaluation(const struct plan_node *node)
{
    return arguments_of(node)->role == SHARD_OF_EVALUATION;
}

/* Distribution sets the numbers of its shards in the plan, also for a user's stage with SHARD_HINT.
 * Otherwise they are the stage's parameters. */
static tundish_status
read_numbers(struct order_iterator *iterator, int64_t *ret_shards, int64_t *ret_index)
{
    const struct plan_node *node = iterator->node;
    const struct spec_value *value;
    tundish_status status;

    if (is_of_evaluation(node)) {
        const struct order_services *services = iterator->instance->services;

        *ret_shards = services->shard_count > 0 ? services->shard_count : 1;
        *ret_index = services->shard;
        return TUNDISH_OK;
    }
    if (arguments_of(node)->shards != 0) {
        *ret_shards = arguments_of(node)->shards;
        *ret_index = arguments_of(node)->index;
        return TUNDISH_OK;
    }
    value = spec_get(node->stage, "num_shards");
    if (value->kind == SPEC_TEXT)
        return order_fail(iterator, TUNDISH_E_PIPELINE,
                          "num_shards: %s is replaced by a number only with auto_shard: HINT and "
                          "more than one replica or worker",
                          value->text);
    status = order_int(iterator, "num_shards", ret_shards);
    if (status == TUNDISH_OK && spec_get(node->stage, "index") == NULL)
        return order_fail(iterator, TUNDISH_E_PIPELINE, "needs an index");
    return status == TUNDISH_OK ? order_int(iterator, "index", ret_index) : status;
}

static tundish_status
shard_open(struct order_iterator *iterator)
{
    struct shard *shard = state_of(iterator);
    const struct plan_node *node = iterator->node;
    int64_t shards, index;
    tundish_status status;

    status = read_numbers(iterator, &shards, &index);
    if (status != TUNDISH_OK)
        return status;
    if (shards <= 0)
        return order_fail(iterator, TUNDISH_E_PIPELINE,
                          "num_shards must be at least 1, not %" PRId64, shards);
    if (index < 0 || index >= shards)
        return order_fail(iterator, TUNDISH_E_PIPELINE,
                          "index must be at least 0 and below num_shards %" PRId64 ", not %" PRId64,
                          shards, index);
    shard->shards = (uint64_t)shards;
    shard->index = (uint64_t)index;
    shard->round_is_needed = arguments_of(node)->whole_round;
    if (arguments_of(node)->role == SHARD_LAST && iterator->instance->services->digest != NULL &&
        iterator->instance->services->digest->interval != 0)
        shard->digest = iterator->instance->services->digest;
    return order_open(node->inputs[0], iterator->instance, &shard->input);
}

/* Copy the elements of this shard out of the `count` at `from`, and release the others. */
static size_t
pick(struct shard *shard, const struct plan_node *node, const uint64_t *from, size_t count,
     uint64_t *words)
{
    uint32_t width = node->width;
    size_t picked = 0;
    uint64_t next = (shard->index + shard->shards - shard->position) % shard->shards;

    if (shard->digest != NULL)
        order_digest_add(shard->digest, from, count, width, node->run_words);
    for (uint64_t i = next; i < count; i += shard->shards) {
        memcpy(words + picked * width, from + i * width, width * sizeof *words);
        picked++;
    }
    if (node->run_words != 0)
        for (size_t i = 0; i < count; i++)
            if (i < next || (i - next) % shard->shards != 0)
                run_words_release(from + i * width, 1, width, node->run_words);
    shard->position = (shard->position + count) % shard->shards;
    return picked;
}

static void
note_end(struct shard *shard, enum order_result result)
{
    if (shard->digest != NULL && result == ORDER_END)
        order_digest_end(shard->digest);
}

static tundish_status
too_few(const struct order_iterator *iterator, uint64_t found, uint64_t shards)
{
    if (is_of_evaluation(iterator->node))
        return order_fail(iterator, TUNDISH_E_DATA,
                          "the dataset has only %" PRIu64 " file(s) (or elements), which is not "
                          "enough for %" PRIu64 " shards of an evaluation: each needs one. Give it "
                          "more files, fewer evaluation_shards, or auto_shard: DATA",
                          found, shards);
    return order_fail(iterator, TUNDISH_E_DATA,
                      "the dataset has only %" PRIu64 " file(s) (or elements), which is not enough "
                      "for %" PRIu64 " workers: each needs one. Give it more files, or use "
                      "auto_shard: DATA",
                      found, shards);
}

/* TensorFlow fails if FILE sharding leaves a worker without a file. Check before any worker starts,
 * by pulling one complete round, and keep this shard's element of it. */
static enum order_result
first_round(struct order_iterator *iterator)
{
    struct shard *shard = state_of(iterator);
    const struct plan_node *node = iterator->node;
    uint64_t buffer[CHUNK_WORDS];
    uint64_t found = 0;
    enum order_result result = ORDER_OK;

    shard->own = tnd_alloc(node->width * sizeof *shard->own);
    shard->round_is_needed = false;
    while (found < shard->shards && result == ORDER_OK) {
        size_t room = CHUNK_WORDS / node->width;
        size_t count;

        if (room > shard->shards - found)
            room = (size_t)(shard->shards - found);
        result = order_next(shard->input, buffer, room, &count);
        pick(shard, node, buffer, count, shard->own);
        found += count;
    }
    if (result == ORDER_OK)
        return ORDER_OK;
    note_end(shard, result);
    if (found > shard->index)
        run_words_release(shard->own, 1, node->width, node->run_words);
    free(shard->own);
    shard->own = NULL;
    if (result == ORDER_FAILED || found == 0)
        return result;
    too_few(iterator, found, shard->shards);
    return ORDER_FAILED;
}

static enum order_result
shard_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct shard *shard = state_of(iterator);
    const struct plan_node *node = iterator->node;
    enum order_result result = ORDER_OK;
    uint64_t buffer[CHUNK_WORDS];

    if (shard->round_is_needed)
        result = first_round(iterator);
    if (shard->own != NULL) {
        memcpy(words, shard->own, node->width * sizeof *words);
        free(shard->own);
        shard->own = NULL;
        *ret_count = 1;
    }
    while (result == ORDER_OK && *ret_count < max) {
        uint64_t before = (shard->index + shard->shards - shard->position) % shard->shards;
        size_t room = CHUNK_WORDS / node->width;
        size_t count;
        uint64_t rest;

        /* Pull up to the last element wanted and not one more: an earlier stage may count them. */
        if (!__builtin_mul_overflow(max - *ret_count - 1, shard->shards, &rest) && rest < room &&
            before + 1 + rest < room)
            room = (size_t)(before + 1 + rest);
        result = order_next(shard->input, buffer, room, &count);
        *ret_count += pick(shard, node, buffer, count, words + *ret_count * node->width);
        note_end(shard, result);
    }
    return result;
}

/* Stop after the last element wanted, as shard_next does. */
static enum order_result
shard_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct shard *shard = state_of(iterator);
    uint64_t before = (shard->index + shard->shards - shard->position) % shard->shards;
    uint64_t wanted, passed;
    enum order_result result;

    *ret_passed = 0;
    if (shard->round_is_needed || shard->own != NULL)
        return ORDER_OK;
    if (__builtin_mul_overflow(count - 1, shard->shards, &wanted) ||
        __builtin_add_overflow(wanted, before + 1, &wanted))
        wanted = UINT64_MAX;
    result = order_pass_over(shard->input, wanted, &passed);
    if (passed > before)
        *ret_passed = (passed - before - 1) / shard->shards + 1;
    shard->position = (shard->position + passed % shard->shards) % shard->shards;
    if (shard->digest != NULL)
        order_digest_pass_over(shard->digest, passed);
    note_end(shard, result);
    return result;
}

static tundish_status
shard_count(struct order_iterator *iterator, uint64_t *ret_count)
{
    struct shard *shard = state_of(iterator);
    tundish_status status;
    uint64_t count;

    status = shard->input->ops->count(shard->input, &count);
    if (status == TUNDISH_OK && shard->round_is_needed && count > 0 && count < shard->shards)
        status = too_few(iterator, count, shard->shards);
    if (status == TUNDISH_OK)
        *ret_count = count / shard->shards + (shard->index < count % shard->shards);
    return status;
}

static tundish_status
shard_at(struct order_iterator *iterator, const uint64_t *indices, size_t index_count,
         uint64_t *words)
{
    struct shard *shard = state_of(iterator);

    return order_at_stride(shard->input, indices, index_count, shard->shards, shard->index, words);
}

static void
shard_close(struct order_iterator *iterator)
{
    struct shard *shard = state_of(iterator);

    if (shard->own != NULL)
        run_words_release(shard->own, 1, iterator->node->width, iterator->node->run_words);
    free(shard->own);
    order_close(shard->input);
}

static int64_t
shard_cardinality(const struct plan_node *node, const struct order_counting *counting)
{
    int64_t count = order_count(node->inputs[0], counting), shards, at;
    int64_t otherwise = counting->at_most ? count : CARDINALITY_UNKNOWN;
    const struct spec_value *index;

    if (arguments_of(node)->shards != 0 || count < 0)
        return count < 0 ? count : otherwise;
    index = spec_get(node->stage, "index");
    if (index == NULL || spec_get(node->stage, "num_shards")->kind == SPEC_TEXT)
        return otherwise;
    shards = order_count_parameter(node, counting, "num_shards");
    at = order_count_parameter(node, counting, "index");
    return shards < 1 || at < 0 ? otherwise : count / shards + (at < count % shards);
}

static void
shard_print(const struct plan_node *node, FILE *file)
{
    if (is_of_evaluation(node))
        fputs("(put in) one of the evaluation's shards", file);
    else
        fprintf(file, "{num_shards: %" PRId64 ", index: %" PRId64 "} (put in)",
                arguments_of(node)->shards, arguments_of(node)->index);
}

const struct order_ops order_shard = {
    .name = "shard",
    .by_position = true,
    .form = ORDER_PASSES,
    .selection = ORDER_CHOOSES,
    .alike = ORDER_ALIKE_COUNT,
    .search = ORDER_SEARCH_INPUT,
    .batch_size = ORDER_SIZE_INPUT,
    .state_bytes = sizeof(struct shard),
    .arguments_bytes = sizeof(struct shard_arguments),
    .open = shard_open,
    .next = shard_next,
    .close = shard_close,
    .count = shard_count,
    .at = shard_at,
    .pass_over = shard_pass_over,
    .cardinality = shard_cardinality,
    .print = shard_print,
};
