/* source_python_dataset.c - the items of a data set of the user's own, which interpreters make
 * (workers/python_pool.h).
 *
 * Words of an element: the index, the number of the iterator. Both together number what items draw,
 * so that each epoch draws again.
 */
#include <stdlib.h>

#include "content/draws.h"
#include "core/memory.h"
#include "order/cardinality.h"
#include "source/source.h"
#include "workers/described_columns.h"
#include "workers/python_stage.h"

enum { TRIED = 4 };

struct python_dataset {
    char *name;
    int64_t seed;
    uint64_t length;
    uint32_t column_count;
    uint32_t *columns;     /* 0, 1, 2 ... */
    struct schema indices; /* what interpreters are given */
    struct python_pool *pool;
};

struct dataset_state {
    uint64_t taken;
};

/* Learn the columns from a few items, which may differ: the first, the last, and two between. */
static tundish_status
learn_columns(struct python_dataset *dataset, const struct stage_config *config)
{
    uint64_t count = dataset->length < TRIED ? dataset->length : TRIED, ordinals[TRIED];
    int64_t indices[TRIED];
    struct column column;
    const struct frame input = {
        .count = (int64_t)count, .column_count = 1, .columns = &column, .schema = &dataset->indices
    };
    const uint32_t first = 0;
    const struct python_request request = {
        .input = &input,
        .columns = &first,
        .column_count = 1,
        .seed = dataset->seed,
        .ordinals = ordinals,
    };
    tundish_status status;

    if (python_pool_columns(dataset->pool) != NULL)
        return TUNDISH_OK;
    for (uint64_t i = 0; i < count; i++)
        indices[i] = (int64_t)(ordinals[i] = i + 1 < count ? dataset->length / count * i
                                                           : dataset->length - 1);
    column_set_scalars(&column, input.count, indices);
    status = count > 0 ? python_pool_learn(dataset->pool, &request)
                       : tnd_fail(TUNDISH_E_DATA, "it has no item");
    return status == TUNDISH_OK
               ? TUNDISH_OK
               : stage_complain(config,
                                "what the items of %s are cannot be learned: %s; write spec: "
                                "{column: {dtype: ..., shape: [...]}}",
                                dataset->name, tnd_error_text());
}

static tundish_status
open_pool(struct python_dataset *dataset, const struct stage_config *config,
          struct schema *ret_schema)
{
    const struct spec_value *spec =
        spec_has_value(config->stage, "spec") ? spec_get(config->stage, "spec") : NULL;
    tundish_status status =
        spec != NULL ? described_columns_open(config, spec, ret_schema) : TUNDISH_OK;

    if (status == TUNDISH_OK)
        status = python_stage_open(config,
                                   &(struct python_stage){
                                       .found = "make",
                                       .rows = "item",
                                       .inputs = { &dataset->indices, NULL, 1 },
                                       .outputs = spec != NULL ? ret_schema : NULL,
                                   },
                                   &dataset->pool);
    if (status == TUNDISH_OK)
        dataset->length = python_pool_length(dataset->pool);
    if (status == TUNDISH_OK && spec == NULL)
        status = learn_columns(dataset, config);
    if (status == TUNDISH_OK && spec == NULL)
        schema_pass_all(ret_schema, python_pool_columns(dataset->pool));
    return status;
}

static tundish_status
python_dataset_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    struct python_dataset *dataset = state;
    tundish_status status;

    dataset->name = tnd_strdup(spec_text(config->stage, "make"));
    dataset->seed = draws_seed(config);
    schema_add(&dataset->indices, "index", TUNDISH_INT64);
    status = open_pool(dataset, config, ret_schema);
    dataset->column_count = ret_schema->count;
    dataset->columns = tnd_zalloc((size_t)ret_schema->count + 1, sizeof *dataset->columns);
    for (uint32_t i = 0; i < ret_schema->count; i++) {
        dataset->columns[i] = i;
        ret_schema->columns[i].passed_from = -1;
    }
    return status;
}

static void
python_dataset_close(void *state)
{
    struct python_dataset *dataset = state;

    python_pool_close(dataset->pool);
    schema_close(&dataset->indices);
    free(dataset->columns);
    free(dataset->name);
}

static const struct python_dataset *
dataset_of(const struct order_iterator *iterator)
{
    return iterator->node->state;
}

static tundish_status
dataset_iterate(struct order_iterator *iterator)
{
    (void)iterator;
    return TUNDISH_OK;
}

