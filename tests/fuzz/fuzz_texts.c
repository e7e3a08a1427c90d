/* fuzz_texts.c - any bytes as a text for the stages that decode, cut and change texts. The first
 * byte chooses the stage; the others are one row. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/must.h"
#include "inference/transform.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char *const stages[] = {
    "decode_base64",
    "decode_compressed: {compression_type: GZIP}",
    "decode_compressed: {compression_type: ZLIB}",
    "decode_raw: {out_type: int32, fixed_length: 8, little_endian: false}",
    "decode_raw: float16",
    "regex_replace: {pattern: '(?i)(\\W+|\\bx)(é?)', rewrite: '[\\2]'}",
    "regex_replace: {pattern: '', rewrite: '-'}",
    "string_lower: {encoding: utf-8}",
    "string_upper: {encoding: utf-8}",
    "string_split: {sep: 'a '}",
    "unicode_split",
    "unicode_split: {input_encoding: UTF-16-BE, errors: ignore}",
    "substr: {pos: -2, len: 2, unit: UTF8_CHAR}",
    "string_to_number: {out_type: float64}",
    "string_to_number: {out_type: int64}",
    "text_vectorization: {vocabulary: [a, b c], ngrams: 2}",
    "text_vectorization: {vocabulary: [a], split: character, output_mode: count}",
};

enum { STAGES = sizeof stages / sizeof *stages };

static struct transformer *
transformer_of(unsigned stage)
{
    static struct transformer *opened[STAGES];
    struct transform_options options = { .path = "rows", .root = "/" };
    struct spec_errors errors = { 0 };
    struct transform *transform;
    char text[512];

    if (opened[stage] == NULL) {
        snprintf(text, sizeof text,
                 "streams:\n  a:\n    dataset:\n      - from_tensor_slices: {x: [text]}\n"
                 "      - %s\n",
                 stages[stage]);
        options.text = text;
        must(transform_open(&options, &errors, &transform) == TUNDISH_OK);
        opened[stage] = transformer_open(transform);
    }
    return opened[stage];
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct transformer *transformer = transformer_of(bytes > 0 ? data[0] % STAGES : 0);
    struct scratch *scratch = transformer_begin(transformer);
    const struct output_column *columns;
    size_t size = bytes > 0 ? bytes - 1 : 0;
    uint8_t *copy = scratch_alloc(scratch, size + 64);
    struct byte_view record = { copy, size };

    if (size > 0)
        memcpy(copy, data + 1, size);
    if (transformer_run_records(transformer, &record, 1, &columns) == TUNDISH_OK)
        must(columns[0].rank >= 1 && columns[0].shape[0] == 1);
    return 0;
}
