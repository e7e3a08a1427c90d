/* test_source_text_line.c - lines as TensorFlow cuts them. */
#include "source_fixture.h"
#include "unit/test_file.h"

#include <zlib.h>

static void
lines_end_at_newlines_and_lose_carriage_returns(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "card\r\nco\rat\n\n\rdoor\r\r");
    assert_texts(&folder, "[text_line: a]", "card|coat||door|");
    folder_close(&folder);
}

static void
a_last_line_needs_no_newline_but_some_text(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "card\ncoat");
    put_text(&folder, "b", "");
    put_text(&folder, "c", "\n");
    put_text(&folder, "d", "door\n\r\r");
    assert_texts(&folder, "[text_line: [a, b, c, d]]", "card|coat||door|");
    folder_close(&folder);
}

static void
a_missing_file_fails_in_its_place_and_the_next_goes_on(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "card\n");
    put_text(&folder, "c", "door\n");
    assert_texts(&folder, "[text_line: [a, b, c]]",
                 "card|!b: cannot be opened: No such file or directory|door|");
    folder_close(&folder);
}

static void
a_folder_and_a_pipe_are_refused_without_waiting(void **state)
{
    struct folder folder;
    char path[128];

    (void)state;
    folder_open(&folder);
    snprintf(path, sizeof path, "%s/pipe", folder.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_texts(&folder, "[text_line: [cache, pipe]]",
                 "!cache: cannot be read: Is a directory|!pipe: it is not a regular file|");
    folder_close(&folder);
}

/* A file of many lines, each its own number; also what the texts of all of them are. */
static void
make_lines(int count, struct bytes *file, struct bytes *texts)
{
    for (int i = 0; i < count; i++) {
        char line[32];
        int length = snprintf(line, sizeof line, "%lld", i * 7919LL);

        bytes_add(file, line, (size_t)length);
        bytes_add(file, "\n", 1);
        bytes_add(texts, line, (size_t)length);
        bytes_add(texts, "|", 1);
    }
    bytes_add(texts, "", 1);
}

static void
a_file_of_several_segments_comes_whole_and_in_order(void **state)
{
    struct folder folder;
    struct bytes file = { 0 };
    struct bytes texts = { 0 };

    (void)state;
    folder_open(&folder);
    make_lines(400000, &file, &texts);
    assert_true(file.used > 3 << 20);
    put_file(&folder, "a", file.data, file.used);
    assert_texts(&folder, "[text_line: a]", (const char *)texts.data);
    free(file.data);
    free(texts.data);
    folder_close(&folder);
}

static void
append_packed(struct bytes *to, int window, const void *data, size_t bytes)
{
    z_stream stream = { 0 };
    uint8_t *packed = tnd_alloc(bytes + 1000);

    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)data;
    stream.avail_in = (uInt)bytes;
    stream.next_out = packed;
    stream.avail_out = (uInt)(bytes + 1000);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    bytes_add(to, packed, stream.total_out);
    deflateEnd(&stream);
    free(packed);
}

static void
packed_files_are_unpacked_member_by_member(void **state)
{
    struct folder folder;
    struct bytes file = { 0 };
    struct bytes texts = { 0 };
    struct bytes packed = { 0 };

    (void)state;
    folder_open(&folder);
    make_lines(300000, &file, &texts);
    append_packed(&packed, 15 + 16, file.data, file.used / 3);
    append_packed(&packed, 15 + 16, file.data, 0);
    append_packed(&packed, 15 + 16, file.data + file.used / 3, file.used - file.used / 3);
    put_file(&folder, "a.gz", packed.data, packed.used);
    assert_texts(&folder, "[text_line: {filenames: a.gz, compression_type: GZIP}]",
                 (const char *)texts.data);
    packed.used = 0;
    append_packed(&packed, 15, file.data, file.used);
    put_file(&folder, "a.zlib", packed.data, packed.used);
    assert_texts(&folder, "[text_line: {filenames: a.zlib, compression_type: ZLIB}]",
                 (const char *)texts.data);
    free(file.data);
    free(texts.data);
    free(packed.data);
    folder_close(&folder);
}

