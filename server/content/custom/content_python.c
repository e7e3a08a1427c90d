/* content_python.c - a function of the user's own, which interpreters run (workers/python_pool.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "content/draws.h"
#include "core/cpu_room.h"
#include "core/json.h"
#include "core/memory.h"
#include "pipeline/column_list.h"
#include "pipeline/quantity.h"
#include "pipeline/shared_object.h"
#include "workers/described_columns.h"
#include "workers/python_pool.h"

enum { WORKERS_MAX = 256 };

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

    if (strchr(spec_text(config->stage, "call"), ':') == NULL)
        return stage_complain(config,
                              "call is a module and its function, as \"augment:train\", "
                              "not '%s'",
                              spec_text(config->stage, "call"));
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
    struct name_list names = { 0 };
    tundish_status status = TUNDISH_OK;

    if (columns != NULL)
        status = spec_expand_columns(columns, known, config->input->count, config->errors, &names);
    python->input_count = columns != NULL ? (uint32_t)names.count : config->input->count;
    python->inputs = tnd_zalloc((size_t)python->input_count + 1, sizeof *python->inputs);
    for (uint32_t i = 0; i < python->input_count && status == TUNDISH_OK; i++)
        python->inputs[i] =
            columns != NULL ? (uint32_t)schema_find(config->input, names.names[i]) : i;
    free(known);
    name_list_close(&names);
    return status;
}

/* The columns that it makes: in the place of those of the same name, or after the others. */
static tundish_status
open_outputs(struct python *python, const struct stage_config *config, struct schema *schema)
{
    struct schema made = { 0 };
    tundish_status status =
        described_columns_open(config, spec_get(config->stage, "output"), &made);

    schema_pass_all(schema, config->input);
    python->output_count = made.count;
    python->outputs = tnd_zalloc((size_t)made.count + 1, sizeof *python->outputs);
    for (uint32_t i = 0; i < made.count && status == TUNDISH_OK; i++) {
        const struct column_spec *from = &made.columns[i];
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
    schema_close(&made);
    return status;
}

static void
write_columns(struct json *json, const char *key, const struct schema *schema,
              const uint32_t *columns, uint32_t count)
{
    json_key(json, key);
    json_array(json);
    for (uint32_t i = 0; i < count; i++) {
        const struct column_spec *column = &schema->columns[columns[i]];

        json_object(json);
        json_key_text(json, "name", column->name);
        json_key_text(json, "dtype", tnd_dtype_name(column->dtype));
        json_key_int(json, "kind", column->kind);
        json_key(json, "shape");
        if (column->rank < 0)
            json_null(json);
        else
            json_array(json);
        for (int k = 0; k < column->rank; k++)
            json_int(json, column->shape[k]);
        if (column->rank >= 0)
            json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
}

/* The job as worker.py reads it; the caller frees. */
static char *
job_text(const struct python *python, const struct stage_config *config,
         const struct schema *schema, int64_t timeout_ns)
{
    char *arguments = spec_json(spec_get(config->stage, "arguments"));
    char *text = NULL;
    size_t bytes = 0;
    struct json json;
    FILE *file = open_memstream(&text, &bytes);

    tnd_must_have(file != NULL);
    json_start(&json, file);
    json_object(&json);
    json_key_text(&json, "call", spec_text(config->stage, "call"));
    json_key_text(&json, "rows", spec_text(config->stage, "rows"));
    json_key_text(&json, "folder", config->stage->file->root);
    json_key(&json, "timeout");
    json_float(&json, (double)timeout_ns / 1e9, 17);
    json_key(&json, "arguments");
    json_raw(&json);
    fputs(arguments, file);
    write_columns(&json, "inputs", config->input, python->inputs, python->input_count);
    write_columns(&json, "outputs", schema, python->outputs, python->output_count);
    json_object_end(&json);
    tnd_must_have(fclose(file) == 0);
    free(arguments);
    return text;
}

/* The interpreter: as written, else that of the program that started the server, else the first of
 * PATH. */
static const char *
interpreter(const struct spec_stage *stage)
{
    const struct spec_value *given = spec_get(stage, "python");
    const char *callers = getenv("TUNDISH_PYTHON");

    if (given != NULL && given->kind == SPEC_TEXT)
        return given->text;
    return callers != NULL && callers[0] != '\0' ? callers : "python3";
}

static uint32_t
worker_limit(const struct spec_stage *stage)
{
    const struct spec_value *workers = spec_get(stage, "workers");

    if (workers != NULL && workers->kind == SPEC_INTEGER)
        return (uint32_t)workers->integer;
    return tnd_cpu_count() < WORKERS_MAX ? tnd_cpu_count() : WORKERS_MAX;
}

static tundish_status
open_pool(struct python *python, const struct stage_config *config, const struct schema *schema)
{
    struct python_job job = {
        .name = spec_text(config->stage, "call"),
        .python = interpreter(config->stage),
        .folder = config->stage->file->root,
    };
    tundish_status status;
    char *text;

    (void)quantity_duration_ns(spec_get(config->stage, "timeout"), &job.timeout_ns);
    text = job_text(python, config, schema, job.timeout_ns);
    job.text = text;
    status = python_pool_open(&job, worker_limit(config->stage), &python->pool);
    free(text);
    return status == TUNDISH_OK
               ? status
               : stage_complain(config, "python %s: %s", job.name, tnd_error_text());
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
    if (status == TUNDISH_OK)
        status = open_outputs(python, config, ret_schema);
    if (status == TUNDISH_OK)
        status = open_pool(python, config, ret_schema);
    return status;
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
    .own_code = true,
    .open = python_open,
    .apply = python_apply,
    .close = python_close,
};
