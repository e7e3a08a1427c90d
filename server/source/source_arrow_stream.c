/* source_arrow_stream.c - the rows of an Arrow stream that a shared object opens
 * (tundish_source.h).
 *
 * A stream can be read only once, but references to rows may be held for long: see rows/passes.h,
 * also for the words of an element. Rows are kept as a program's, each after a number that says
 * which of its columns is null, if one is. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/arrow_rows.h"
#include "column/literal.h"
#include "core/clock.h"
#include "core/memory.h"
#include "source/files/fetch.h"
#include "source/files/files_private.h"
#include "source/files/whereabouts.h"
#include "source/rows/named_columns.h"
#include "source/rows/passes.h"
#include "source/rows/row_codec.h"
#include "spec/shared_object.h"

typedef int opener(const char *arguments, struct ArrowArrayStream *out);

struct arrow_wanted {
    char *name;
    tundish_dtype dtype;
    enum arrow_shape shape;
    uint32_t list_size;
    void *fallback; /* a value of the dtype that stands for null, or NULL */
};

struct arrow_stream {
    opener *open;
    char *arguments;
    const char *library; /* as written; for messages */
    struct arrow_wanted *wanted;
    uint32_t count;
    struct schema schema;
    uint32_t there; /* columns of the stream */
};

struct arrow_state {
    struct arrow_rows rows;
    struct pass pass;
    bool is_over;
};

enum { HEAD_BYTES = sizeof(uint32_t) };

/* Start the stream: rows_close is called either way. */
static tundish_status
start_stream(const struct arrow_stream *arrow, struct arrow_rows *rows)
{
    struct ArrowArrayStream stream = { 0 };
    int error = arrow->open(arrow->arguments, &stream);
    const char *text = NULL;
    tundish_status status;

    if (error == 0)
        return arrow_rows_open(rows, &stream);
    if (stream.release != NULL && stream.get_last_error != NULL)
        text = stream.get_last_error(&stream);
    status = text != NULL ? tnd_fail(TUNDISH_E_DATA, "it cannot be opened: %s", text)
                          : tnd_fail_errno(error, "it cannot be opened");
    if (stream.release != NULL)
        stream.release(&stream);
    return status;
}

static tundish_status
add_column(struct arrow_stream *arrow, const struct stage_config *config,
           const struct named_column *named, const struct arrow_field *field)
{
    struct arrow_wanted *wanted;
    struct column_spec *column;

    if (field->obstacle[0] != '\0')
        return named_column_refuse(config, named, field->obstacle);
    wanted = &arrow->wanted[arrow->count++];
    *wanted = (struct arrow_wanted){ .name = tnd_strdup(named->name),
                                     .dtype = field->dtype,
                                     .shape = field->shape,
                                     .list_size = field->list_size };
    column = schema_add(&arrow->schema, named->name, field->dtype);
    if (field->shape != ARROW_SCALARS) {
        column->rank = 1;
        column->shape[0] = field->shape == ARROW_FIXED_LISTS ? (int64_t)field->list_size : -1;
        column->row_of_ragged = field->shape != ARROW_FIXED_LISTS;
    }
    return named_column_fallback(config, named, field->dtype, &wanted->fallback);
}

/* Take the columns from the stream's schema. */
static tundish_status
open_columns(struct arrow_stream *arrow, const struct stage_config *config,
             const struct arrow_rows *rows)
{
    const char **known = tnd_zalloc((size_t)rows->field_count + 1, sizeof *known);
    struct named_columns named;
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < rows->field_count && status == TUNDISH_OK; i++) {
        known[i] = rows->fields[i].name;
        for (uint32_t k = 0; k < i && status == TUNDISH_OK; k++)
            if (strcmp(known[k], known[i]) == 0)
                status = stage_complain(config, "arrow_stream: %s has two columns '%s'",
                                        arrow->library, known[i]);
    }
    if (status == TUNDISH_OK) {
        status = named_columns_open(config, known, rows->field_count, &named);
        arrow->wanted = tnd_zalloc((size_t)named.count + 1, sizeof *arrow->wanted);
        for (uint32_t i = 0; i < named.count && status == TUNDISH_OK; i++)
            status = add_column(arrow, config, &named.columns[i],
                                arrow_rows_find(rows, named.columns[i].name));
        named_columns_close(&named);
    }
    free((void *)(uintptr_t)known);
    return status;
}

