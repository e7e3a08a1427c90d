/* fuzz_transform.c - hostile records into the library that preprocesses without a server. */
#include <stdlib.h>
#include <string.h>

#include "core/must.h"
#include "inference/transform.h"

static const char pipeline[] =
    "streams:\n"
    "  rows:\n"
    "    dataset:\n"
    "      - text_line: rows\n"
    "      - decode_csv: {record_defaults: [0, 0.0, \"\"], column_names: [id, x, text]}\n"
    "      - string_split: {columns: text, output: words}\n"
    "      - hashing: {columns: words, num_bins: 10}\n"
    "      - map: {x: \"log1p(max(x, 0))\"}\n"
    "      - ragged_batch: 4\n";

static struct transform *transform;
static struct transformer *transformer;

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct transform_options options = { .path = "rows", .text = pipeline, .root = "/" };
    struct spec_errors errors = { 0 };
    const struct output_column *columns;
    struct byte_view records[64];
    struct scratch *scratch;
    int64_t count = 0;
    uint8_t *copy;

    if (transform == NULL) {
        must(transform_open(&options, &errors, &transform) == TUNDISH_OK);
        transformer = transformer_open(transform);
    }
    scratch = transformer_begin(transformer);
    copy = scratch_alloc(scratch, bytes + 64);
    if (bytes > 0)
        memcpy(copy, data, bytes);
    for (size_t at = 0; at < bytes && count < 64;) {
        const uint8_t *end = memchr(copy + at, '\n', bytes - at);
        size_t size = end == NULL ? bytes - at : (size_t)(end - copy) - at;

        records[count++] = (struct byte_view){ copy + at, size };
        at += size + 1;
    }
    if (transformer_run_records(transformer, records, count, &columns) == TUNDISH_OK)
        must(columns[0].shape[0] == count);
    return 0;
}
