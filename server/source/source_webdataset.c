/* source_webdataset.c - the samples of tar files: columns of members' bytes, by extension. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "source/file_source.h"
#include "source/files/fetch.h"
#include "source/scan/samples.h"
#include "source/scan/tar_sparse.h"

struct webdataset {
    struct reader reader; /* first, as file_source.h asks for */
    struct sample_columns columns;
};

static tundish_status
add_extension(struct sample_columns *columns, const struct stage_config *config,
              const struct spec_value *value)
{
    if (value->kind != SPEC_TEXT || value->text_bytes == 0)
        return spec_complain(config->errors, value->line, value->column,
                             "an extension must be text, as in {image: [jpg, png], txt: txt}");
    /* WebDataset splits a member's name at the first dot of its last part: 'a.seg.png' is key a,
     * extension seg.png. */
    if (value->text[0] == '.')
        return spec_complain(config->errors, value->line, value->column,
                             "write the extension '%s' without its first dot", value->text);
    columns->extensions =
        tnd_realloc(columns->extensions, columns->extension_count + 1, sizeof *columns->extensions);
    columns->extensions[columns->extension_count++] =
        (struct byte_view){ (const uint8_t *)value->text, value->text_bytes };
    columns->columns[columns->count - 1].extension_count++;
    return TUNDISH_OK;
}

static tundish_status
add_column(struct sample_columns *columns, const struct stage_config *config,
           const struct spec_value *name, const struct spec_value *extensions,
           struct schema *ret_schema)
{
    tundish_status status = TUNDISH_OK;

    if (columns->count == SAMPLE_COLUMNS_MAX)
        return stage_complain(config, "webdataset has at most %d columns", SAMPLE_COLUMNS_MAX);
    if (schema_find(ret_schema, name->text) >= 0)
        return spec_complain(config->errors, name->line, name->column, "column '%s' twice",
                             name->text);
    schema_add(ret_schema, name->text, TUNDISH_STRING);
    columns->columns[columns->count++].first = columns->extension_count;
    if (extensions->kind != SPEC_LIST)
        return add_extension(columns, config, extensions);
    if (extensions->count == 0)
        return spec_complain(config->errors, extensions->line, extensions->column,
                             "column '%s' needs an extension", name->text);
    for (uint32_t i = 0; i < extensions->count && status == TUNDISH_OK; i++)
        status = add_extension(columns, config, &extensions->items[i]);
    return status;
}

static tundish_status
open_columns(struct sample_columns *columns, const struct stage_config *config,
             struct schema *ret_schema)
{
    const struct spec_value *value = spec_get(config->stage, "columns");
    tundish_status status = TUNDISH_OK;

    schema_add(ret_schema, "__key__", TUNDISH_STRING);
    columns->skip_missing = strcmp(spec_text(config->stage, "missing"), "skip") == 0;
    if (value->kind == SPEC_TEXT)
        return add_column(columns, config, value, value, ret_schema);
    if (value->count == 0)
        return stage_complain(config, "webdataset needs a column");
    for (uint32_t i = 0; i < value->count && status == TUNDISH_OK; i++)
        status = add_column(columns, config,
                            value->kind == SPEC_MAP ? &value->keys[i] : &value->items[i],
                            &value->items[i], ret_schema);
    return status;
}

static tundish_status
webdataset_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    struct webdataset *webdataset = state;
    tundish_status status = file_source_open(&webdataset->reader, config, &scanner_webdataset);
    tundish_status columns = open_columns(&webdataset->columns, config, ret_schema);

    /* Shards are often .tar.gz, and WebDataset goes by the name. */
    webdataset->reader.packing_by_name = true;
    /* The index of a file depends on the hash. */
    webdataset->reader.format.samples = &webdataset->columns;
    webdataset->reader.format.numbers[0] = sample_columns_hash(&webdataset->columns);
    return status != TUNDISH_OK ? status : columns;
}

