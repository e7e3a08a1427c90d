/* python_stage.c - see python_stage.h. */
#include "workers/python_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu_room.h"
#include "core/json.h"
#include "core/memory.h"
#include "spec/quantity.h"
#include "spec/shared_object.h"
#include "workers/described_columns.h"

enum { WORKERS_MAX = 256 };

static bool
is_warm(const struct spec_stage *stage)
{
    return strcmp(spec_text(stage, "warm"), "fork") == 0;
}

/* The job as worker.py reads it; the caller frees. */
static char *
job_text(const struct stage_config *config, const struct python_stage *stage, int64_t timeout_ns)
{
    char *arguments = spec_json(spec_get(config->stage, "arguments"));
    char *text = NULL;
    size_t bytes = 0;
    struct json json;
    FILE *file = open_memstream(&text, &bytes);

    tnd_must_have(file != NULL);
    json_start(&json, file);
    json_object(&json);
    json_key_text(&json, "call", spec_text(config->stage, stage->found));
    json_key_text(&json, "rows", stage->rows);
    json_key_text(&json, "folder", config->stage->file->root);
    json_key(&json, "warm");
    json_bool(&json, is_warm(config->stage));
    json_key(&json, "timeout");
    json_float(&json, (double)timeout_ns / 1e9, 17);
    json_key(&json, "arguments");
    json_raw(&json);
    fputs(arguments, file);
    json_key(&json, "inputs");
    described_columns_write(&json, stage->inputs.schema, stage->inputs.list, stage->inputs.count);
    if (stage->outputs != NULL) {
        json_key(&json, "outputs");
        described_columns_write(&json, stage->outputs, NULL, stage->outputs->count);
    }
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

tundish_status
python_stage_open(const struct stage_config *config, const struct python_stage *stage,
                  struct python_pool **ret_pool)
{
    struct python_job job = {
        .name = spec_text(config->stage, stage->found),
        .python = interpreter(config->stage),
        .folder = config->stage->file->root,
        .is_warm = is_warm(config->stage),
    };
    tundish_status status;
    char *text;

    if (strchr(job.name, ':') == NULL)
        return stage_complain(config,
                              "%s is a module and a name in it, as \"augment:train\", not '%s'",
                              stage->found, job.name);
    (void)quantity_duration_ns(spec_get(config->stage, "timeout"), &job.timeout_ns);
    if (spec_has_value(config->stage, "memory"))
        (void)quantity_bytes(spec_get(config->stage, "memory"), &job.memory_limit);
    text = job_text(config, stage, job.timeout_ns);
    job.text = text;
    status = python_pool_open(&job, worker_limit(config->stage), ret_pool);
    free(text);
    return status == TUNDISH_OK
               ? status
               : stage_complain(config, "python %s: %s", job.name, tnd_error_text());
}

char *
python_stage_learned(const struct python_pool *pool, const char *parameter)
{
    const struct schema *columns = python_pool_columns(pool);
    char *text = NULL;
    size_t bytes = 0;
    struct json json;
    FILE *file;

    if (columns == NULL)
        return NULL;
    file = open_memstream(&text, &bytes);
    tnd_must_have(file != NULL);
    fprintf(file, "%s: ", parameter);
    json_start(&json, file);
    json_object(&json);
    for (uint32_t i = 0; i < columns->count; i++) {
        const struct column_spec *column = &columns->columns[i];

        json_key(&json, column->name);
        json_object(&json);
        json_key_text(&json, "dtype", tnd_dtype_name(column->dtype));
        json_key(&json, "shape");
        json_array(&json);
        for (int k = 0; k < column->rank; k++)
            if (column->shape[k] < 0)
                json_null(&json);
            else
                json_int(&json, column->shape[k]);
        json_array_end(&json);
        json_object_end(&json);
    }
    json_object_end(&json);
    tnd_must_have(fclose(file) == 0);
    return text;
}
