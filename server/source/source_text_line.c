/* source_text_line.c - the lines of text files, without their ends and without any carriage return.
 * TensorFlow's BufferedInputStream::ReadLine drops every '\r', not only the one before '\n'. */
#include <string.h>

#include "source/file_source.h"
#include "source/files/fetch.h"
#include "source/variable.h"

static tundish_status
text_line_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    tundish_status status = reader_open(state, config, &scanner_text_line);

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

static tundish_status
text_line_read(const void *state, const struct source_read *read)
{
    struct scratch *scratch = read->output->scratch;
    struct byte_view *views = scratch_array(scratch, (size_t)read->count + 1, sizeof *views);
    tundish_status status = fetch_rows(read, 0, views);

    (void)state;
    if (status != TUNDISH_OK)
        return status;
    for (int64_t i = 0; i < read->count; i++)
        /* Few lines hold one: memchr is cheaper than a copy of every line. */
        if (views[i].size > 0 && memchr(views[i].data, '\r', views[i].size) != NULL)
            views[i] = drop_carriage_returns(scratch, views[i]);
    column_set_scalars(&read->output->columns[0], read->count, views);
    return TUNDISH_OK;
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
    .reads_files = true,
    .refers_to_records = true,
    .words = WORDS_HAVE_FILE,
    .close = text_line_close,
};