static void
dataset_iterate_close(struct order_iterator *iterator)
{
    (void)iterator;
}

static enum order_result
dataset_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct dataset_state *state = (struct dataset_state *)iterator->state;
    uint64_t left = dataset_of(iterator)->length - state->taken;
    size_t count = left < max ? (size_t)left : max;

    for (size_t i = 0; i < count; i++) {
        words[SOURCE_WIDTH * i] = state->taken + i;
        words[SOURCE_WIDTH * i + 1] = iterator->iterator_number;
    }
    state->taken += count;
    *ret_count = count;
    return count > 0 ? ORDER_OK : ORDER_END;
}

static tundish_status
dataset_count(struct order_iterator *iterator, uint64_t *ret_count)
{
    *ret_count = dataset_of(iterator)->length;
    return TUNDISH_OK;
}

static tundish_status
dataset_at(struct order_iterator *iterator, const uint64_t *indices, size_t index_count,
           uint64_t *words)
{
    for (size_t i = 0; i < index_count; i++) {
        words[SOURCE_WIDTH * i] = indices[i];
        words[SOURCE_WIDTH * i + 1] = iterator->iterator_number;
    }
    return TUNDISH_OK;
}

static enum order_result
dataset_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct dataset_state *state = (struct dataset_state *)iterator->state;
    uint64_t left = dataset_of(iterator)->length - state->taken;

    *ret_passed = count < left ? count : left;
    state->taken += *ret_passed;
    return *ret_passed == count ? ORDER_OK : ORDER_END;
}

static tundish_status
python_dataset_read(const void *state, const struct source_read *read)
{
    const struct python_dataset *dataset = state;
    struct frame *output = read->output;
    size_t count = (size_t)read->count;
    int64_t *indices = scratch_array(output->scratch, count + 1, sizeof *indices);
    uint64_t *ordinals = scratch_array(output->scratch, count + 1, sizeof *ordinals);
    struct column column;
    const struct frame input = {
        .count = read->count, .column_count = 1, .columns = &column, .schema = &dataset->indices
    };
    const struct python_request request = {
        .input = &input,
        .columns = dataset->columns,
        .column_count = 1,
        .seed = dataset->seed,
        .ordinals = ordinals,
    };

    for (size_t i = 0; i < count; i++) {
        const uint64_t *words = read->words + i * read->stride;

        indices[i] = (int64_t)words[0];
        ordinals[i] = words[1] * dataset->length + words[0];
    }
    column_set_scalars(&column, read->count, indices);
    if (count == 0) {
        for (uint32_t i = 0; i < output->column_count; i++)
            output->columns[i] = column_of_none(&output->schema->columns[i]);
        return TUNDISH_OK;
    }
    return python_pool_ask(dataset->pool, &request, output->stop, dataset->columns,
                           dataset->column_count, output);
}

static void
dataset_tell(const void *state, struct source_files *files, const uint64_t *words,
             struct whereabouts *ret_where)
{
    (void)state;
    (void)files;
    ret_where->number_name = "index";
    ret_where->number = (int64_t)words[0];
}

/* A place in one of another length would be of other items. */
static void
dataset_files(const void *state,
              void (*say)(void *context, const char *name, uint64_t content_hash), void *context)
{
    const struct python_dataset *dataset = state;

    say(context, dataset->name, dataset->length);
}

static uint64_t
dataset_code_hash(const void *state)
{
    const struct python_dataset *dataset = state;

    return python_pool_digest(dataset->pool);
}

static char *
dataset_learned(const void *state)
{
    const struct python_dataset *dataset = state;

    return python_stage_learned(dataset->pool, "spec");
}

const struct source_ops source_python_dataset = {
    .name = "python_dataset",
    .order = { .name = "python_dataset",
               .counts_iterators = true,
               .cardinality = order_count_source,
               .state_bytes = sizeof(struct dataset_state),
               .open = dataset_iterate,
               .next = dataset_next,
               .close = dataset_iterate_close,
               .count = dataset_count,
               .at = dataset_at,
               .pass_over = dataset_pass_over },
    .tell = dataset_tell,
    .learned = dataset_learned,
    .files = dataset_files,
    .code_hash = dataset_code_hash,
    .words = WORDS_OF_HERE,
    .state_bytes = sizeof(struct python_dataset),
    .open = python_dataset_open,
    .read = python_dataset_read,
    .reads_files = false,
    .close = python_dataset_close,
};
