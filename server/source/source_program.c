/* source_program.c - the rows that a child process writes to its standard output.
 * The output can be read only once, but references to rows may be held for long: see rows/passes.h,
 * also for the words of an element.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"
#include "source/files/fetch.h"
#include "source/files/files_private.h"
#include "source/files/whereabouts.h"
#include "source/rows/passes.h"
#include "source/rows/rejections.h"
#include "source/rows/row_codec.h"
#include "workers/child.h"
#include "workers/described_columns.h"

struct program {
    const char **arguments; /* NULL-terminated */
    struct schema schema;
};

struct program_state {
    struct child child;
    struct pass pass;
    uint8_t *buffer; /* read and not yet handed on: [at, used) */
    size_t at, used, room;
    size_t needed;  /* the current row has at least so many bytes */
    uint64_t *ends; /* of rows that were found, counted from `at` */
    size_t ends_room;
    struct rejections rejections;
    bool is_rejected; /* the one row that was found */
    bool has_ended;   /* no bytes will follow those of the buffer */
    bool is_over;
};

enum { READ_BYTES = 256 << 10 };

static tundish_status
open_spec(struct program *program, const struct stage_config *config)
{
    const char *reason = NULL, *obstacle;
    tundish_status status =
        described_columns_open(config, spec_get(config->stage, "spec"), &program->schema);

    obstacle = status == TUNDISH_OK ? row_codec_obstacle(&program->schema, &reason) : NULL;
    if (obstacle != NULL)
        return stage_complain(config, "program: column '%s' %s", obstacle, reason);
    /* Rows have no separators. A row without bytes would repeat without end. */
    if (status == TUNDISH_OK && row_codec_least_bytes(&program->schema) == 0)
        return stage_complain(
            config, "program: a row of this spec has no bytes, so rows cannot be separated");
    return status;
}

static tundish_status
program_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    struct program *program = state;
    const struct spec_value *command = spec_get(config->stage, "command");
    tundish_status status;

    if (command->count == 0 || command->items[0].text_bytes == 0)
        return stage_complain(config, "command needs the program to run, then its arguments: "
                                      "[python3, rows.py]");
    program->arguments = tnd_zalloc(command->count + 1, sizeof *program->arguments);
    for (uint32_t i = 0; i < command->count; i++)
        program->arguments[i] = command->items[i].text;
    status = open_spec(program, config);
    schema_pass_all(ret_schema, &program->schema);
    for (uint32_t i = 0; i < ret_schema->count; i++)
        /* The columns are decoded here: none is passed through from an input. */
        ret_schema->columns[i].passed_from = -1;
    return status;
}

static void
program_close(void *state)
{
    struct program *program = state;

    free((void *)(uintptr_t)program->arguments);
    schema_close(&program->schema);
}

static struct program_state *
state_of(struct order_iterator *iterator)
{
    return (struct program_state *)iterator->state;
}

static const struct program *
program_of(const struct order_iterator *iterator)
{
    return iterator->node->state;
}

static const char *
name_of(const struct order_iterator *iterator)
{
    return program_of(iterator)->arguments[0];
}

static tundish_status
start_program(struct order_iterator *iterator)
{
    const struct order_services *services = iterator->instance->services;
    struct program_state *state = state_of(iterator);
    /* The last entry stays NULL and ends the list. */
    char *environment[6] = {
        tnd_sprintf("TUNDISH_EPOCH=%" PRIu64, iterator->iterator_number),
        tnd_sprintf("TUNDISH_WORKER=%" PRIu32, services->worker),
        tnd_sprintf("TUNDISH_NUM_WORKERS=%" PRIu32, services->worker_count),
        tnd_sprintf("TUNDISH_SEED=%" PRIu64, services->root_seed),
        tnd_sprintf("TUNDISH_REJECT=%s", state->rejections.word),
    };
    struct child_command command = {
        .arguments = program_of(iterator)->arguments,
        .environment = (const char *const *)environment,
        /* Relative paths in the arguments mean the same as in the pipeline file. */
        .folder = table_root(services->files),
        /* Stats report this time: it tells whether the program is the bottleneck. */
        .waited_ns = &table_services(services->files)->counters.program_wait_ns,
    };
    tundish_status status = child_start(&command, &state->child);

    for (int i = 0; i < 5; i++)
        free(environment[i]);
    return status;
}

