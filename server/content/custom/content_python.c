/* content_python.c - a function of the user's own, which interpreters run (workers/python_pool.h).
 */
#include <stdlib.h>
#include <string.h>

#include "content/draws.h"
#include "core/memory.h"
#include "spec/column_list.h"
#include "workers/described_columns.h"
#include "workers/python_stage.h"

enum { TRIED = 4 };

struct python {
    uint32_t input_count, output_count;
    uint32_t *inputs, *outputs; /* columns of the input and of the output */
    int64_t seed;
    struct python_pool *pool;
};

static tundish_status
check_place(const struct stage_config *config)
{
    const char *rows = spec_text(config->stage, "rows");
    bool takes_batch = rows[0] == 'b'; /* one, many or batch */

    if (takes_batch && config->depth == 0)
        return stage_complain(config, "rows: batch needs a batch, and the stage stands before the "
                                      "first one: put it after batch, or write rows: one or many");
    if (!takes_batch && config->depth > 0)
        return stage_complain(config,
                              "rows: %s takes rows, and the stage stands after a batch: "
                              "put it before batch, or write rows: batch",
                              rows);
    return TUNDISH_OK;
}

/* The columns that the function is given. */
static tundish_status
open_inputs(struct python *python, const struct stage_config *config)
{
    const struct spec_value *columns = spec_get(config->stage, "columns");
    const char **known = schema_names(config->input);
    struct spec_names names = { 0 };
    tundish_status status = TUNDISH_OK;

    if (columns != NULL)
        status = spec_expand_columns(columns, known, config->input->count, config->errors, &names);
    python->input_count = columns != NULL ? (uint32_t)names.count : config->input->count;
    python->inputs = tnd_zalloc((size_t)python->input_count + 1, sizeof *python->inputs);
    for (uint32_t i = 0; i < python->input_count && status == TUNDISH_OK; i++)
        python->inputs[i] =
            columns != NULL ? (uint32_t)schema_find(config->input, names.names[i]) : i;
    free(known);
    spec_names_close(&names);
    return status;
}

/* Elements that show what the function gives; another one may have other dimensions. */
static tundish_status
try_elements(void *context, const struct frame *input)
{
    struct python *python = context;
    uint64_t ordinals[TRIED];
    const struct python_request request = {
        .input = input,
        .columns = python->inputs,
        .column_count = python->input_count,
        .seed = python->seed,
        .ordinals = ordinals,
    };

    for (uint64_t i = 0; i < TRIED; i++)
        ordinals[i] = i;
    return python_pool_learn(python->pool, &request);
}

static tundish_status
learn_outputs(struct python *python, const struct stage_config *config)
{
    tundish_status status = TUNDISH_OK;

    if (python_pool_columns(python->pool) != NULL)
        return TUNDISH_OK;
    status = config->sample != NULL
                 ? config->sample(config->plan, config->stage, TRIED, try_elements, python)
                 : tnd_fail(TUNDISH_E_PIPELINE, "no row of its input can be had here");
    return status == TUNDISH_OK
               ? TUNDISH_OK
               : stage_complain(config,
                                "what %s returns cannot be learned: %s; write output: {column: "
                                "{dtype: ..., shape: [...]}}",
                                spec_text(config->stage, "call"), tnd_error_text());
}

/* The columns that it makes: in the place of those of the same name, or after the others. */
static void
place_outputs(struct python *python, const struct stage_config *config, const struct schema *made,
              struct schema *schema)
{
    schema_pass_all(schema, config->input);
    python->output_count = made->count;
    python->outputs = tnd_zalloc((size_t)made->count + 1, sizeof *python->outputs);
    for (uint32_t i = 0; i < made->count; i++) {
        const struct column_spec *from = &made->columns[i];
        int32_t index = schema_find(schema, from->name);
        struct column_spec *to;
        char *name;

        if (index < 0) {
            schema_add(schema, from->name, from->dtype);
            index = (int32_t)schema->count - 1;
        }
        python->outputs[i] = (uint32_t)index;
        to = &schema->columns[index];
        name = to->name;
        *to = *from;
        to->name = name;
        to->passed_from = -1;
    }
}

static tundish_status
open_pool(struct python *python, const struct stage_config *config, struct schema *ret_schema)
{
    const struct spec_value *output =
        spec_has_value(config->stage, "output") ? spec_get(config->stage, "output") : NULL;
    struct schema given = { 0 };
    tundish_status status =
        output != NULL ? described_columns_open(config, output, &given) : TUNDISH_OK;

    if (status == TUNDISH_OK)
        status =
            python_stage_open(config,
                              &(struct python_stage){
                                  .found = "call",
                                  .rows = spec_text(config->stage, "rows"),
                                  .inputs = { config->input, python->inputs, python->input_count },
                                  .outputs = output != NULL ? &given : NULL,
                              },
                              &python->pool);
    if (status == TUNDISH_OK && output == NULL)
        status = learn_outputs(python, config);
    if (status == TUNDISH_OK)
        place_outputs(python, config, output != NULL ? &given : python_pool_columns(python->pool),
                      ret_schema);
    schema_close(&given);
    return status;
}

static tundish_status
python_open(void *state, const struct stage_config *config, struct schema *ret_schema,
            bool *ret_batch_wide)
{
    struct python *python = state;
    tundish_status status = check_place(config);

    *ret_batch_wide = config->depth > 0;
    python->seed = draws_seed(config);
    if (status == TUNDISH_OK)
        status = open_inputs(python, config);
    return status == TUNDISH_OK ? open_pool(python, config, ret_schema) : status;
}

static tundish_status
python_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct python *python = state;
    const struct python_request request = {
        .input = input,
        .columns = python->inputs,
        .column_count = python->input_count,
        .seed = python->seed,
        .ordinals = output->ordinals,
    };

    if (output->count == 0) {
        for (uint32_t i = 0; i < python->output_count; i++)
            output->columns[python->outputs[i]] =
                column_of_none(&output->schema->columns[python->outputs[i]]);
        return TUNDISH_OK;
    }
    return python_pool_ask(python->pool, &request, output->stop, python->outputs,
                           python->output_count, output);
}

static uint64_t
python_code_hash(const void *state)
{
    const struct python *python = state;

    return python_pool_digest(python->pool);
}

static char *
python_learned(const void *state)
{
    const struct python *python = state;

    return python_stage_learned(python->pool, "output");
}

static void
python_close(void *state)
{
    struct python *python = state;

    python_pool_close(python->pool);
    free(python->inputs);
    free(python->outputs);
}

const struct content_ops content_python = {
    .name = "python",
    .state_bytes = sizeof(struct python),
    .draws = true,
    .code_hash = python_code_hash,
    .learned = python_learned,
    .open = python_open,
    .apply = python_apply,
    .close = python_close,
};
