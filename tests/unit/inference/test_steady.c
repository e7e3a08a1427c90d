/* test_steady.c - rows through pipelines of all kinds in this process: once there is room, nothing
 * is allocated for them. The linker sends what is allocated through here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../content/record_builder.h"
#include "core/bytes.h"
#include "inference/transform.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

static _Atomic size_t allocations;

void *
__wrap_malloc(size_t bytes)
{
    allocations++;
    return __real_malloc(bytes);
}

void *
__wrap_calloc(size_t count, size_t bytes)
{
    allocations++;
    return __real_calloc(count, bytes);
}

void *
__wrap_realloc(void *memory, size_t bytes)
{
    allocations++;
    return __real_realloc(memory, bytes);
}

void *
__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    allocations++;
    return __real_aligned_alloc(alignment, bytes);
}

enum { RECORDS_MAX = 8, READABLE = 64, CALLS = 50 };

struct rows {
    struct byte_view records[RECORDS_MAX];
    int64_t count;
};

static void
add_row(struct rows *rows, const void *bytes, size_t size)
{
    uint8_t *copy = calloc(size + READABLE, 1);

    assert_true(rows->count < RECORDS_MAX);
    memcpy(copy, bytes, size);
    rows->records[rows->count++] = (struct byte_view){ copy, size };
}

static void
free_rows(struct rows *rows)
{
    for (int64_t i = 0; i < rows->count; i++)
        free((void *)(uintptr_t)rows->records[i].data);
}

static void
transform_rows(struct transformer *transformer, const struct rows *rows, int64_t from, int64_t to)
{
    const struct output_column *columns;

    transformer_begin(transformer);
    if (transformer_run_records(transformer, rows->records + from, to - from, &columns) !=
        TUNDISH_OK)
        fail_msg("%s", tnd_error_text());
}

/* All together, and one by one. */
static void
transform_all(struct transformer *transformer, const struct rows *rows)
{
    transform_rows(transformer, rows, 0, rows->count);
    for (int64_t i = 0; i < rows->count; i++)
        transform_rows(transformer, rows, i, i + 1);
}

static void
assert_nothing_is_allocated(const char *stages, struct rows *rows)
{
    char text[2048];
    const struct transform_options options = { .path = "rows", .text = text, .root = "/" };
    struct spec_errors errors = { 0 };
    struct transform *transform;
    struct transformer *transformer;
    size_t before;

    snprintf(text, sizeof text, "streams:\n  rows:\n    dataset:\n%s", stages);
    if (transform_open(&options, &errors, &transform) != TUNDISH_OK)
        fail_msg("%s", spec_errors_text(&errors));
    transformer = transformer_open(transform);
    transform_all(transformer, rows);
    transform_all(transformer, rows);
    before = allocations;
    for (int i = 0; i < CALLS; i++)
        transform_all(transformer, rows);
    assert_int_equal(allocations, before);
    assert_true(before > 0); /* they do come through here */
    transformer_close(transformer);
    transform_close(transform);
    spec_errors_close(&errors);
    free_rows(rows);
}

static void
of_lines_of_csv(void **state)
{
    static const char *const lines[] = { "1,4.0,red,green", "2,0.25,blue,a_long_colour",
                                         "3,9.0,,red" };
    struct rows rows = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        add_row(&rows, lines[i], strlen(lines[i]));
    assert_nothing_is_allocated(
        "      - text_line: rows\n"
        "      - decode_csv: {record_defaults: [0, 0.0, \"\", \"\"], column_names: [id, x, a, b]}\n"
        "      - map: {x: \"where(x > 1.0, x * 2.0 + 1.0, sqrt(x))\", id: \"id + 1\"}\n"
        "      - string_lookup: {columns: [a, b], vocabulary: [red, green, a_long_colour]}\n"
        "      - batch: 4\n",
        &rows);
}

