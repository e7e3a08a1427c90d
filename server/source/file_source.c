/* file_source.c - readers: the records of one file after another. */
#include "source/file_source.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/must.h"
#include "source/files/file_remote.h"
#include "source/files/files_private.h"
#include "source/variable.h"

enum { FILES_AHEAD = 8 };

static tundish_status
check_names(const struct stage_config *config, const struct spec_value *names)
{
    if (names->kind == SPEC_VARIABLE)
        return variable_check_text(config, names);
    if (names->kind == SPEC_TEXT)
        return TUNDISH_OK;
    for (uint32_t i = 0; i < names->count && names->kind == SPEC_LIST; i++) {
        const struct spec_value *item = &names->items[i];
        tundish_status status = TUNDISH_OK;

        if (item->kind == SPEC_VARIABLE)
            status = variable_check_text(config, item);
        else if (item->kind != SPEC_TEXT)
            status = spec_complain(config->errors, item->line, item->column,
                                   "a file's name must be text");
        if (status != TUNDISH_OK)
            return status;
    }
    return names->kind == SPEC_LIST ? TUNDISH_OK
                                    : spec_complain(config->errors, names->line, names->column,
                                                    "filenames must be a name or a list of names");
}

/* A reader without filenames stands inside interleave or flat_map: each outer element's `value`
 * names its file. */
static tundish_status
check_outer(const struct stage_config *config)
{
    int32_t index = config->outer == NULL ? -1 : schema_find(config->outer, "value");
    const struct column_spec *column;

    if (index < 0)
        return stage_complain(config, "%s needs filenames%s", config->stage->info->name,
                              config->outer == NULL ? ""
                                                    : ": the outer element has no column `value`");
    column = &config->outer->columns[index];
    if (column->dtype != TUNDISH_STRING || column->kind != TUNDISH_DENSE || column->rank != 0)
        return stage_complain(config,
                              "%s reads the file named by the outer element's `value`, but that is "
                              "not a single string",
                              config->stage->info->name);
    return TUNDISH_OK;
}

static tundish_status
read_packing(const struct stage_config *config, enum packing *ret_packing)
{
    const struct spec_value *value = stage_parameter(config->stage->info, "compression_type") < 0
                                         ? NULL
                                         : spec_get(config->stage, "compression_type");

    /* "" is TensorFlow's default and means the same as null. Sources without the parameter read
     * bytes as they are. */
    if (value == NULL || value->kind == SPEC_NULL || value->text_bytes == 0)
        *ret_packing = PACKING_NONE;
    else if (strcmp(value->text, "GZIP") == 0)
        *ret_packing = PACKING_GZIP;
    else if (strcmp(value->text, "ZLIB") == 0)
        *ret_packing = PACKING_ZLIB;
    else
        return spec_complain(config->errors, value->line, value->column,
                             "compression_type must be \"\", GZIP or ZLIB, not '%s'", value->text);
    return TUNDISH_OK;
}

tundish_status
file_source_open(struct reader *reader, const struct stage_config *config,
                 const struct scanner_ops *scanner)
{
    tundish_status status = read_packing(config, &reader->format.packing);

    reader->format.scanner = scanner;
    reader->filenames = spec_get(config->stage, "filenames");
    if (reader->filenames != NULL && reader->filenames->kind == SPEC_NULL)
        reader->filenames = NULL;
    if (status != TUNDISH_OK)
        return status;
    return reader->filenames == NULL ? check_outer(config) : check_names(config, reader->filenames);
}

bool
file_source_needs_cache(const void *state, bool has_urls)
{
    const struct reader *reader = state;

    return reader->format.packing != PACKING_NONE || (has_urls && reader->format.parquet == NULL);
}

uint64_t
file_source_row_bytes(const uint64_t *words)
{
    return reference_length(words);
}

/* The file of a reader without filenames: $value of the nearest outer element. */
static const struct spec_value nearest_value = { .kind = SPEC_VARIABLE, .text = "value" };

/* The name at `index`, or NULL after the last. Where the plan has put a filenames stage before the
 * reader, the outer element is the one name. */
static const struct spec_value *
name_at(const struct plan_node *node, size_t index)
{
    const struct reader *reader = node->state;
    const struct spec_value *names = node->reads_outer_name ? NULL : reader->filenames;

    if (names != NULL && names->kind == SPEC_LIST)
        return index < names->count ? &names->items[index] : NULL;
    if (index > 0)
        return NULL;
    return names != NULL ? names : &nearest_value;
}

/* The suffix only says that a file is packed. PACKING_ANY then tells the method by the content. */
static bool
name_is_packed(struct byte_view name)
{
    static const char *const ends[] = { ".gz", ".tgz", ".bz2", ".tbz",  ".tbz2",
                                        ".xz", ".txz", ".zst", ".tzst", ".lz4" };

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t bytes = strlen(ends[i]);

        if (name.size > bytes &&
            strncasecmp((const char *)name.data + name.size - bytes, ends[i], bytes) == 0)
            return true;
    }
    return false;
}

