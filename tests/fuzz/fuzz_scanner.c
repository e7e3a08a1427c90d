/* fuzz_scanner.c - a scanner finds the same records however the bytes are cut into reads, none of
 * them outside of the file, and what is written of them reads back. */
#include <stdlib.h>
#include <string.h>

#include "core/must.h"
#include "source/scan/scanner.h"

static const struct scanner_ops *const scanners[] = {
    &scanner_tfrecord,   &scanner_text_line, &scanner_csv, &scanner_fixed_length_record,
    &scanner_webdataset,
};

enum { SCANNERS = sizeof scanners / sizeof *scanners };

/* Feed reads of at most `step` bytes, which begin where the scanner wants them. */
static tundish_status
scan(const struct record_format *format, const uint8_t *data, size_t bytes, size_t step,
     struct record_writer *writer)
{
    _Alignas(max_align_t) uint8_t state[SCANNER_STATE_BYTES] = { 0 };
    const struct scanner_ops *scanner = format->scanner;
    tundish_status status = TUNDISH_OK;
    uint64_t at = 0;

    scanner->begin(state, format);
    while (status == TUNDISH_OK && at < bytes) {
        size_t part = bytes - at < step ? bytes - (size_t)at : step;

        status = scanner->feed(state, data + at, part, at, writer);
        at += part;
        if (scanner->wanted(state) > at)
            at = scanner->wanted(state);
    }
    return status == TUNDISH_OK ? scanner->finish(state, bytes, writer) : status;
}

static void
read_back(const struct record_writer *writer, size_t bytes)
{
    struct record_reader reader = { .at = writer->bytes,
                                    .limit = writer->used > 0 ? writer->bytes + writer->used : NULL,
                                    .left = writer->count,
                                    .usual_gap = writer->usual_gap,
                                    .end_limit = bytes };
    uint64_t words[128];
    size_t count;

    while (reader.left > 0)
        must(record_reader_next(&reader, 0, words, 64, &count));
    must(reader.at == reader.limit && reader.end == writer->end);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct record_format format = { .numbers = { 0 } };
    struct record_writer whole, parts;
    tundish_status a, b;

    if (bytes < 5)
        return 0;
    format.scanner = scanners[data[0] % SCANNERS];
    for (int i = 0; i < 3; i++)
        format.numbers[i] = data[1 + i];
    if (format.scanner == &scanner_fixed_length_record && format.numbers[0] == 0)
        format.numbers[0] = 1;
    whole = parts = (struct record_writer){ .usual_gap = format.scanner->usual_gap };
    a = scan(&format, data + 5, bytes - 5, bytes, &whole);
    b = scan(&format, data + 5, bytes - 5, 1U + data[4] % 40, &parts);
    must(a == b && whole.count == parts.count && whole.used == parts.used);
    must(whole.used == 0 || memcmp(whole.bytes, parts.bytes, whole.used) == 0);
    must(whole.hash == parts.hash);
    read_back(&whole, bytes - 5);
    free(whole.bytes);
    free(parts.bytes);
    return 0;
}
