/* scanner_csv.c - rows end at \n, \r or \r\n outside of quotes, as TensorFlow splits them.
 *
 * A quote opens a quoted field only as its first character; a quote elsewhere in an unquoted field
 * is an error that parsing finds, and does not change where the row ends. In a quoted field two
 * quotes stand for one; a quote before anything but a delimiter or an end is again parsing's error,
 * and the field goes on.
 */
#include "source/scan/newline.h"
#include "source/scan/scanner.h"

struct csv_scan {
    uint64_t row; /* where the row at hand begins */
    uint64_t seen;
    uint64_t carriage_end; /* just after a \r that ended a row: a \n here belongs to it */
    uint64_t passed_quote; /* the second of two quotes, which has been seen already */
    uint8_t delimiter;
    uint8_t last_byte;
    bool quotes;
    bool in_quotes;
    bool undecided;   /* the last byte that was fed is a quote inside quotes */
    bool drop_header; /* the next row is the header */
    bool has_header;
};

_Static_assert(sizeof(struct csv_scan) <= SCANNER_STATE_BYTES, "state is too large");

static void
csv_begin(void *state, const struct record_format *format)
{
    struct csv_scan *scan = state;

    scan->delimiter = (uint8_t)format->numbers[CSV_DELIMITER];
    scan->quotes = format->numbers[CSV_QUOTES] != 0;
    scan->has_header = scan->drop_header = format->numbers[CSV_HEADER] != 0;
    scan->carriage_end = scan->passed_quote = UINT64_MAX;
}

/* The row has no line end: TensorFlow's parser gets the fields alone. */
static tundish_status
end_row(struct csv_scan *scan, uint64_t end, struct record_writer *writer)
{
    uint64_t length = end - scan->row;

    if (length > RECORD_BYTES_MAX)
        return scanner_too_long(scan->row, length);
    if (!scan->drop_header)
        record_writer_add(writer, scan->row, length);
    scan->drop_header = false;
    scan->row = end + 1;
    return TUNDISH_OK;
}

/* A header is not parsed later, so its wrong quotes are reported here. */
static tundish_status
check_header(const struct csv_scan *scan, bool is_good, const char *what)
{
    return is_good || !scan->drop_header
               ? TUNDISH_OK
               : tnd_fail(TUNDISH_E_DATA, "Can't read header of file: %s", what);
}

/* Decide what a quote at `position` inside quotes means, by the byte after it. */
static tundish_status
decide_quote(struct csv_scan *scan, uint64_t position, uint8_t next)
{
    bool ends = next == scan->delimiter || next == '\n' || next == '\r';

    if (next == '"')
        scan->passed_quote = position + 1;
    else if (ends)
        scan->in_quotes = false;
    return check_header(scan, ends || next == '"', "a quote inside a quoted field must be doubled");
}

static tundish_status
take_quote(struct csv_scan *scan, const uint8_t *data, size_t bytes, uint64_t position, size_t i)
{
    uint8_t before = i > 0 ? data[i - 1] : scan->last_byte;

    if (position == scan->passed_quote)
        return TUNDISH_OK;
    if (!scan->in_quotes) {
        /* Only a quote at the beginning of a field opens one; RFC 4180 allows none elsewhere. */
        scan->in_quotes = position == scan->row || before == scan->delimiter;
        return check_header(scan, scan->in_quotes, "an unquoted field contains a quote");
    }
    if (i + 1 < bytes)
        return decide_quote(scan, position, data[i + 1]);
    scan->undecided = true;
    return TUNDISH_OK;
}

static tundish_status
take_mark(struct csv_scan *scan, const uint8_t *data, size_t bytes, uint64_t offset, size_t i,
          struct record_writer *writer)
{
    uint64_t position = offset + i;

    if (data[i] == '"')
        return take_quote(scan, data, bytes, position, i);
    /* Line ends inside quotes are part of the field. */
    if (scan->in_quotes)
        return TUNDISH_OK;
    if (data[i] == '\n' && position == scan->carriage_end) {
        scan->row = position + 1;
        return TUNDISH_OK;
    }
    if (data[i] == '\r')
        scan->carriage_end = position + 1;
    return end_row(scan, position, writer);
}

/* Only line ends and quotes matter, and a vector loop finds them. */
static tundish_status
csv_feed(void *state, const uint8_t *data, size_t bytes, uint64_t offset,
         struct record_writer *writer)
{
    struct csv_scan *scan = state;
    uint32_t positions[NEWLINE_BLOCK + 8];
    tundish_status status = TUNDISH_OK;

    if (bytes == 0)
        return TUNDISH_OK;
    if (scan->undecided)
        status = decide_quote(scan, offset - 1, data[0]);
    scan->undecided = false;
    for (size_t begin = 0; status == TUNDISH_OK && begin < bytes; begin += NEWLINE_BLOCK) {
        size_t block = bytes - begin < NEWLINE_BLOCK ? bytes - begin : NEWLINE_BLOCK;
        size_t count = newline_find_marks(data + begin, block, scan->quotes, positions);

        for (size_t k = 0; status == TUNDISH_OK && k < count; k++)
            status = take_mark(scan, data, bytes, offset, begin + positions[k], writer);
    }
    if (status != TUNDISH_OK)
        return status;
    scan->last_byte = data[bytes - 1];
    scan->seen = offset + bytes;
    return TUNDISH_OK;
}

static uint64_t
csv_wanted(const void *state)
{
    const struct csv_scan *scan = state;

    return scan->seen;
}

static tundish_status
csv_finish(void *state, uint64_t size, struct record_writer *writer)
{
    struct csv_scan *scan = state;
    /* At the end of the file nothing follows a quote, so it closes its field. */
    tundish_status status = check_header(scan, !scan->in_quotes || scan->undecided,
                                         "a quoted field has no closing quote");

    if (status == TUNDISH_OK && scan->row < size && scan->row != UINT64_MAX)
        status = end_row(scan, size, writer);
    if (status == TUNDISH_OK && scan->drop_header)
        return tnd_fail(TUNDISH_E_DATA, "the file is empty, but must have a header");
    return status;
}

static const int64_t usual_numbers[3] = { [CSV_DELIMITER] = ',', [CSV_QUOTES] = 1 };

const struct scanner_ops scanner_csv = {
    .name = "csv",
    .usual_numbers = usual_numbers,
    .usual_gap = 1,
    .hash_bytes = true,
    .begin = csv_begin,
    .feed = csv_feed,
    .wanted = csv_wanted,
    .finish = csv_finish,
    .measure = NULL,
    .is_text = true,
};