static tundish_status
program_iterate(struct order_iterator *iterator)
{
    tundish_status status = pass_begin(iterator, name_of(iterator), &state_of(iterator)->pass);

    if (status == TUNDISH_OK)
        status = rejections_open(&state_of(iterator)->rejections);
    return status == TUNDISH_OK ? start_program(iterator) : status;
}

static void
program_iterate_close(struct order_iterator *iterator)
{
    struct program_state *state = state_of(iterator);

    child_stop(&state->child);
    pass_end(&state->pass);
    rejections_close(&state->rejections);
    free(state->buffer);
    free(state->ends);
}

/* Measure the row at `at` of the buffer, or the rejection that stands for it: its length, or the
 * least length if it is not complete. ORDER_FAILED if its bytes cannot be a row. */
static enum order_result
find_row(struct order_iterator *iterator, size_t at, size_t *ret_bytes, bool *ret_whole)
{
    struct program_state *state = state_of(iterator);
    struct byte_view bytes = { state->buffer + at, state->used - at };
    enum row_fit fit = rejection_measure(&state->rejections, bytes, state->has_ended, ret_bytes);

    state->is_rejected = *ret_bytes > 0;
    if (!state->is_rejected)
        fit = row_codec_measure(&program_of(iterator)->schema, bytes.data, bytes.size, ret_bytes);
    if (fit == ROW_BAD) {
        char *reason = tnd_strdup(tnd_error_text());

        order_fail(iterator, TUNDISH_E_DATA, "%s, row %" PRIu64 ": %s", name_of(iterator),
                   state->pass.rows, reason);
        free(reason);
        return ORDER_FAILED;
    }
    *ret_whole = fit == ROW_WHOLE;
    return ORDER_OK;
}

/* The end of the output is valid if no row is cut off and the program returned 0. */
static enum order_result
finish_program(struct order_iterator *iterator)
{
    struct program_state *state = state_of(iterator);
    tundish_status status =
        child_wait(&state->child, name_of(iterator), iterator->instance->services->stop);

    if (status == TUNDISH_OK && state->used > state->at)
        status =
            tnd_fail(TUNDISH_E_DATA,
                     "program %s ended inside row %" PRIu64 ": it wrote %zu bytes of at least %zu",
                     name_of(iterator), state->pass.rows, state->used - state->at, state->needed);
    if (status == TUNDISH_STOPPED)
        return ORDER_FAILED;
    state->is_over = true;
    child_stop(&state->child);
    if (status == TUNDISH_OK)
        return ORDER_END;
    char *reason = tnd_strdup(tnd_error_text());

    order_fail(iterator, status, "%s", reason);
    free(reason);
    return ORDER_FAILED;
}

/* Read more of the output into the buffer, at least as much as the current row is known to need. */
static enum order_result
read_on(struct order_iterator *iterator)
{
    struct program_state *state = state_of(iterator);
    size_t left = state->used - state->at;
    size_t wanted = state->needed > left + READ_BYTES ? state->needed - left : READ_BYTES;
    size_t got = 0;
    tundish_status status;

    if (left > 0)
        memmove(state->buffer, state->buffer + state->at, left);
    state->at = 0;
    state->used = left;
    if (state->room < left + wanted) {
        state->room = left + wanted;
        state->buffer = tnd_realloc(state->buffer, state->room, 1);
    }
    status = child_read(&state->child, name_of(iterator), iterator->instance->services->stop,
                        state->buffer + left, state->room - left, &got);
    if (status != TUNDISH_OK)
        return ORDER_FAILED;
    state->used += got;
    if (got == 0 && state->has_ended)
        return finish_program(iterator);
    /* The last bytes are looked at again: what might have been a rejection may be rows. */
    state->has_ended = got == 0;
    return ORDER_OK;
}

/* Find up to `max` whole rows in the buffer, or one that is rejected. Where they end goes to
 * `ends`.
 */
static enum order_result
find_rows(struct order_iterator *iterator, size_t max, size_t *ret_count)
{
    struct program_state *state = state_of(iterator);
    enum order_result result = ORDER_OK;
    size_t at = state->at;

    *ret_count = 0;
    while (*ret_count < max && at < state->used) {
        size_t bytes = 0;
        bool is_whole = false;

        result = find_row(iterator, at, &bytes, &is_whole);
        if (result != ORDER_OK || !is_whole) {
            state->needed = bytes;
            break;
        }
        if (state->is_rejected && *ret_count > 0)
            break;
        at += bytes;
        state->ends[(*ret_count)++] = at - state->at;
        if (state->is_rejected)
            return ORDER_OK;
    }
    state->is_rejected = false;
    return *ret_count > 0 ? ORDER_OK : result;
}