struct row {
    const struct source_read *read;
    const struct webdataset *webdataset;
    int64_t index;
    struct byte_view bytes;  /* from the first header to the last member's end */
    struct byte_view *found; /* by extension; data NULL: not there */
    bool *is_link;           /* ... but a link is */
};

static void
reject(const struct row *row, const char *what, struct byte_view name)
{
    frame_reject(row->read->output, row->index, "%s: sample '%.*s' at %llu %s",
                 fetch_file_name(row->read, row->index), (int)name.size, (const char *)name.data,
                 (unsigned long long)fetch_words(row->read, row->index)[0], what);
}

/* The bytes of a member; those of a sparse one are put together. */
static bool
take_bytes(const struct row *row, const struct tar_member *member, struct byte_view key,
           struct byte_view *ret_bytes)
{
    const struct byte_view headers = { row->bytes.data + member->begin,
                                       member->data - member->begin };
    const struct byte_view data = { row->bytes.data + member->data, member->size };
    struct scratch *scratch = row->read->output->scratch;
    struct tar_sparse sparse = { 0 };
    tundish_status status = TUNDISH_OK;
    uint8_t *to = NULL;

    *ret_bytes = data;
    if (!member->is_sparse)
        return true;
    status = tar_sparse_open(headers, data, &sparse);
    if (status == TUNDISH_OK && sparse.file_bytes > RECORD_BYTES_MAX)
        status = tnd_fail(TUNDISH_E_DATA, "its sparse member would have %llu bytes",
                          (unsigned long long)sparse.file_bytes);
    if (status == TUNDISH_OK)
        status = scratch_ask(scratch, sparse.file_bytes);
    if (status == TUNDISH_OK) {
        to = scratch_alloc(scratch, sparse.file_bytes);
        tar_sparse_fill(&sparse, to);
        *ret_bytes = (struct byte_view){ to, sparse.file_bytes };
    } else {
        char what[256];

        snprintf(what, sizeof what, "cannot be read: %s", tnd_error_text());
        reject(row, what, key);
    }
    tar_sparse_close(&sparse);
    return status == TUNDISH_OK;
}

static void
note_link(const struct row *row, struct byte_view extension)
{
    const struct sample_columns *columns = &row->webdataset->columns;
    uint32_t i = 0;

    for (; (i = sample_extension(columns, i, extension)) < columns->extension_count; i++)
        row->is_link[i] = true;
}

/* Find the sample's members by extension, and its key. The scan has checked the same headers, but
 * the file may have been overwritten since: all bounds are checked again. */
static bool
find_members(struct row *row, struct byte_view *ret_key)
{
    const struct sample_columns *columns = &row->webdataset->columns;
    struct tar_walker *walker = scratch_alloc(row->read->output->scratch, sizeof *walker);
    bool found = true;

    memset(walker, 0, sizeof *walker);
    memset(row->found, 0, columns->extension_count * sizeof *row->found);
    memset(row->is_link, false, columns->extension_count * sizeof *row->is_link);
    ret_key->data = NULL;
    while (found) {
        struct tar_member member;
        struct byte_view key, extension;

        if (tar_walk(walker, row->bytes.data, row->bytes.size, 0, &member, &found) != TUNDISH_OK) {
            frame_reject(row->read->output, row->index, "%s: in the sample at %llu: %s",
                         fetch_file_name(row->read, row->index),
                         (unsigned long long)fetch_words(row->read, row->index)[0],
                         tnd_error_text());
            return false;
        }
        if (!found || !sample_name(&member, &key, &extension))
            continue;
        if (member.is_link) {
            note_link(row, extension);
            continue;
        }
        /* The key is copied: a pax name lies in the walker's memory, which the next member
         * overwrites. */
        if (ret_key->data == NULL) {
            uint8_t *copy = scratch_alloc(row->read->output->scratch, key.size);

            memcpy(copy, key.data, key.size);
            *ret_key = (struct byte_view){ copy, key.size };
        }
        /* Subtract rather than add: a member's size is any 64-bit number. */
        if (!bytes_are_equal(*ret_key, key) || member.data > row->bytes.size ||
            member.size > row->bytes.size - member.data) {
            reject(row, "has changed since the file was scanned; start the server again", *ret_key);
            return false;
        }
        /* One extension may serve several columns. */
        for (uint32_t i = 0;
             (i = sample_extension(columns, i, extension)) < columns->extension_count; i++) {
            if (row->found[i].data != NULL) {
                reject(row, "has two members with the same extension", *ret_key);
                return false;
            }
            if (!take_bytes(row, &member, *ret_key, &row->found[i]))
                return false;
        }
    }
    return true;
}

