/* source_program.c - the rows that child processes write to their standard output.
 * The output can be read only once, but references to rows may be held for long: see rows/passes.h,
 * also for the words of an element. Several processes write rows in turn, and row i is taken from
 * the one whose turn it is: what the others have done does not matter.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"
#include "source/files/begun.h"
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
    uint32_t processes;
    bool seeks;
};

/* One of the processes. */
struct writer {
    struct child child;
    char *name;      /* for messages */
    uint8_t *buffer; /* read and not yet handed on: [at, used) */
    size_t at, used, room;
    size_t needed;  /* at least, of the current row: bytes */
    bool has_ended; /* no bytes will follow those of the buffer */
};

struct program_state {
    struct writer *writers; /* of each process; NULL: none was started */
    struct pass pass;
    uint64_t *ends; /* of rows that were found, counted from `at` */
    size_t ends_room;
    struct rejections rejections;
    bool is_rejected; /* the one row that was found */
    bool is_over;
    bool keeps_all; /* that was read: another iterator is to go on with it (files/begun.h) */
    size_t kept_bytes;
};

/* The rest of an iterator that only measured: its processes, with all that they have
 * written. */
struct left_program {
    struct writer *writers;
    uint32_t processes;
    struct rejections rejections;
};

enum { READ_BYTES = 256 << 10, KEPT_BYTES_MAX = 64 << 20 };

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
    program->processes = (uint32_t)spec_int(config->stage, "processes");
    program->seeks = spec_bool(config->stage, "seek");
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

/* Start the process that writes row `first` and those of its later turns. */
static tundish_status
start_writer(struct order_iterator *iterator, uint64_t first, struct writer *writer)
{
    const struct order_services *services = iterator->instance->services;
    const struct program *program = program_of(iterator);
    /* The last entry stays NULL and ends the list. */
    char *environment[8] = {
        tnd_sprintf("TUNDISH_EPOCH=%" PRIu64, iterator->iterator_number),
        tnd_sprintf("TUNDISH_WORKER=%" PRIu32, services->worker),
        tnd_sprintf("TUNDISH_NUM_WORKERS=%" PRIu32, services->worker_count),
        tnd_sprintf("TUNDISH_SEED=%" PRIu64, services->root_seed),
        tnd_sprintf("TUNDISH_REJECT=%s", state_of(iterator)->rejections.word),
        tnd_sprintf("TUNDISH_FIRST_ROW=%" PRIu64, first),
        tnd_sprintf("TUNDISH_ROW_STEP=%" PRIu32, program->processes),
    };
    struct child_command command = {
        .arguments = program->arguments,
        .environment = (const char *const *)environment,
        /* Relative paths in the arguments mean the same as in the pipeline file. */
        .folder = files_root(services->files),
        /* Stats report this time: it tells whether the program is the bottleneck. */
        .waited_ns = &files_services(services->files)->counters.program_wait_ns,
    };
    tundish_status status = child_start(&command, &writer->child);

    for (int i = 0; environment[i] != NULL; i++)
        free(environment[i]);
    writer->name =
        program->processes == 1
            ? tnd_strdup(program->arguments[0])
            : tnd_sprintf("%s (process %" PRIu64 " of %" PRIu32 ")", program->arguments[0],
                          first % program->processes, program->processes);
    return status;
}

static void
close_writers(struct writer *writers, uint32_t processes)
{
    for (uint32_t i = 0; writers != NULL && i < processes; i++) {
        child_stop(&writers[i].child);
        free(writers[i].name);
        free(writers[i].buffer);
    }
    free(writers);
}

static void
left_close(void *state)
{
    struct left_program *left = state;

    close_writers(left->writers, left->processes);
    rejections_close(&left->rejections);
    free(left);
}