static enum order_result
more_rows(struct order_iterator *iterator, size_t max, size_t *ret_count)
{
    struct program_state *state = state_of(iterator);

    for (;;) {
        enum order_result result = state->is_over ? ORDER_END : ORDER_OK;

        if (result == ORDER_OK)
            result = find_rows(iterator, max, ret_count);
        /* After a bad row the next one cannot be found: lengths are in the rows. */
        if (result == ORDER_FAILED)
            state->is_over = true;
        if (result != ORDER_OK || *ret_count > 0)
            return result;
        result = read_on(iterator);
        if (result != ORDER_OK)
            return result;
    }
}

/* Keep the rows that were found, which `ends` counts, or the record of the rejected one. */
static enum order_result
keep_found(struct order_iterator *iterator, size_t count, uint64_t *words)
{
    struct program_state *state = state_of(iterator);
    const uint8_t *rows = state->buffer + state->at;
    const struct row_bytes *record = &state->rejections.record;
    uint64_t end;

    if (!state->is_rejected)
        return pass_keep(iterator, &state->pass, name_of(iterator), rows, state->ends, count,
                         words);
    rejection_record(&state->rejections, &program_of(iterator)->schema,
                     (struct byte_view){ rows, state->ends[0] }, state->pass.rows);
    end = record->used;
    return pass_keep(iterator, &state->pass, name_of(iterator), record->data, &end, 1, words);
}

static enum order_result
program_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct program_state *state = state_of(iterator);
    enum order_result result;

    if (state->ends_room < max) {
        state->ends = tnd_realloc(state->ends, max, sizeof *state->ends);
        state->ends_room = max;
    }
    result = more_rows(iterator, max, ret_count);
    if (result == ORDER_OK)
        result = keep_found(iterator, *ret_count, words);
    if (result == ORDER_OK)
        state->at += state->ends[*ret_count - 1];
    else
        *ret_count = 0;
    return result;
}

static void
say_where(const void *context, int64_t row, char *text, size_t bytes)
{
    snprintf(text, bytes, "a row of %s", fetch_file_name(context, row));
}

static tundish_status
program_read(const void *state, const struct source_read *read)
{
    struct byte_view *rows =
        scratch_array(read->output->scratch, (size_t)read->count + 1, sizeof *rows);
    tundish_status status = fetch_rows(read, 0, rows);

    (void)state;
    if (status != TUNDISH_OK)
        return status;
    for (int64_t i = 0; i < read->count; i++) {
        struct byte_view sentence = rejection_sentence(read->output->schema, rows[i]);

        if (sentence.data != NULL)
            frame_reject(read->output, i, "%s, %.*s", fetch_file_name(read, i), (int)sentence.size,
                         (const char *)sentence.data);
    }
    /* The record of a rejection is no row, and a blank row is decoded in its place. */
    return row_codec_decode(rows, read->count, read->output, say_where, read);
}

static tundish_status
program_can_begin(const void *state, const char *root)
{
    const struct program *program = state;

    return child_check(program->arguments[0], root);
}

/* What it writes is kept only while it runs. */
static void
program_tell(const void *state, struct source_files *files, const uint64_t *words,
             struct whereabouts *ret_where)
{
    (void)state;
    whereabouts_of_reference(files, words, ret_where);
    ret_where->note = "the bytes are those of the program's output, which is in no file; the "
                      "program may be run again";
}

const struct source_ops source_program = {
    .name = "program",
    .order = { .name = "program",
               .remembers = true,
               .counts_iterators = true,
               .state_bytes = sizeof(struct program_state),
               .open = program_iterate,
               .next = program_next,
               .close = program_iterate_close },
    .tell = program_tell,
    .may_yield_batches = true,
    .state_bytes = sizeof(struct program),
    .open = program_open,
    .read = program_read,
    .can_begin = program_can_begin,
    .needs_cache = passes_need_cache,
    .tells_content = true,
    .reads_files = false,
    .close = program_close,
};