static void
damage_in_a_packed_file_comes_behind_the_lines_before_it(void **state)
{
    struct folder folder;
    struct bytes packed = { 0 };

    (void)state;
    folder_open(&folder);
    append_packed(&packed, 15 + 16, "card\ncoat\n", 10);
    put_file(&folder, "cut", packed.data, packed.used - 3);
    bytes_add(&packed, "garbage", 7);
    put_file(&folder, "tail", packed.data, packed.used);
    put_text(&folder, "plain", "card\n");
    put_text(&folder, "empty", "");
    assert_texts(&folder,
                 "[text_line: {filenames: [cut, tail, plain, empty], compression_type: GZIP}]",
                 "card|coat|!cut: its GZIP data is truncated at byte 27|card|coat|"
                 "!tail: its GZIP data is damaged at byte 32 (incorrect header check)|"
                 "!plain: it is not GZIP data: leave compression_type out, or set the one that it "
                 "has|");
    assert_texts(
        &folder, "[text_line: {filenames: tail}]",
        "!tail: it is gzip data, and not text: set compression_type (GZIP or ZLIB), or unpack "
        "it|");
    free(packed.data);
    folder_close(&folder);
}

static void
rows_can_be_read_in_any_order_and_twice(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    uint64_t words[5 * SOURCE_WIDTH];
    uint64_t chosen[6 * SOURCE_WIDTH];
    const size_t rows[6] = { 4, 0, 0, 3, 1, 4 };
    const char *const texts[6] = { "e", "aaa", "aaa", "", "bb", "e" };
    size_t count;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "aaa\nbb\nc\n\ne");
    assert_int_equal(
        pipeline_open(&pipeline, &folder, 0,
                      "[csv: {filenames: a, record_defaults: [{values: '', dtype: string}], "
                      "column_names: [x]}]"),
        TUNDISH_OK);
    assert_int_equal(order_next(pipeline.iterator, words, 5, &count), ORDER_OK);
    assert_int_equal(count, 5);
    for (int i = 0; i < 6; i++)
        memcpy(&chosen[2 * i], &words[2 * rows[i]], 2 * sizeof *words);
    assert_int_equal(pipeline_content(&pipeline, chosen, 6), TUNDISH_OK);
    for (size_t i = 0; i < 6; i++) {
        struct byte_view text = text_at(&pipeline, 0, i);

        assert_int_equal(text.size, strlen(texts[i]));
        assert_memory_equal(text.data, texts[i], text.size);
    }
    pipeline_close(&pipeline);
    folder_close(&folder);
}

static void
elements_can_be_had_by_number_and_passed_over(void **state)
{
    struct folder folder;
    struct bytes file = { 0 };
    struct bytes texts = { 0 };

    (void)state;
    folder_open(&folder);
    make_lines(1000, &file, &texts);
    put_file(&folder, "a", file.data, file.used);
    put_text(&folder, "b", "");
    put_text(&folder, "c", "last\n");
    for (uint32_t readers = 0; readers < 2; readers++) {
        struct pipeline pipeline;
        uint64_t words[2 * SOURCE_WIDTH];
        uint64_t count = 0;
        uint64_t passed = 0;
        size_t got;

        assert_int_equal(pipeline_open(&pipeline, &folder, readers,
                                       "[csv: {filenames: [a, b, c], record_defaults: [string], "
                                       "column_names: [x]}]"),
                         TUNDISH_OK);
        assert_int_equal(order_pass_over(pipeline.iterator, 999, &passed), ORDER_OK);
        assert_int_equal(order_next(pipeline.iterator, words, 1, &got), ORDER_OK);
        assert_int_equal(pipeline_content(&pipeline, words, 1), TUNDISH_OK);
        assert_memory_equal(text_at(&pipeline, 0, 0).data, "7911081", 7);
        assert_int_equal(order_pass_over(pipeline.iterator, 5, &passed), ORDER_END);
        assert_int_equal(passed, 1);

        assert_int_equal(pipeline.node->order->count(pipeline.iterator, &count), TUNDISH_OK);
        assert_int_equal(count, 1001);
        assert_int_equal(
            pipeline.node->order->at(pipeline.iterator, (const uint64_t[]){ 1000, 777 }, 2, words),
            TUNDISH_OK);
        assert_int_equal(pipeline_content(&pipeline, words, 2), TUNDISH_OK);
        assert_memory_equal(text_at(&pipeline, 0, 0).data, "last", 4);
        assert_memory_equal(text_at(&pipeline, 0, 1).data, "6153063", 7);
        pipeline_close(&pipeline);
    }
    free(file.data);
    free(texts.data);
    folder_close(&folder);
}