static void
reject_missing(const struct row *row, uint32_t column, bool is_link, struct byte_view key)
{
    char what[400];

    snprintf(what, sizeof what,
             "has no member for column '%s'%s (missing: skip drops such samples)",
             row->read->output->schema->columns[column].name,
             is_link ? ", but a link, which has no bytes: make the archive with tar's options "
                       "--hard-dereference and --dereference"
                     : "");
    reject(row, what, key);
}

/* A column takes the first of its extensions that the sample has, in the order in which they are
 * written. */
static void
take_columns(const struct row *row, struct byte_view key, struct byte_view *const *values)
{
    const struct sample_columns *columns = &row->webdataset->columns;

    values[0][row->index] = key;
    for (uint32_t i = 0; i < columns->count; i++) {
        const struct byte_view *found = row->found + columns->columns[i].first;
        bool is_link = false;
        uint32_t k = 0;

        for (uint32_t l = 0; l < columns->columns[i].extension_count; l++)
            is_link |= row->is_link[columns->columns[i].first + l];
        while (k < columns->columns[i].extension_count && found[k].data == NULL)
            k++;
        if (k == columns->columns[i].extension_count) {
            reject_missing(row, i + 1, is_link, key);
            return;
        }
        values[i + 1][row->index] = found[k];
    }
}

static tundish_status
webdataset_read(const void *state, const struct source_read *read)
{
    const struct webdataset *webdataset = state;
    struct scratch *scratch = read->output->scratch;
    uint32_t column_count = webdataset->columns.count + 1;
    struct byte_view *samples = scratch_array(scratch, (size_t)read->count + 1, sizeof *samples);
    struct byte_view **values = scratch_array(scratch, column_count, sizeof *values);
    struct row row = { .read = read, .webdataset = webdataset };
    tundish_status status = fetch_rows(read, 0, samples);

    if (status != TUNDISH_OK)
        return status;
    row.found = scratch_array(scratch, webdataset->columns.extension_count, sizeof *row.found);
    row.is_link = scratch_array(scratch, webdataset->columns.extension_count, sizeof *row.is_link);
    for (uint32_t i = 0; i < column_count; i++) {
        values[i] = scratch_array(scratch, (size_t)read->count + 1, sizeof *values[i]);
        /* A rejected row stays an empty text, which later stages may read before it is dropped. */
        memset(values[i], 0, (size_t)read->count * sizeof *values[i]);
        column_set_scalars(&read->output->columns[i], read->count, values[i]);
    }
    for (row.index = 0; row.index < read->count; row.index++) {
        struct byte_view key = { 0 };

        row.bytes = samples[row.index];
        if (find_members(&row, &key))
            take_columns(&row, key, values);
    }
    return TUNDISH_OK;
}

static void
webdataset_close(void *state)
{
    struct webdataset *webdataset = state;

    free(webdataset->columns.extensions);
}

const struct source_ops source_webdataset = {
    .name = "webdataset",
    .order = READER_ORDER("webdataset"),
    .state_bytes = sizeof(struct webdataset),
    .open = webdataset_open,
    .read = webdataset_read,
    .needs_cache = file_source_needs_cache,
    .reads_files = true,
    .refers_to_records = true,
    .words = WORDS_HAVE_FILE,
    .close = webdataset_close,
};
