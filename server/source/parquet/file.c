/* file.c - see file.h. */
#include "source/parquet/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "column/literal.h"
#include "content/records/file_kind.h"
#include "core/memory.h"
#include "core/read_write.h"
#include "core/status.h"
#include "source/parquet/taken.h"

void
parquet_columns_close(struct parquet_columns *columns)
{
    for (uint32_t i = 0; i < columns->count; i++) {
        literal_free(columns->columns[i].fallback, columns->columns[i].dtype, 1);
        free(columns->columns[i].name);
    }
    free(columns->columns);
    *columns = (struct parquet_columns){ 0 };
}

tundish_status
parquet_read_descriptor(void *context, void *to, size_t bytes, uint64_t offset)
{
    size_t got = 0;
    int error = tnd_read_at(*(const int *)context, to, bytes, offset, &got);

    if (error != 0)
        return tnd_fail_errno(error, "cannot be read");
    return got == bytes ? TUNDISH_OK
                        : tnd_fail(TUNDISH_E_DATA, "the file became shorter while it was read");
}

/* Say what a file is that is not Parquet, if its beginning tells. */
static tundish_status
refuse_kind(const struct parquet_input *input)
{
    uint8_t begin[FILE_KIND_BYTES];
    size_t bytes = input->file_bytes < sizeof begin ? (size_t)input->file_bytes : sizeof begin;
    char reason[256];
    const char *kind = NULL;

    snprintf(reason, sizeof reason, "%s", tnd_error_text());
    if (bytes > 0 && input->read(input->context, begin, bytes, 0) == TUNDISH_OK)
        kind = file_kind(begin, bytes);
    if (kind != NULL && bytes >= 4 && memcmp(begin, "PAR1", 4) == 0)
        kind = NULL;
    return tnd_fail(TUNDISH_E_DATA, "%s%s%s", reason, kind == NULL ? "" : "; the bytes are ",
                    kind == NULL ? "" : kind);
}

tundish_status
parquet_footer_load(const struct parquet_input *input, const struct parquet_choice *choice,
                    struct parquet_footer *ret_footer)
{
    uint64_t file_bytes = input->file_bytes;
    uint8_t tail[PARQUET_TAIL_BYTES], *metadata;
    uint32_t bytes;
    tundish_status status;

    if (file_bytes < sizeof tail)
        return tnd_fail(TUNDISH_E_DATA, "it is not a Parquet file: it has %llu bytes",
                        (unsigned long long)file_bytes);
    status = input->read(input->context, tail, sizeof tail, file_bytes - sizeof tail);
    if (status == TUNDISH_OK) {
        status = parquet_tail_read(tail, file_bytes, &bytes);
        if (status == TUNDISH_E_DATA)
            return refuse_kind(input);
    }
    if (status != TUNDISH_OK)
        return status;
    metadata = tnd_alloc((size_t)bytes + 1);
    status = input->read(input->context, metadata, bytes, file_bytes - sizeof tail - bytes);
    if (status == TUNDISH_OK)
        status = parquet_footer_read(metadata, bytes, file_bytes, choice, ret_footer);
    free(metadata);
    return status;
}

static tundish_status
check_column(const struct parquet_wanted *wanted, const struct parquet_leaf *leaf)
{
    if (leaf->obstacle != NULL)
        return tnd_fail(TUNDISH_E_DATA, "column '%s' cannot be read: %s", wanted->name,
                        leaf->obstacle);
    if (leaf->dtype != wanted->dtype || leaf->is_list != wanted->is_list ||
        strcmp(leaf->meaning, wanted->meaning) != 0)
        return tnd_fail(TUNDISH_E_DATA,
                        "column '%s' is %s%s%s%s here, and %s%s%s%s in the file that the stage "
                        "began with",
                        wanted->name, leaf->is_list ? "a list of " : "",
                        tnd_dtype_name(leaf->dtype), leaf->meaning[0] != '\0' ? ", " : "",
                        leaf->meaning, wanted->is_list ? "a list of " : "",
                        tnd_dtype_name(wanted->dtype), wanted->meaning[0] != '\0' ? ", " : "",
                        wanted->meaning);
    return TUNDISH_OK;
}

/* For parquet_choice: the leaves of the columns, which must be as wanted. */
static tundish_status
choose_columns(void *context, const struct parquet_schema *schema, const uint32_t **ret_leaves,
               uint32_t *ret_count)
{
    struct parquet_file *file = context;
    tundish_status status = TUNDISH_OK;
    int64_t leaf = -1;

    file->leaves = tnd_zalloc(file->columns->count, sizeof *file->leaves);
    for (uint32_t i = 0; i < file->columns->count && status == TUNDISH_OK; i++) {
        const struct parquet_wanted *wanted = &file->columns->columns[i];

        /* As a rule the columns are wanted in the file's order. */
        leaf = parquet_schema_find(schema, wanted->name, (uint32_t)(leaf + 1));
        if (leaf < 0)
            return tnd_fail(TUNDISH_E_DATA, "it has no column '%s'", wanted->name);
        file->leaves[i] = (uint32_t)leaf;
        status = check_column(wanted, &schema->leaves[leaf]);
    }
    *ret_leaves = file->leaves;
    *ret_count = file->columns->count;
    return status;
}

tundish_status
parquet_file_open(const struct parquet_input *input, const struct parquet_columns *columns,
                  struct parquet_file **ret_file)
{
    struct parquet_file *file = tnd_zalloc(1, sizeof *file);
    struct parquet_choice choice = { .choose = choose_columns, .context = file };
    tundish_status status;

    file->columns = columns;
    status = parquet_footer_load(input, &choice, &file->footer);
    if (status != TUNDISH_OK) {
        parquet_file_close(file);
        return status;
    }
    file->groups = tnd_zalloc(file->footer.group_count, sizeof *file->groups);
    file->taken = tnd_zalloc(file->footer.group_count, sizeof *file->taken);
    file->are_there = tnd_zalloc(file->footer.group_count, sizeof *file->are_there);
    *ret_file = file;
    return TUNDISH_OK;
}

void
parquet_file_close(struct parquet_file *file)
{
    if (file == NULL)
        return;
    for (uint32_t i = 0; file->taken != NULL && i < file->footer.group_count; i++)
        parquet_taken_close(file->taken[i]);
    parquet_footer_close(&file->footer);
    free(file->leaves);
    free(file->taken);
    free(file->groups);
    free(file->are_there);
    free(file);
}

static bool
has_row(const struct parquet_row_group *group, uint64_t row)
{
    return row >= group->first_row && row - group->first_row < group->row_count;
}

uint32_t
parquet_group_of(const struct parquet_footer *footer, uint64_t row, uint32_t hint)
{
    uint32_t low = 0, high = footer->group_count;

    if (hint < high && has_row(&footer->groups[hint], row))
        return hint;
    /* As a rule all but the last have as many rows as the first. */
    if (high > 0 && footer->groups[0].row_count > 0) {
        uint64_t guess = row / footer->groups[0].row_count;

        if (guess < high && has_row(&footer->groups[guess], row))
            return (uint32_t)guess;
    }
    /* The last group that begins at or before the row; empty ones before it begin there too. */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (footer->groups[middle].first_row <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}