/* The same for iterators whose processes write the same. The caller frees it. */
static char *
key_of(const struct order_iterator *iterator, uint64_t first)
{
    const struct order_services *services = iterator->instance->services;
    const struct program *program = program_of(iterator);
    char *key =
        tnd_sprintf("program %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu32,
                    iterator->iterator_number, first, services->worker, services->worker_count,
                    services->root_seed, program->processes);

    for (const char *const *word = program->arguments; *word != NULL; word++) {
        char *longer = tnd_sprintf("%s\n%s", key, *word);

        free(key);
        key = longer;
    }
    return key;
}

/* Go on with those that an iterator has left where the pass stands. */
static bool
take_left(struct order_iterator *iterator)
{
    struct program_state *state = state_of(iterator);
    char *key = key_of(iterator, state->pass.rows);
    struct left_program *left = begun_take(iterator->instance->services->files, key);

    free(key);
    if (left == NULL)
        return false;
    rejections_close(&state->rejections);
    state->rejections = left->rejections;
    state->writers = left->writers;
    free(left);
    return true;
}

static void
leave_writers(struct order_iterator *iterator)
{
    struct program_state *state = state_of(iterator);
    struct left_program *left = tnd_zalloc(1, sizeof *left);
    char *key = key_of(iterator, state->pass.first);

    *left =
        (struct left_program){ state->writers, program_of(iterator)->processes, state->rejections };
    for (uint32_t i = 0; i < left->processes; i++)
        left->writers[i].at = 0;
    begun_leave(iterator->instance->services->files, key, left, left_close);
    state->writers = NULL;
    state->rejections = (struct rejections){ 0 };
    free(key);
}

/* Start them all where the pass stands. */
static tundish_status
start_writers(struct order_iterator *iterator)
{
    struct program_state *state = state_of(iterator);
    uint32_t processes = program_of(iterator)->processes;
    tundish_status status = TUNDISH_OK;

    if (take_left(iterator))
        return TUNDISH_OK;
    state->keeps_all = iterator->instance->services->samples;
    state->writers = tnd_zalloc(processes, sizeof *state->writers);
    for (uint32_t i = 0; i < processes && status == TUNDISH_OK; i++) {
        uint64_t first = state->pass.rows + i;

        status = start_writer(iterator, first, &state->writers[first % processes]);
    }
    return status;
}

static void
stop_writers(struct order_iterator *iterator)
{
    struct program_state *state = state_of(iterator);

    close_writers(state->writers, program_of(iterator)->processes);
    state->writers = NULL;
}

/* The one that writes the next row. */
static struct writer *
next_writer(struct order_iterator *iterator)
{
    struct program_state *state = state_of(iterator);

    return &state->writers[state->pass.rows % program_of(iterator)->processes];
}

/* A program that can begin anywhere is started where it is known from which row on. */
static tundish_status
program_iterate(struct order_iterator *iterator)
{
    tundish_status status = pass_begin(iterator, name_of(iterator), &state_of(iterator)->pass);

    if (status == TUNDISH_OK)
        status = rejections_open(&state_of(iterator)->rejections);
    return status == TUNDISH_OK && !program_of(iterator)->seeks ? start_writers(iterator) : status;
}

static void
program_iterate_close(struct order_iterator *iterator)
{
    struct program_state *state = state_of(iterator);

    if (state->writers != NULL && state->keeps_all)
        leave_writers(iterator);
    stop_writers(iterator);
    pass_end(&state->pass);
    rejections_close(&state->rejections);
    free(state->ends);
}

/* Measure the row at `at` of its buffer, or the rejection that stands for it: its length, or the
 * least length if it is not complete. ORDER_FAILED if its bytes cannot be a row. */