static tundish_status
check_columns(const struct arrow_stream *arrow, const struct stage_config *config)
{
    const char *reason = NULL;
    const char *obstacle = row_codec_obstacle(&arrow->schema, &reason);

    if (arrow->count == 0)
        return stage_complain(config, "arrow_stream reads no column");
    if (obstacle != NULL)
        return stage_complain(config, "arrow_stream: column '%s' %s", obstacle, reason);
    return TUNDISH_OK;
}

static tundish_status
arrow_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    struct arrow_stream *arrow = state;
    struct arrow_rows rows = { 0 };
    tundish_status status =
        spec_load(config->stage, config->errors, "tundish_source_open", (void **)&arrow->open);

    if (status != TUNDISH_OK)
        return status;
    arrow->library = spec_text(config->stage, "library");
    arrow->arguments = spec_json(spec_get(config->stage, "arguments"));
    status = start_stream(arrow, &rows);
    status = status != TUNDISH_OK
                 ? stage_complain(config, "arrow_stream: %s: %s", arrow->library, tnd_error_text())
                 : open_columns(arrow, config, &rows);
    arrow->there = rows.field_count;
    arrow_rows_close(&rows);
    if (status == TUNDISH_OK)
        status = check_columns(arrow, config);
    schema_pass_all(ret_schema, &arrow->schema);
    for (uint32_t i = 0; i < ret_schema->count; i++)
        ret_schema->columns[i].passed_from = -1; /* decoded here */
    return status;
}

static void
arrow_close(void *state)
{
    struct arrow_stream *arrow = state;

    for (uint32_t i = 0; i < arrow->count; i++) {
        free(arrow->wanted[i].name);
        literal_free(arrow->wanted[i].fallback, arrow->wanted[i].dtype, 1);
    }
    free(arrow->wanted);
    free(arrow->arguments);
    schema_close(&arrow->schema);
}

static struct arrow_state *
state_of(struct order_iterator *iterator)
{
    return (struct arrow_state *)iterator->state;
}

static const struct arrow_stream *
stream_of(const struct order_iterator *iterator)
{
    return iterator->node->state;
}

/* Take the columns that the plan saw; a stream that has others by now is refused. */
static tundish_status
take_columns(const struct arrow_stream *arrow, struct arrow_rows *rows)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < arrow->count && status == TUNDISH_OK; i++) {
        const struct arrow_wanted *wanted = &arrow->wanted[i];
        const struct arrow_field *field = arrow_rows_find(rows, wanted->name);

        if (field == NULL || field->obstacle[0] != '\0' || field->dtype != wanted->dtype ||
            field->shape != wanted->shape || field->list_size != wanted->list_size)
            return tnd_fail(TUNDISH_E_DATA,
                            "column '%s' is missing, or of another type than when the pipeline was "
                            "planned",
                            wanted->name);
        status = arrow_rows_take(rows, field, wanted->fallback);
    }
    rows->head_bytes = HEAD_BYTES;
    return status;
}

static enum order_result
fail_stream(struct order_iterator *iterator, tundish_status status)
{
    char *reason = tnd_strdup(tnd_error_text());

    state_of(iterator)->is_over = true;
    order_fail(iterator, status, "%s, after row %" PRIu64 ": %s", stream_of(iterator)->library,
               state_of(iterator)->pass.rows, reason);
    free(reason);
    return ORDER_FAILED;
}

