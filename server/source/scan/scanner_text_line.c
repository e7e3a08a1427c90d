/* scanner_text_line.c - lines end at newlines; the last one may go without.
 *
 * TensorFlow drops every carriage return, so a last line of nothing but carriage returns does not
 * count. Lines of nothing but blanks can be left out.
 */
#include "source/scan/newline.h"
#include "source/scan/scanner.h"

struct text_line_scan {
    uint64_t line; /* where the line at hand begins */
    uint64_t wanted;
    bool has_text; /* what was seen of it has a byte that is not a carriage return */
    bool has_ink;  /* ... nor another blank */
    bool leaves_out_blank;
};

_Static_assert(sizeof(struct text_line_scan) <= SCANNER_STATE_BYTES, "state is too large");

static void
text_line_begin(void *state, const struct record_format *format)
{
    struct text_line_scan *scan = state;

    scan->leaves_out_blank = format->numbers[LINES_WITHOUT_BLANK] != 0;
}

/* Has the line at hand a byte before `end` that is not blank? `data` lies at `offset`. */
static bool
has_ink(const struct text_line_scan *scan, const uint8_t *data, uint64_t offset, uint64_t end)
{
    uint64_t from = scan->line > offset ? scan->line - offset : 0;
    bool found = scan->has_ink;

    for (; from < end - offset && !found; from++)
        found = data[from] != ' ' && data[from] != '\t' && data[from] != '\r';
    return found;
}

static tundish_status
add_line(struct text_line_scan *scan, uint64_t end, struct record_writer *writer)
{
    if (end - scan->line > RECORD_BYTES_MAX)
        return scanner_too_long(scan->line, end - scan->line);
    record_writer_add(writer, scan->line, end - scan->line);
    return TUNDISH_OK;
}

static tundish_status
feed_block(struct text_line_scan *scan, const uint8_t *data, size_t bytes, uint64_t offset,
           struct record_writer *writer)
{
    uint32_t positions[NEWLINE_BLOCK + 8];
    size_t count = newline_find(data, bytes, positions);
    size_t rest = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t end = offset + positions[i];
        tundish_status status = TUNDISH_OK;

        if (!scan->leaves_out_blank || has_ink(scan, data, offset, end))
            status = add_line(scan, end, writer);
        if (status != TUNDISH_OK)
            return status;
        scan->line = end + 1;
        scan->has_text = scan->has_ink = false;
    }
    if (scan->leaves_out_blank)
        scan->has_ink = has_ink(scan, data, offset, offset + bytes);
    if (count > 0)
        rest = positions[count - 1] + 1U;
    /* The bytes after the last line end: has one of them been seen that is not a carriage
     * return? */
    for (; rest < bytes && !scan->has_text; rest++)
        scan->has_text = data[rest] != '\r';
    return TUNDISH_OK;
}

static tundish_status
text_line_feed(void *state, const uint8_t *data, size_t bytes, uint64_t offset,
               struct record_writer *writer)
{
    struct text_line_scan *scan = state;
    tundish_status status = TUNDISH_OK;

    scan->wanted = offset + bytes;
    for (size_t i = 0; i < bytes && status == TUNDISH_OK; i += NEWLINE_BLOCK) {
        size_t block = bytes - i < NEWLINE_BLOCK ? bytes - i : NEWLINE_BLOCK;

        status = feed_block(scan, data + i, block, offset + i, writer);
    }
    return status;
}

static uint64_t
text_line_wanted(const void *state)
{
    const struct text_line_scan *scan = state;

    return scan->wanted;
}

static tundish_status
text_line_finish(void *state, uint64_t size, struct record_writer *writer)
{
    struct text_line_scan *scan = state;

    bool is_line = scan->leaves_out_blank ? scan->has_ink : scan->has_text;

    return is_line ? add_line(scan, size, writer) : TUNDISH_OK;
}

static const int64_t usual_numbers[3] = { 0 };

const struct scanner_ops scanner_text_line = {
    .name = "text_line",
    .usual_numbers = usual_numbers,
    .usual_gap = 1,
    .hash_bytes = true,
    .begin = text_line_begin,
    .feed = text_line_feed,
    .wanted = text_line_wanted,
    .finish = text_line_finish,
    .measure = NULL,
    .is_text = true,
};
