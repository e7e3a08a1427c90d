/* stage_fixture.c - opening, running, printing. */
#include "stage_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../print_lists.h"
#include "column/flush.h"
#include "core/memory.h"
#include "core/status.h"

struct stage_run *
stage_run_open(int64_t count, uint32_t depth)
{
    struct stage_run *run = tnd_zalloc(1, sizeof *run);

    run->input = (struct frame){ .count = count,
                                 .columns = run->inputs,
                                 .schema = &run->input_schema,
                                 .scratch = scratch_open(),
                                 .errors = &run->errors };
    run->output = run->input;
    run->output.columns = run->outputs;
    run->output.schema = &run->schema;
    run->depth = depth;
    run->text = tnd_strdup("");
    return run;
}

/* Undo the last stage_run: the columns that go in stay. */
static void
forget_stage(struct stage_run *run)
{
    if (run->ops != NULL)
        run->ops->close(run->state);
    free(run->state);
    schema_close(&run->schema);
    spec_errors_close(&run->complaints);
    spec_close(run->file);
    run->ops = NULL;
    run->state = NULL;
    run->file = NULL;
    run->complaints = (struct spec_errors){ 0 };
    run->errors = (struct frame_errors){ 0 };
    run->batch_wide = false;
}

void
stage_run_close(struct stage_run *run)
{
    forget_stage(run);
    schema_close(&run->input_schema);
    scratch_close(run->input.scratch);
    free(run->text);
    free(run);
}

static struct column *
add(struct stage_run *run, const char *name, tundish_dtype dtype, const void *values)
{
    struct column *column = &run->inputs[run->input.column_count++];

    schema_add(&run->input_schema, name, dtype);
    column_set_scalars(column, run->input.count, values);
    return column;
}

void
stage_run_add(struct stage_run *run, const char *name, tundish_dtype dtype, const void *values,
              const int64_t *dims)
{
    struct column *column = add(run, name, dtype, values);
    struct column_spec *spec = &run->input_schema.columns[run->input_schema.count - 1];

    for (; dims != NULL && dims[spec->rank] >= 0; spec->rank++) {
        spec->shape[spec->rank] = dims[spec->rank];
        column->levels[column->level_count++].uniform = dims[spec->rank];
        column->value_count *= dims[spec->rank];
    }
}

void
stage_run_add_lists(struct stage_run *run, const char *name, tundish_dtype dtype,
                    const void *values, const int64_t *splits)
{
    struct column *column = add(run, name, dtype, values);
    struct column_spec *spec = &run->input_schema.columns[run->input_schema.count - 1];

    spec->shape[spec->rank++] = -1;
    column->levels[column->level_count++] = (struct level){ .uniform = -1, .splits = splits };
    column->value_count = splits[run->input.count];
}

static tundish_status
keep_text(struct stage_run *run, tundish_status status, const char *text)
{
    free(run->text);
    run->text = tnd_strdup(text);
    return status;
}

/* The stage, behind a source that only stands there. */
static const struct spec_stage *
read_stage(struct stage_run *run, const char *stage)
{
    char *text =
        tnd_sprintf("streams:\n  case:\n    dataset:\n      - range: 1\n      - %s\n", stage);
    tundish_status status =
        spec_open_text(text, strlen(text), "test.yaml", ".", &run->complaints, &run->file);

    free(text);
    if (status != TUNDISH_OK)
        return NULL;
    return &spec_find_stream(run->file, "case")->dataset.stages[1];
}

/* Nothing follows. */
static tundish_status
look_ahead(struct stage_run *run, const struct spec_stage *stage)
{
    const struct content_step step = { stage,        run->ops, run->state, &run->input_schema,
                                       &run->schema, true };
    struct content_fused fused = { 0 };
    tundish_status status;

    if (run->ops->look_ahead == NULL)
        return TUNDISH_OK;
    status = run->ops->look_ahead(run->state, &step, 1, &run->complaints, &fused);
    assert_int_equal(fused.count, 0);
    return status;
}

tundish_status
stage_run(struct stage_run *run, const char *stage)
{
    struct stage_config config = { .input = &run->input_schema,
                                   .depth = run->depth,
                                   .errors = &run->complaints };
    tundish_status status = TUNDISH_E_PIPELINE;
    uint64_t mode;

    forget_stage(run);
    config.stage = read_stage(run, stage);
    if (config.stage != NULL) {
        run->ops = content_find(config.stage->info->name);
        assert_non_null(run->ops);
        run->state = tnd_zalloc(1, run->ops->state_bytes);
        status = run->ops->open(run->state, &config, &run->schema, &run->batch_wide);
    }
    if (status == TUNDISH_OK)
        status = look_ahead(run, config.stage);
    if (status != TUNDISH_OK) {
        assert_true(run->complaints.count > 0);
        return keep_text(run, status, run->complaints.list[0].text);
    }
    run->output.column_count = run->schema.count;
    for (uint32_t i = 0; i < run->schema.count; i++)
        if (run->schema.columns[i].passed_from >= 0)
            run->outputs[i] = run->inputs[run->schema.columns[i].passed_from];
    mode = flush_begin();
    status = run->ops->apply(run->state, &run->input, &run->output);
    flush_end(mode);
    if (status != TUNDISH_OK)
        return keep_text(run, status, tnd_error_text());
    return keep_text(run, run->errors.status, run->errors.text);
}

const char *
stage_run_column(struct stage_run *run, const char *name)
{
    int32_t index = schema_find(&run->schema, name);
    size_t bytes;
    FILE *out;

    assert_true(index >= 0);
    free(run->text);
    out = open_memstream(&run->text, &bytes);
    assert_non_null(out);
    print_lists(out, &run->outputs[index], run->schema.columns[index].dtype, 0,
                run->outputs[index].count);
    fclose(out);
    return run->text;
}

const char *
stage_run_spec(struct stage_run *run, const char *name)
{
    int32_t index = schema_find(&run->schema, name);

    assert_true(index >= 0);
    free(run->text);
    run->text = column_spec_text(&run->schema.columns[index]);
    return run->text;
}

struct byte_view
bytes_view(const void *bytes, size_t size)
{
    /* Kept in a list, so that it is no leak. */
    static struct kept {
        struct kept *next;
        uint8_t bytes[];
    } * kept;
    struct kept *one = tnd_zalloc(1, sizeof *one + size + 64);

    memcpy(one->bytes, bytes, size);
    one->next = kept;
    kept = one;
    return (struct byte_view){ one->bytes, size };
}

struct byte_view
text_view(const char *text)
{
    return bytes_view(text, strlen(text));
}