static tundish_status
arrow_iterate(struct order_iterator *iterator)
{
    const struct arrow_stream *arrow = stream_of(iterator);
    struct arrow_state *state = state_of(iterator);
    tundish_status status = pass_begin(iterator, arrow->library, &state->pass);

    if (status != TUNDISH_OK)
        return status;
    status = start_stream(arrow, &state->rows);
    if (status == TUNDISH_OK)
        status = take_columns(arrow, &state->rows);
    if (status != TUNDISH_OK)
        fail_stream(iterator, status);
    return status;
}

static void
arrow_iterate_close(struct order_iterator *iterator)
{
    struct arrow_state *state = state_of(iterator);

    arrow_rows_close(&state->rows);
    pass_end(&state->pass);
}

static enum order_result
arrow_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct arrow_state *state = state_of(iterator);
    int64_t began_ns = tnd_clock_ns();
    enum order_result result;
    tundish_status status;

    if (state->is_over)
        return ORDER_END;
    status = arrow_rows_next(&state->rows, max < INT64_MAX ? (int64_t)max : INT64_MAX);
    count_up(&files_services(iterator->instance->services->files)->counters.program_wait_ns,
             (uint64_t)(tnd_clock_ns() - began_ns));
    state->is_over = status != TUNDISH_OK;
    if (status == TUNDISH_END)
        return ORDER_END;
    if (status != TUNDISH_OK)
        return fail_stream(iterator, status);
    result = pass_keep(iterator, &state->pass, stream_of(iterator)->library, state->rows.bytes.data,
                       (const uint64_t *)(const void *)state->rows.ends.data,
                       (size_t)state->rows.row_count, words);
    *ret_count = result == ORDER_OK ? (size_t)state->rows.row_count : 0;
    return result;
}

static void
say_where(const void *context, int64_t row, char *text, size_t bytes)
{
    snprintf(text, bytes, "a row of %s", fetch_file_name(context, row));
}

static tundish_status
arrow_read(const void *state, const struct source_read *read)
{
    const struct arrow_stream *arrow = state;
    struct byte_view *rows =
        scratch_array(read->output->scratch, (size_t)read->count + 1, sizeof *rows);
    tundish_status status = fetch_rows(read, 0, rows);

    if (status != TUNDISH_OK)
        return status;
    for (int64_t i = 0; i < read->count; i++) {
        uint32_t null = load_u32(rows[i].data);

        if (null != 0)
            frame_reject(read->output, i,
                         "a row of %s: column '%s' is null and has no default_value",
                         arrow->library, arrow->wanted[null - 1].name);
        rows[i].data += HEAD_BYTES;
        rows[i].size -= HEAD_BYTES;
    }
    return row_codec_decode(rows, read->count, read->output, say_where, read);
}

static void
arrow_tell(const void *state, struct source_files *files, const uint64_t *words,
           struct whereabouts *ret_where)
{
    (void)state;
    whereabouts_of_reference(files, words, ret_where);
    ret_where->note = "the bytes are those of a row as Tundish keeps it, which is in no file; the "
                      "stream may be opened again";
}

static char *
arrow_describe(const void *state)
{
    const struct arrow_stream *arrow = state;

    return tnd_sprintf("%s: %" PRIu32 " of %" PRIu32 " columns of its stream are taken",
                       arrow->library, arrow->count, arrow->there);
}

const struct source_ops source_arrow_stream = {
    .name = "arrow_stream",
    .order = { .name = "arrow_stream",
               .remembers = true,
               .state_bytes = sizeof(struct arrow_state),
               .open = arrow_iterate,
               .next = arrow_next,
               .close = arrow_iterate_close },
    .tell = arrow_tell,
    .describe = arrow_describe,
    .state_bytes = sizeof(struct arrow_stream),
    .open = arrow_open,
    .read = arrow_read,
    .needs_cache = passes_need_cache,
    .tells_content = true,
    .close = arrow_close,
};
