/* test_yaml_reader.c - the tree with its positions, and what of YAML is refused. */
#include "spec_fixture.h"

#include "spec/yaml_reader.h"
#include "unit/test_file.h"

struct document {
    struct spec_memory *memory;
    struct spec_errors errors;
    struct spec_value root;
    tundish_status status;
};

static struct document
read_bytes(const char *text, size_t text_bytes)
{
    struct document document = { .memory = spec_memory_open() };

    document.status =
        yaml_read(text, text_bytes, document.memory, &document.errors, &document.root);
    return document;
}

static struct document
read_text(const char *text)
{
    return read_bytes(text, strlen(text));
}

static void
close_document(struct document *document)
{
    spec_memory_close(document->memory);
    spec_errors_close(&document->errors);
}

static void
refuses(const char *text, uint32_t line, uint32_t column, const char *words)
{
    struct document document = read_text(text);

    if (document.errors.count == 0)
        fail_msg("nothing is refused in: %s", text);
    if (strstr(document.errors.list[0].text, words) == NULL)
        fail_msg("expected \"%s\" in \"%s\" for: %s", words, document.errors.list[0].text, text);
    assert_int_equal(document.errors.list[0].line, line);
    assert_int_equal(document.errors.list[0].column, column);
    close_document(&document);
}

static void
values_know_where_they_stand(void **state)
{
    struct document document = read_text("a: 1\nü: [x,\n  {b: \"2\"}]\n");
    const struct spec_value *list, *map;

    (void)state;
    assert_int_equal(document.status, TUNDISH_OK);
    assert_int_equal(document.root.kind, SPEC_MAP);
    assert_int_equal(document.root.count, 2);
    assert_int_equal(spec_map_get(&document.root, "a")->integer, 1);
    list = spec_map_get(&document.root, "ü");
    assert_true(list->line == 2 && list->column == 4 && list->count == 2);
    assert_true(list->items[0].line == 2 && list->items[0].column == 5);
    map = &list->items[1];
    assert_true(map->line == 3 && map->column == 3);
    assert_true(map->keys[0].line == 3 && map->keys[0].column == 4);
    assert_int_equal(map->items[0].kind, SPEC_TEXT);
    assert_true(map->items[0].quoted);
    assert_null(spec_map_get(&document.root, "b"));
    close_document(&document);
}

static void
quotes_comments_and_blocks_are_understood(void **state)
{
    struct document document = read_text("a: 'it''s' # comment\nb: \"\\x41\\n\"\nc: |\n  1\n  2\n"
                                         "d: >-\n  x\n  y\n'e': ~\n");

    (void)state;
    assert_int_equal(document.status, TUNDISH_OK);
    assert_string_equal(spec_map_get(&document.root, "a")->text, "it's");
    assert_string_equal(spec_map_get(&document.root, "b")->text, "A\n");
    assert_int_equal(spec_map_get(&document.root, "c")->kind, SPEC_TEXT);
    assert_string_equal(spec_map_get(&document.root, "c")->text, "1\n2\n");
    assert_string_equal(spec_map_get(&document.root, "d")->text, "x y");
    assert_int_equal(spec_map_get(&document.root, "e")->kind, SPEC_NULL);
    close_document(&document);
}

static void
a_quoted_text_may_hold_a_nul(void **state)
{
    struct document document = read_text("a: \"x\\0y\"\n");

    (void)state;
    assert_int_equal(spec_map_get(&document.root, "a")->text_bytes, 3);
    close_document(&document);
    refuses("\"x\\0y\": a\n", 1, 1, "NUL");
}

static void
letters_that_ended_a_line_once_stay(void **state)
{
    struct document document =
        read_text("# a \xc2\x85 b\na: \"x \xc2\x85 y\xe2\x80\xa8 \xee\x80\x80\"\n"
                  "b: '\xe2\x80\xa9'\nc: p\xc2\x85q\nd: \"\\ue001\xc2\x85\"\n"
                  "k\xc2\x85: \"z\xc2\x85\n  z\"\n");

    (void)state;
    assert_int_equal(document.status, TUNDISH_OK);
    assert_int_equal(document.errors.count, 0);
    assert_string_equal(spec_map_get(&document.root, "a")->text,
                        "x \xc2\x85 y\xe2\x80\xa8 \xee\x80\x80");
    assert_int_equal(spec_map_get(&document.root, "a")->text_bytes, 13);
    assert_int_equal(spec_map_get(&document.root, "a")->line, 2);
    assert_string_equal(spec_map_get(&document.root, "b")->text, "\xe2\x80\xa9");
    assert_string_equal(spec_map_get(&document.root, "c")->text, "p\xc2\x85q");
    assert_string_equal(spec_map_get(&document.root, "d")->text, "\xee\x80\x81\xc2\x85");
    assert_string_equal(spec_map_get(&document.root, "k\xc2\x85")->text, "z\xc2\x85 z");
    close_document(&document);
    refuses("a: \"\xc2\x85\n", 1, 4, "never closed");
}