/* What a stage finds wrong with a row names its file and place, through whatever moves rows. */
static void
a_bad_row_is_named_by_its_place(void **state)
{
    static const char *const between[] = {
        "",
        "shuffle: {buffer_size: 1, seed: 1}, ",
        "enumerate, drop: index, ",
        "filter: \"value == value\", ",
    };
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "names", "a\n");
    put_text(&folder, "a", "MTI\n*\n");
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
        char *stages = tnd_sprintf("[text_line: a, %sdecode_base64]", between[i]);

        assert_texts(&folder, stages,
                     "12|?a, line 2: decode_base64: no base64 text has so many characters "
                     "(decode_base64, line 3 of case.yaml)|");
        free(stages);
    }
    assert_texts(&folder, "[text_line: names, flat_map: {dataset: [text_line]}, decode_base64]",
                 "12|?a, line 2: decode_base64: no base64 text has so many characters "
                 "(decode_base64, line 3 of case.yaml)|");
    assert_texts(&folder,
                 "[concatenate: {datasets: [[text_line: names, take: 0], [text_line: a]]}, "
                 "decode_base64]",
                 "12|?a, line 2: decode_base64: no base64 text has so many characters "
                 "(decode_base64, line 3 of case.yaml)|");
    folder_close(&folder);
}

/* In whatever parts the scan reads them, and whether the last line ends. */
static void
blank_lines_are_no_json(void **state)
{
    static const char *const between[] = { "", "shuffle: 1, ", "take: 3, " };
    const char *json = "decode_json: {features: {v: {type: FixedLen, dtype: string, shape: []}}}";
    char *wide = tnd_alloc(300000);
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "names", "a\n");
    put_text(&folder, "a",
             "\n{\"v\": \"x\"}\n \t\r\n\r\n  {\"v\": \"y\"}\n\n{\"v\": \"z\"}\n \n\t");
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
        char *stages = tnd_sprintf("[text_line: a, %s%s]", between[i], json);

        assert_texts(&folder, stages, "x|y|z|");
        free(stages);
    }
    memset(wide, ' ', 299999);
    wide[299999] = '\0';
    wide[100000] = wide[299990] = '\n';
    memcpy(wide + 299991, "{\"v\":1}", 7);
    put_text(&folder, "wide", wide);
    assert_texts(&folder,
                 "[text_line: wide, decode_json: {features: {v: {type: FixedLen, dtype: "
                 "int64, shape: []}}}, as_string]",
                 "1|");
    /* Elsewhere they are lines. */
    assert_texts(&folder, "[text_line: a, take: 1]", "|");
    free(wide);
    folder_close(&folder);
}

TEST_FILE(test_source_text_line)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_at_newlines_and_lose_carriage_returns),
        cmocka_unit_test(a_last_line_needs_no_newline_but_some_text),
        cmocka_unit_test(a_missing_file_fails_in_its_place_and_the_next_goes_on),
        cmocka_unit_test(a_folder_and_a_pipe_are_refused_without_waiting),
        cmocka_unit_test(a_file_of_several_segments_comes_whole_and_in_order),
        cmocka_unit_test(packed_files_are_unpacked_member_by_member),
        cmocka_unit_test(damage_in_a_packed_file_comes_behind_the_lines_before_it),
        cmocka_unit_test(rows_can_be_read_in_any_order_and_twice),
        cmocka_unit_test(elements_can_be_had_by_number_and_passed_over),
        cmocka_unit_test(a_bad_row_is_named_by_its_place),
        cmocka_unit_test(blank_lines_are_no_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
