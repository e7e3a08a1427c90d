/* source_text_line.c - the lines of text files, without their ends and without any carriage return.
 * TensorFlow's BufferedInputStream::ReadLine drops every '\r', not only the one before '\n'. */
#include <string.h>

#include "source/file_source.h"
#include "source/files/fetch.h"
#include "source/variable.h"

static tundish_status
text_line_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    tundish_status status = file_source_open(state, config, &scanner_text_line);

    if (status == TUNDISH_OK)
        schema_add(ret_schema, source_column_name(config), TUNDISH_STRING);
    return status;
}

/* Copy the line without its carriage returns. Not in place: a row that is asked for twice shares
 * its bytes in the buffer. */
static struct byte_view
drop_carriage_returns(struct scratch *scratch, struct byte_view line)
{
    uint8_t *copy = scratch_alloc(scratch, line.size);
    uint8_t *to = copy;

    for (uint64_t i = 0; i < line.size; i++)
        if (line.data[i] != '\r')
            *to++ = line.data[i];
    return (struct byte_view){ copy, (uint64_t)(to - copy) };
}

static inline bool
has_carriage_return(const uint8_t *data, size_t bytes)
{
    return bytes > 0 && memchr(data, '\r', bytes) != NULL;
}

/* The first line from `first` on that does not lie directly after the one before it. */
static int64_t
end_of_run(const struct byte_view *lines, int64_t first, int64_t count)
{
    int64_t end = first + 1;

    while (end < count && lines[end].data == lines[end - 1].data + lines[end - 1].size + 1)
        end++;
    return end;
}

/* Few lines hold a carriage return. As a rule lines lie one after the other, as in the file: to
 * search them together costs less than a call for each. */
static void
drop_all_carriage_returns(struct scratch *scratch, struct byte_view *lines, int64_t count)
{
    for (int64_t i = 0, end; i < count; i = end) {
        const uint8_t *begin = lines[i].data;

        end = end_of_run(lines, i, count);
        if (!has_carriage_return(begin,
                                 (size_t)(lines[end - 1].data - begin) + lines[end - 1].size))
            continue;
        for (int64_t k = i; k < end; k++)
            if (has_carriage_return(lines[k].data, lines[k].size))
                lines[k] = drop_carriage_returns(scratch, lines[k]);
    }
}

static tundish_status
text_line_read(const void *state, const struct source_read *read)
{
    struct scratch *scratch = read->output->scratch;
    struct byte_view *views = scratch_array(scratch, (size_t)read->count + 1, sizeof *views);
    tundish_status status = fetch_rows(read, 0, views);

    (void)state;
    if (status != TUNDISH_OK)
        return status;
    drop_all_carriage_returns(scratch, views, read->count);
    column_set_scalars(&read->output->columns[0], read->count, views);
    return TUNDISH_OK;
}

static void
text_line_leave_out_blank(void *state)
{
    struct reader *reader = state;

    reader->format.numbers[LINES_WITHOUT_BLANK] = 1;
}

static void
text_line_close(void *state)
{
    (void)state;
}

const struct source_ops source_text_line = {
    .name = "text_line",
    .order = READER_ORDER("text_line"),
    .shares_index = true,
    .state_bytes = sizeof(struct reader),
    .open = text_line_open,
    .read = text_line_read,
    .leave_out_blank = text_line_leave_out_blank,
    .needs_cache = file_source_needs_cache,
    .reads_files = true,
    .refers_to_records = true,
    .words = WORDS_HAVE_FILE,
    .close = text_line_close,
};