static void
a_file_without_a_letter_left_is_told_so(void **state)
{
    size_t bytes = 3;
    char *text = malloc(3 * 0x1900 + 64);

    (void)state;
    memcpy(text, "a: ", bytes);
    for (unsigned i = 0; i < 0x1900; i++) {
        text[bytes++] = (char)(0xe0 | (0xe000 + i) >> 12);
        text[bytes++] = (char)(0x80 | ((0xe000 + i) >> 6 & 0x3f));
        text[bytes++] = (char)(0x80 | (i & 0x3f));
    }
    memcpy(text + bytes, "\nb: \xc2\x85", 7);
    text[bytes + 6] = '\0';
    refuses(text, 0, 0, "private");
    free(text);
}

static void
bytes_are_given_in_base64(void **state)
{
    struct document document = read_text("a: !!binary \"/wAK\"\nb: [!!binary JHtIT01FfQ==]\n"
                                         "c: !!binary |\n  iVBO\n  Rw==\nd: !!binary \"\"\n");
    const struct spec_value *a, *b, *c;

    (void)state;
    assert_int_equal(document.status, TUNDISH_OK);
    assert_int_equal(document.errors.count, 0);
    a = spec_map_get(&document.root, "a");
    assert_true(a->kind == SPEC_TEXT && a->quoted && a->text_bytes == 3);
    assert_memory_equal(a->text, "\xff\0\n", 3);
    b = &spec_map_get(&document.root, "b")->items[0];
    assert_string_equal(b->text, "${HOME}");
    c = spec_map_get(&document.root, "c");
    assert_true(c->text_bytes == 4 && memcmp(c->text, "\x89PNG", 4) == 0);
    assert_int_equal(spec_map_get(&document.root, "d")->kind, SPEC_TEXT);
    assert_int_equal(spec_map_get(&document.root, "d")->text_bytes, 0);
    close_document(&document);
    refuses("a: !!binary \"?\"\n", 1, 4, "base64");
    refuses("!!binary YQ==: 1\n", 1, 1, "name");
    refuses("a: !!binary [YQ==]\n", 1, 4, "binary");
}

static void
what_yaml_has_beyond_trees_is_refused(void **state)
{
    (void)state;
    refuses("a: &x 1\n", 1, 4, "anchors (&x)");
    refuses("a: [1, *x]\n", 1, 8, "aliases (*x)");
    refuses("a:\n  <<: {b: 1}\n", 2, 3, "merges");
    refuses("a: !!str 1\n", 1, 4, "tags");
    refuses("%YAML 1.1\n---\na: 1\n", 1, 1, "directives");
    refuses("a: 1\n---\nb: 1\n", 2, 1, "second document");
    refuses("? [a]\n: b\n", 1, 3, "expected a name before the colon");
}

static void
keys_are_taken_once(void **state)
{
    (void)state;
    refuses("a: 1\nb: 2\na: 3\n", 3, 1, "\"a\" occurs twice, first on line 1");
    setenv("TUNDISH_TEST_KEY", "a", 1);
    refuses("a: 1\n\"${TUNDISH_TEST_KEY}\": 3\n", 2, 1, "twice");
}

static void
every_refusal_is_found_in_one_pass(void **state)
{
    struct document document = read_text("a: &x 1\nb: *x\nc: !t 2\nd: {e: 1, e: 2}\n");

    (void)state;
    assert_int_equal(document.status, TUNDISH_OK);
    assert_int_equal(document.errors.count, 4);
    close_document(&document);
}