static void
of_a_click_log(void **state)
{
    struct rows rows = { 0 };

    (void)state;
    for (int64_t i = 0; i < 5; i++) {
        struct record features = { 0 }, record;

        put_int64s(&features, "label", &i, 1, 1);
        if (i != 2) /* and one that lacks it */
            put_int64s(&features, "count", &(int64_t){ i * 1000 }, 1, 1);
        put_floats(&features, "price", &(float){ (float)i * 0.5F }, 1, 1);
        put_string(&features, "colour", i % 2 == 0 ? "red" : "a colour that is not known");
        put_int64s(&features, "history", (int64_t[]){ 5, 6, 7, 8 }, (size_t)i % 4, 1);
        put_string(&features, "not asked for", "x");
        record = whole(&features);
        add_row(&rows, record.bytes, record.size);
    }
    assert_nothing_is_allocated(
        "      - tfrecord: rows\n"
        "      - parse_example:\n"
        "          features:\n"
        "            label: {type: FixedLen, dtype: int64, shape: []}\n"
        "            count: {type: FixedLen, dtype: int64, shape: [], default_value: 0}\n"
        "            price: {type: FixedLen, dtype: float32, shape: []}\n"
        "            colour: {type: FixedLen, dtype: string, shape: [], default_value: \"\"}\n"
        "            history: {type: VarLen, dtype: int64}\n"
        "      - map: {price: \"log1p(max(price, 0))\"}\n"
        "      - discretization: {columns: price, bin_boundaries: [0.1, 0.3, 0.5], output: bin}\n"
        "      - hashing: {columns: count, num_bins: 100, salt: 7, output: hashed}\n"
        "      - string_lookup: {columns: colour, vocabulary: [red, green]}\n"
        "      - batch: 8\n"
        "      - to_ragged: {columns: history}\n",
        &rows);
}

static void
of_text(void **state)
{
    static const char *const lines[] = { "The quick brown fox, the lazy dog.", "fox", "the THE a ",
                                         "gr\xc3\xbcn und \xf0\x9f\x98\x80 blau" };
    struct rows rows = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        add_row(&rows, lines[i], strlen(lines[i]));
    assert_nothing_is_allocated(
        "      - text_line: rows\n"
        "      - regex_replace: {columns: value, pattern: \"[.,]\", rewrite: \" \", output: "
        "plain}\n"
        "      - string_lower: {columns: plain, encoding: utf-8}\n"
        "      - string_split: {columns: plain, output: words}\n"
        "      - ngrams: {columns: words, ngram_width: [1, 2], output: pairs}\n"
        "      - string_to_hash_bucket_fast: {columns: pairs, num_buckets: 1000}\n"
        "      - text_vectorization: {columns: value, vocabulary: [the, fox, dog], "
        "output_sequence_length: 8, output: ids}\n"
        "      - select: [ids, words, pairs]\n"
        "      - ragged_batch: 4\n",
        &rows);
}

/* The records of a recorded file. */
static void
read_records(const char *path, struct rows *rows)
{
    FILE *file = fopen(path, "rb");
    uint8_t head[12], *data = malloc(1 << 20);

    assert_non_null(file);
    while (fread(head, 1, sizeof head, file) == sizeof head) {
        uint64_t bytes = load_u64(head);

        assert_true(bytes + 4 <= 1 << 20);
        assert_int_equal(fread(data, 1, bytes + 4, file), bytes + 4);
        add_row(rows, data, bytes);
    }
    fclose(file);
    free(data);
}

/* What the libraries of the formats allocate inside themselves does not come through here. */
static void
of_images(void **state)
{
    struct rows rows = { 0 };

    (void)state;
    read_records(RECORDED_CASES "/data/content_img_rgb.tfrecord", &rows);
    read_records(RECORDED_CASES "/data/content_img_444.tfrecord", &rows);
    assert_nothing_is_allocated("      - tfrecord: rows\n"
                                "      - decode_jpeg: {channels: 3}\n"
                                "      - resize: {size: [24, 32]}\n"
                                "      - rescaling: {scale: 0.00392156862745098}\n"
                                "      - batch: 8\n",
                                &rows);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_lines_of_csv),
        cmocka_unit_test(of_a_click_log),
        cmocka_unit_test(of_text),
        cmocka_unit_test(of_images),
    };

    return cmocka_run_group_tests_name("nothing_is_allocated_once_there_is_room", tests, NULL,
                                       NULL);
}