static enum order_result
find_row(struct order_iterator *iterator, size_t at, size_t *ret_bytes, bool *ret_whole)
{
    struct program_state *state = state_of(iterator);
    const struct writer *writer = next_writer(iterator);
    struct byte_view bytes = { writer->buffer + at, writer->used - at };
    enum row_fit fit = rejection_measure(&state->rejections, bytes, writer->has_ended, ret_bytes);

    state->is_rejected = *ret_bytes > 0;
    if (!state->is_rejected)
        fit = row_codec_measure(&program_of(iterator)->schema, bytes.data, bytes.size, ret_bytes);
    if (fit == ROW_BAD) {
        char *reason = tnd_strdup(tnd_error_text());

        order_fail(iterator, TUNDISH_E_DATA, "%s, row %" PRIu64 ": %s", writer->name,
                   state->pass.rows, reason);
        free(reason);
        return ORDER_FAILED;
    }
    *ret_whole = fit == ROW_WHOLE;
    return ORDER_OK;
}

/* Read more of its output into its buffer, at least as much as its current row is known to need. */
static tundish_status
read_on(struct order_iterator *iterator, struct writer *writer)
{
    struct program_state *state = state_of(iterator);
    size_t left = writer->used - writer->at;
    size_t wanted = writer->needed > left + READ_BYTES ? writer->needed - left : READ_BYTES;
    size_t got = 0;
    tundish_status status;

    if (!state->keeps_all) {
        if (left > 0 && writer->at > 0) /* once for a long row, which takes many readings */
            memmove(writer->buffer, writer->buffer + writer->at, left);
        writer->at = 0;
        writer->used = left;
    }
    if (writer->room < writer->used + wanted) {
        writer->room = writer->used + wanted;
        writer->buffer = tnd_realloc(writer->buffer, writer->room, 1);
    }
    status = child_read(&writer->child, writer->name, iterator->instance->services->stop,
                        writer->buffer + writer->used, writer->room - writer->used, &got);
    writer->used += got;
    state->kept_bytes += got;
    state->keeps_all &= state->kept_bytes <= KEPT_BYTES_MAX;
    writer->has_ended = status == TUNDISH_OK && got == 0;
    return status;
}

/* The end of its output is valid if no row is cut off and it returned 0. `is_next`: the row that it
 * does not write is the pass's next; the others must have none after that. */
static tundish_status
finish_writer(struct order_iterator *iterator, struct writer *writer, bool is_next)
{
    uint64_t rows = state_of(iterator)->pass.rows;
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK && !writer->has_ended && (is_next || writer->used == writer->at))
        status = read_on(iterator, writer);
    if (status == TUNDISH_OK && !is_next && writer->used > writer->at)
        return tnd_fail(TUNDISH_E_DATA,
                        "program %s wrote a row although there is no row %" PRIu64
                        ": with processes, each one must write its turns of the same rows",
                        writer->name, rows);
    if (status == TUNDISH_OK)
        status = child_wait(&writer->child, writer->name, iterator->instance->services->stop);
    if (status == TUNDISH_OK && writer->used > writer->at)
        status =
            tnd_fail(TUNDISH_E_DATA,
                     "program %s ended inside row %" PRIu64 ": it wrote %zu bytes of at least %zu",
                     writer->name, rows, writer->used - writer->at, writer->needed);
    return status;
}

static enum order_result
finish_program(struct order_iterator *iterator)
{
    struct program_state *state = state_of(iterator);
    struct writer *next = next_writer(iterator);
    tundish_status status = finish_writer(iterator, next, true);

    for (uint32_t i = 0; i < program_of(iterator)->processes && status == TUNDISH_OK; i++)
        if (&state->writers[i] != next)
            status = finish_writer(iterator, &state->writers[i], false);
    if (status == TUNDISH_STOPPED)
        return ORDER_FAILED;
    state->is_over = true;
    stop_writers(iterator);
    if (status == TUNDISH_OK)
        return ORDER_END;
    char *reason = tnd_strdup(tnd_error_text());

    order_fail(iterator, status, "%s", reason);
    free(reason);
    return ORDER_FAILED;
}

/* Find up to `max` whole rows in the next writer's buffer, or one that is rejected. Where they end
 * goes to `ends`.
 */