static void
what_must_be_quoted_is_named(void **state)
{
    (void)state;
    refuses("a: *\n", 1, 4, "must be quoted");
    refuses("a: {b: %x}\n", 1, 8, "must be quoted");
    refuses("a: @x\n", 1, 4, "must be quoted");
    refuses("a: `x y`\n", 1, 4, "must be quoted");
    refuses("a: |x\n", 1, 4, "must be quoted");
    refuses("a: b: c\n", 1, 5, "a colon and a space");
    refuses("a: {b: ${X}}\n", 1, 9, "must be quoted");
    refuses("a: {b: x/{column}.txt}\n", 1, 10, "must be quoted");
    refuses("a: {column}\n", 1, 5, "must be quoted");
    refuses("a: {b: max(c, d)}\n", 1, 15, "must be quoted");
    refuses("a: [b[0]]\n", 1, 6, "must be quoted");
}

static void
a_mapping_may_leave_a_value_out_behind_a_colon(void **state)
{
    struct document document = read_text("a: {b: , c: }\nd:\n");

    (void)state;
    assert_int_equal(document.status, TUNDISH_OK);
    assert_int_equal(document.errors.count, 0);
    assert_int_equal(spec_map_get(&document.root, "a")->items[1].kind, SPEC_NULL);
    close_document(&document);
}

static void
a_byte_order_mark_is_passed_over(void **state)
{
    struct document document = read_text("\xef\xbb\xbf"
                                         "a: 1\nb: 2\n");

    (void)state;
    assert_int_equal(document.errors.count, 0);
    assert_int_equal(document.root.count, 2);
    assert_int_equal(document.root.items[0].column, 4);
    close_document(&document);
    refuses("\xef\xbb\xbf", 1, 1, "empty");
}

static void
broken_yaml_is_told_in_our_words(void **state)
{
    (void)state;
    refuses("a:\n\tb: 1\n", 2, 1, "a tab");
    refuses("a: 'b\n", 1, 4, "never closed");
    refuses("a: {b: 1\n", 2, 1, "ends inside");
    refuses("a: \"\\d\"\n", 1, 5, "unknown escape");
    refuses("a: 1\n b: 2\n", 2, 3, "look at the indentation");
    refuses("a:\n  - b\n c: 1\n", 3, 2, "look at the indentation");
    refuses("a: \xff\n", 1, 4, "not UTF-8");
    refuses("a: \x01\n", 1, 4, "not UTF-8");
    refuses("", 1, 1, "empty");
    refuses("# only a comment\n", 1, 1, "empty");
}

static char *
repeated(const char *text, size_t count, size_t *ret_bytes)
{
    size_t bytes = strlen(text);
    char *all = malloc(bytes * count + 1);

    for (size_t i = 0; i < count; i++)
        memcpy(all + i * bytes, text, bytes);
    all[bytes * count] = '\0';
    *ret_bytes = bytes * count;
    return all;
}

static void
assert_limit(const char *text, size_t count, const char *words)
{
    size_t bytes;
    char *all = repeated(text, count, &bytes);
    struct document document = read_bytes(all, bytes);

    assert_int_equal(document.status, TUNDISH_E_PIPELINE);
    assert_non_null(strstr(document.errors.list[0].text, words));
    close_document(&document);
    free(all);
}

static void
depth_count_and_size_are_bounded(void **state)
{
    (void)state;
    assert_limit("[", 100000, "nested more than");
    assert_limit("{a: ", 1000, "nested more than");
    assert_limit("- - - ", 1000, "nested more than");
    assert_limit("- 1\n", YAML_VALUES_MAX + 1, "values");
    assert_limit("# sixteen bytes\n", YAML_BYTES_MAX / 16 + 1, "too many");
}

TEST_FILE(test_yaml_reader)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_know_where_they_stand),
        cmocka_unit_test(quotes_comments_and_blocks_are_understood),
        cmocka_unit_test(a_quoted_text_may_hold_a_nul),
        cmocka_unit_test(letters_that_ended_a_line_once_stay),
        cmocka_unit_test(a_file_without_a_letter_left_is_told_so),
        cmocka_unit_test(bytes_are_given_in_base64),
        cmocka_unit_test(what_yaml_has_beyond_trees_is_refused),
        cmocka_unit_test(keys_are_taken_once),
        cmocka_unit_test(every_refusal_is_found_in_one_pass),
        cmocka_unit_test(what_must_be_quoted_is_named),
        cmocka_unit_test(a_mapping_may_leave_a_value_out_behind_a_colon),
        cmocka_unit_test(a_byte_order_mark_is_passed_over),
        cmocka_unit_test(broken_yaml_is_told_in_our_words),
        cmocka_unit_test(depth_count_and_size_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