struct source_file *
file_source_enter(const struct reader *reader, struct source_files *files, struct byte_view name)
{
    struct record_format format = reader->format;

    if (reader->packing_by_name && name_is_packed(name))
        format.packing = PACKING_ANY;
    return files_enter(files, (const char *)name.data, name.size, &format);
}

bool
file_source_reads(const struct reader *reader, const struct source_file *file)
{
    return file->format.scanner == reader->format.scanner &&
           memcmp(file->format.numbers, reader->format.numbers, sizeof file->format.numbers) == 0;
}

/* Register the file of `name` in the session's table; equal names and formats share one entry and
 * one scan. */
static tundish_status
enter_file(struct order_iterator *iterator, const struct spec_value *name,
           struct source_file **ret_file)
{
    const struct reader *reader = iterator->node->state;
    struct byte_view text = { (const uint8_t *)name->text, name->text_bytes };
    tundish_status status = TUNDISH_OK;

    if (name->kind == SPEC_VARIABLE)
        status = order_value_text(iterator->instance, name, &text);
    if (status == TUNDISH_OK)
        *ret_file = file_source_enter(reader, iterator->instance->services->files, text);
    return status;
}

/* The first parts of the next files at URLs come while this one is read: a server far away answers
 * many requests in the time that it takes for one. */
bool
file_source_expect(struct order_iterator *iterator)
{
    const struct reader_state *state = (const struct reader_state *)iterator->state;

    /* At first one alone: nothing takes from the link what the first batch needs. */
    for (size_t i = 0; i < FILES_AHEAD && i <= state->next; i++) {
        const struct spec_value *name = name_at(iterator->node, state->next + i);
        struct source_file *file = NULL;

        if (name == NULL || enter_file(iterator, name, &file) != TUNDISH_OK)
            return true;
        /* The name decides, and not where the file is: all nodes must enter the same files here. */
        if (!spec_is_url(file->name))
            return false;
        if (file->is_url)
            file_remote_expect(file, 0);
    }
    return true;
}

/* Open the next file, and have the pool scan the one after it while this one is read. An error of
 * that one is reported when its turn comes. */
static tundish_status
next_file(struct order_iterator *iterator, const struct spec_value *name)
{
    struct reader_state *state = (struct reader_state *)iterator->state;
    const struct spec_value *after = name_at(iterator->node, ++state->next);
    struct source_file *file = NULL;
    tundish_status status = enter_file(iterator, name, &file);

    if (status != TUNDISH_OK)
        return status;
    scan_cursor_open(&state->cursor, file, iterator->instance->services->stop);
    if (after != NULL && enter_file(iterator, after, &file) == TUNDISH_OK)
        scan_announce(file);
    (void)file_source_expect(iterator);
    return TUNDISH_OK;
}

tundish_status
file_source_fail_at_stage(const struct order_iterator *iterator, tundish_status status)
{
    const struct spec_stage *stage = iterator->node->stage;
    char *text = tnd_strdup(tnd_error_text());

    if (stage != NULL)
        (void)tnd_fail(status, "%s (%s, line %u of %s)", text, stage->info->name, stage->line,
                       stage->file->path);
    free(text);
    return status;
}

/* Files are opened on demand: a name may be bad and never be reached. */
tundish_status
file_source_iterate(struct order_iterator *iterator)
{
    (void)iterator;
    return TUNDISH_OK;
}

/* Make sure that a file is open; ORDER_END after the last name. */
static enum order_result
stand_in_file(struct order_iterator *iterator)
{
    struct reader_state *state = (struct reader_state *)iterator->state;
    const struct spec_value *name;

    if (state->cursor.scan != NULL)
        return ORDER_OK;
    name = name_at(iterator->node, state->next);
    if (name == NULL)
        return ORDER_END;
    return next_file(iterator, name) == TUNDISH_OK ? ORDER_OK : ORDER_FAILED;
}

enum order_result
file_source_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct reader_state *state = (struct reader_state *)iterator->state;

    for (;;) {
        enum order_result result = stand_in_file(iterator);

        if (result != ORDER_OK)
            return result;
        result = scan_cursor_next(&state->cursor, words, max, ret_count);
        if (result == ORDER_OK)
            return ORDER_OK;
        scan_cursor_close(&state->cursor);
        /* The next call goes on with the next file, as TFRecordDatasetOp does for ignore_errors. */
        if (result == ORDER_FAILED) {
            (void)file_source_fail_at_stage(iterator, tnd_status_last());
            return ORDER_FAILED;
        }
    }
}