static enum order_result
find_rows(struct order_iterator *iterator, size_t max, size_t *ret_count)
{
    struct program_state *state = state_of(iterator);
    struct writer *writer = next_writer(iterator);
    enum order_result result = ORDER_OK;
    size_t at = writer->at;

    *ret_count = 0;
    while (*ret_count < max && at < writer->used) {
        size_t bytes = 0;
        bool is_whole = false;

        result = find_row(iterator, at, &bytes, &is_whole);
        if (result != ORDER_OK || !is_whole) {
            writer->needed = bytes;
            break;
        }
        if (state->is_rejected && *ret_count > 0)
            break;
        at += bytes;
        state->ends[(*ret_count)++] = at - writer->at;
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

    while (!state->is_over) {
        struct writer *writer = next_writer(iterator);
        enum order_result result = find_rows(iterator, max, ret_count);

        /* After a bad row the next one cannot be found: lengths are in the rows. */
        if (result == ORDER_FAILED)
            state->is_over = true;
        if (result != ORDER_OK || *ret_count > 0)
            return result;
        /* The last bytes are looked at again: what might have been a rejection may be rows. */
        if (writer->has_ended && !state->keeps_all)
            return finish_program(iterator);
        if (writer->has_ended) /* the iterator that goes on checks the end */
            state->is_over = true;
        if (state->is_over)
            break;
        if (read_on(iterator, writer) != TUNDISH_OK)
            return ORDER_FAILED;
    }
    return ORDER_END;
}

/* Keep the rows that were found, which `ends` counts, or the record of the rejected one. */
static enum order_result
keep_found(struct order_iterator *iterator, size_t count, uint64_t *words)
{
    struct program_state *state = state_of(iterator);
    struct writer *writer = next_writer(iterator);
    const uint8_t *rows = writer->buffer + writer->at;
    const struct row_bytes *record = &state->rejections.record;
    uint64_t end;

    writer->at += state->ends[count - 1];
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
    enum order_result result = ORDER_OK;

    if (program_of(iterator)->processes > 1)
        max = 1; /* of each in turn */
    if (state->ends_room < max) {
        state->ends = tnd_realloc(state->ends, max, sizeof *state->ends);
        state->ends_room = max;
    }
    if (state->writers == NULL && !state->is_over && start_writers(iterator) != TUNDISH_OK)
        return ORDER_FAILED;
    result = more_rows(iterator, max, ret_count);
    if (result == ORDER_OK)
        result = keep_found(iterator, *ret_count, words);
    if (result != ORDER_OK)
        *ret_count = 0;
    return result;
}

/* Begin at the last of them, which shows that they are all there. If they are not, the program
 * begins again with its first row, and the rows are counted. */
static enum order_result
program_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct program_state *state = state_of(iterator);
    uint64_t words[PASS_WIDTH];
    enum order_result result;
    size_t found;

    *ret_passed = 0;
    /* Other nodes may pass over more or fewer: there rows would lie elsewhere, and differ. */
    if (!program_of(iterator)->seeks || state->writers != NULL || state->is_over || count == 0 ||
        iterator->instance->services->worker_count > 1)
        return ORDER_OK;
    pass_begin_at(&state->pass, count - 1);
    result = program_next(iterator, words, 1, &found);
    if (result == ORDER_OK)
        *ret_passed = count;
    if (result != ORDER_END || count == 1)
        return result;
    state->is_over = false;
    pass_begin_at(&state->pass, 0);
    return start_writers(iterator) == TUNDISH_OK ? ORDER_OK : ORDER_FAILED;
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
    /* The record of a rejection is not a row, and a blank row is decoded in its place. */
    return row_codec_decode(rows, read->count, read->output, say_where, read);
}

static tundish_status
program_can_begin(const void *state, const char *root)
{
    const struct program *program = state;

    return child_check(program->arguments[0], root);
}

/* Its output is kept only while it runs. */
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
               .close = program_iterate_close,
               .pass_over = program_pass_over },
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