/* As file_source_next, without making references. */
enum order_result
file_source_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct reader_state *state = (struct reader_state *)iterator->state;

    *ret_passed = 0;
    while (*ret_passed < count) {
        enum order_result result = stand_in_file(iterator);
        uint64_t passed = 0;

        if (result != ORDER_OK)
            return result;
        result = scan_cursor_pass_over(&state->cursor, count - *ret_passed, &passed);
        *ret_passed += passed;
        if (result == ORDER_OK)
            return ORDER_OK;
        scan_cursor_close(&state->cursor);
        if (result == ORDER_FAILED) {
            (void)file_source_fail_at_stage(iterator, tnd_status_last());
            return ORDER_FAILED;
        }
    }
    return ORDER_OK;
}

tundish_status
file_source_check(struct order_iterator *iterator)
{
    tundish_status status = TUNDISH_OK;
    const struct spec_value *name;

    for (size_t i = 0; status == TUNDISH_OK && (name = name_at(iterator->node, i)) != NULL; i++) {
        struct source_file *file = NULL;
        int descriptor = -1;

        status = enter_file(iterator, name, &file);
        /* A file that peers hold cannot be opened here; its own node checks it. */
        if (status != TUNDISH_OK || file->peers != NULL)
            continue;
        status = file->is_url ? file_remote_look(file) : file_open(file, &descriptor);
        if (status != TUNDISH_OK)
            status = file_source_fail_at_stage(iterator, status);
        if (descriptor >= 0)
            close(descriptor);
    }
    return status;
}

/* Enter all files before waiting for the first, so that the pool scans them in parallel. */
static tundish_status
enter_all(struct order_iterator *iterator, struct reader_state *state)
{
    tundish_status status = TUNDISH_OK;

    for (const struct spec_value *name; (name = name_at(iterator->node, state->file_count)) != NULL;
         state->file_count++) {
        state->parts = tnd_realloc(state->parts, state->file_count + 2, sizeof *state->parts);
        status = enter_file(iterator, name, &state->parts[state->file_count].file);
        if (status != TUNDISH_OK)
            return status;
        scan_announce(state->parts[state->file_count].file);
    }
    /* No file at all: the one part is the sentinel that complete_all fills in. */
    if (state->parts == NULL)
        state->parts = tnd_zalloc(1, sizeof *state->parts);
    return status;
}

/* Wait until all files are scanned, and number their records in one sequence. The part after the
 * last file is a sentinel: its `first` is the total. */
static tundish_status
complete_all(struct order_iterator *iterator, struct reader_state *state)
{
    uint64_t first = 0;
    tundish_status status = state->parts == NULL ? enter_all(iterator, state) : TUNDISH_OK;

    for (size_t i = 0; i < state->file_count && status == TUNDISH_OK; i++) {
        struct reader_part *part = &state->parts[i];

        status = scan_complete(part->file, iterator->instance->services->stop, &part->list);
        if (status != TUNDISH_OK)
            status = file_source_fail_at_stage(iterator, status);
        part->first = first;
        if (status == TUNDISH_OK)
            first += part->list->count;
    }
    if (status == TUNDISH_OK)
        state->parts[state->file_count].first = first;
    return status;
}

tundish_status
file_source_count(struct order_iterator *iterator, uint64_t *ret_count)
{
    struct reader_state *state = (struct reader_state *)iterator->state;
    tundish_status status = complete_all(iterator, state);

    if (status == TUNDISH_OK)
        *ret_count = state->parts[state->file_count].first;
    return status;
}

/* The part that holds record `index`, by binary search. Among parts with the same `first` it finds
 * the last; the others are empty files. */
static const struct reader_part *
part_of(const struct reader_state *state, uint64_t index)
{
    size_t low = 0;
    size_t high = state->file_count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (state->parts[middle].first <= index)
            low = middle;
        else
            high = middle;
    }
    return &state->parts[low];
}

tundish_status
file_source_at(struct order_iterator *iterator, const uint64_t *indices, size_t index_count,
               uint64_t *words)
{
    struct reader_state *state = (struct reader_state *)iterator->state;
    tundish_status status = TUNDISH_OK;

    /* A total of 0 means that an earlier attempt failed: an index into an empty reader is never
     * asked for. */
    if (state->parts == NULL || state->parts[state->file_count].first == 0)
        status = complete_all(iterator, state);
    for (size_t i = 0; i < index_count && status == TUNDISH_OK; i++) {
        const struct reader_part *part = part_of(state, indices[i]);

        must(indices[i] < state->parts[state->file_count].first);
        /* An index comes from a file in the cache folder, which anyone may have written over. */
        if (!record_list_at(part->list, indices[i] - part->first, reference_high(part->file),
                            &words[SOURCE_WIDTH * i]))
            status = tnd_fail(TUNDISH_E_CORRUPT,
                              "%s: its index in the cache folder is damaged; remove it",
                              part->file->name);
    }
    return status;
}

void
file_source_iterate_close(struct order_iterator *iterator)
{
    struct reader_state *state = (struct reader_state *)iterator->state;

    scan_cursor_close(&state->cursor);
    free(state->parts);
}
