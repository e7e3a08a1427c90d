/* test_vocab_lookup.c - all lengths, all paths, ends of pages, and the rules of lookup stages. */
#include "unit/test_file.h"
#include "vocab_fixture.h"

#include <sys/mman.h>

#include "content/vocabulary/vocab_block.h"
#include "core/cpu.h"
#include "core/hash_farm.h"
#include "core/hash_sip.h"

#define COUNT 5000

static struct byte_view terms[2 * COUNT]; /* the first half is in the vocabulary */

static void
make_terms(void)
{
    static uint8_t bytes[2 * COUNT][40];

    srand(5);
    for (size_t i = 0; i < 2 * COUNT; i++) {
        size_t size = i % 37 == 0 ? 8 : i % 3 == 0 ? 9 + i % 30 : 3 + i % 7;

        for (size_t j = 0; j < size; j++)
            bytes[i][j] = (uint8_t)(rand() % 5);         /* many NULs and shared beginnings */
        memcpy(bytes[i], &(uint32_t){ (uint32_t)i }, 3); /* all different */
        terms[i] = (struct byte_view){ bytes[i], size };
    }
}

static void
every_level_finds_what_is_there_and_nothing_else(void **state)
{
    static int64_t lines[2 * COUNT];
    struct vocab *vocab;

    (void)state;
    make_terms();
    assert_int_equal(vocab_open_terms(cache, "list", terms, COUNT, &vocab), TUNDISH_OK);
    for (int level = TND_CPU_PORTABLE; level < TND_CPU_LEVELS; level++) {
        if (!tnd_cpu_use((enum tnd_cpu_level)level))
            continue;
        memset(lines, 77, sizeof lines);
        vocab_lookup(vocab, terms, 2 * COUNT, lines);
        for (int64_t i = 0; i < 2 * COUNT; i++)
            assert_int_equal(lines[i], i < COUNT ? i : -1);
    }
    vocab_close(vocab);
}

/* Eight at once or one by one: terms of all lengths, of none at all, and at the end of a page. */
static void
every_level_asks_for_the_same(void **state)
{
    static struct vocab_block expected, found;
    static struct byte_view asked[VOCAB_BLOCK];
    uint8_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct vocab *vocab;

    (void)state;
    make_terms();
    assert_ptr_not_equal(page, MAP_FAILED);
    for (size_t i = 0; i < 4096; i++)
        page[i] = (uint8_t)(rand() % 256);
    assert_int_equal(mprotect(page + 4096, 4096, PROT_NONE), 0);
    assert_int_equal(vocab_open_terms(cache, "list", terms, COUNT, &vocab), TUNDISH_OK);
    for (int round = 0; round < 2000; round++) {
        const int longest = round % 3 == 0 ? 12 : 9;

        expected.count = found.count = (size_t)(rand() % (VOCAB_BLOCK + 1));
        for (size_t i = 0; i < expected.count; i++) {
            const size_t size = (size_t)(round % 5 == 0 ? 1 + rand() % 8 : rand() % longest);
            const size_t at = rand() % 50 == 0 ? 4096 - size : (size_t)(rand() % 4000);

            asked[i] = (struct byte_view){ size > 0 || rand() % 2 ? page + at : NULL, size };
        }
        assert_true(tnd_cpu_use(TND_CPU_PORTABLE));
        vocab_block_ask(vocab, asked, &expected);
        for (int level = TND_CPU_SSE42; level < TND_CPU_LEVELS; level++) {
            if (!tnd_cpu_use((enum tnd_cpu_level)level))
                continue;
            vocab_block_ask(vocab, asked, &found);
            assert_memory_equal(found.keys, expected.keys, expected.count * sizeof *found.keys);
            assert_memory_equal(found.homes, expected.homes, expected.count * sizeof *found.homes);
            assert_int_equal(found.shortest, expected.shortest);
            assert_int_equal(found.long_count, expected.long_count);
            assert_memory_equal(found.longs, expected.longs,
                                expected.long_count * sizeof *found.longs);
        }
    }
    vocab_close(vocab);
    munmap(page, 8192);
}

static void
every_level_finds_integers(void **state)
{
    static int64_t integers[2 * COUNT], lines[2 * COUNT];
    struct vocab *vocab;

    (void)state;
    for (int64_t i = 0; i < 2 * COUNT; i++)
        integers[i] = i % 2 == 0 ? -i : i * INT64_C(123456789012);
    assert_int_equal(vocab_open_integers(cache, "list", integers, COUNT, &vocab), TUNDISH_OK);
    for (int level = TND_CPU_PORTABLE; level < TND_CPU_LEVELS; level++) {
        if (!tnd_cpu_use((enum tnd_cpu_level)level))
            continue;
        vocab_lookup_integers(vocab, integers, 2 * COUNT, lines);
        for (int64_t i = 0; i < 2 * COUNT; i++)
            assert_int_equal(lines[i], i < COUNT ? i : -1);
    }
    vocab_close(vocab);
}

/* An empty slot holds eight NULs; a key of up to seven bytes looks like eight with a small last
 * one. */
static void
terms_that_look_like_keys_are_kept_apart(void **state)
{
    const struct byte_view alike[] = {
        { (const uint8_t *)"\0\0\0\0\0\0\0\0", 8 },
        { (const uint8_t *)"ab\0\0\0\0\0\3", 8 },
        { (const uint8_t *)"ab", 2 },
        { (const uint8_t *)"ab\0", 3 },
    };
    int64_t lines[4];
    struct vocab *vocab;

    (void)state;
    for (size_t present = 0; present < 4; present++) {
        assert_int_equal(vocab_open_terms(cache, "list", &alike[present], 1, &vocab), TUNDISH_OK);
        for (int level = TND_CPU_PORTABLE; level < TND_CPU_LEVELS; level++) {
            if (!tnd_cpu_use((enum tnd_cpu_level)level))
                continue;
            vocab_lookup(vocab, alike, 4, lines);
            for (size_t i = 0; i < 4; i++)
                assert_int_equal(lines[i], i == present ? 0 : -1);
        }
        vocab_close(vocab);
    }
    assert_int_equal(vocab_open_terms(cache, "list", alike, 4, &vocab), TUNDISH_OK);
    vocab_lookup(vocab, alike, 4, lines);
    for (int i = 0; i < 4; i++)
        assert_int_equal(lines[i], i);
    vocab_close(vocab);
}

/* What vocab_map gives, also of terms that had no room in their home bucket. */
static void
single_terms_are_answered_as_many_are(void **state)
{
    static int64_t values[2 * COUNT];
    const struct vocab_rule rule = { .offset = 3, .oov_first = 2, .oov_count = 1 };
    const struct vocab_output to = { values, TUNDISH_INT64, 1, NULL };
    struct vocab_rule masked = rule, several = rule;
    struct vocab_asked asked;
    struct vocab *vocab;

    (void)state;
    make_terms();
    assert_int_equal(vocab_open_terms(cache, "list", terms, COUNT, &vocab), TUNDISH_OK);
    assert_int_equal(vocab_map(vocab, &rule, terms, 2 * COUNT, &to), 2 * COUNT);
    for (size_t i = 0; i < 2 * COUNT; i++) {
        assert_int_equal(vocab_ask(vocab, &rule, terms[i], &asked), vocab_is_short(terms[i]));
        if (vocab_is_short(terms[i]))
            assert_int_equal(vocab_answer(vocab, &rule, &asked), values[i]);
    }
    masked.has_mask = true;
    several.oov_count = 2;
    assert_false(vocab_ask(vocab, &masked, terms[1], &asked));
    assert_false(vocab_ask(vocab, &several, terms[1], &asked));
    vocab_close(vocab);
}

static void
terms_at_the_end_of_the_last_page_are_read_no_further(void **state)
{
    uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct vocab *vocab = open_text("v.txt", "a\nab\nabc\nabcd\nabcde\nabcdef\nabcdefg\nabcdefgh\n"
                                             "abcdefghi\nabcdefghijklmnopq\n");

    (void)state;
    assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
    for (size_t size = 0; size <= 17; size++) {
        struct byte_view term = { pages + 4096 - size, size };
        int64_t line;

        memcpy(pages + 4096 - size, "abcdefghijklmnopq", size);
        vocab_lookup(vocab, &term, 1, &line);
        assert_int_equal(line, size == 0    ? -1
                               : size < 10  ? (int64_t)size - 1
                               : size == 17 ? 9
                                            : -1);
    }
    vocab_close(vocab);
    munmap(pages, 8192);
}

static void
map_strings(const struct vocab *vocab, const struct vocab_rule *rule, const char *const *texts,
            size_t count, int64_t *ret_values)
{
    struct byte_view views[16];
    const struct vocab_output output = { ret_values, TUNDISH_INT64, 1, NULL };

    for (size_t i = 0; i < count; i++)
        views[i] = bytes_of_text(texts[i]);
    assert_int_equal(vocab_map(vocab, rule, views, count, &output), count);
}

static void
keras_recorded_lookups_come_out(void **state)
{
    struct vocab *vocab = open_text("v.txt", "a\nb\nc\nd\n");
    const char *const texts[] = { "a", "c", "d", "m", "z", "b" };
    const struct vocab_rule one = { .offset = 1, .oov_first = 0, .oov_count = 1 };
    const struct vocab_rule two = { .offset = 2, .oov_first = 0, .oov_count = 2 };
    const int64_t expected_one[] = { 1, 3, 4, 0, 0, 2 };
    const int64_t expected_two[] = { 2, 4, 5, 0, 1, 3 };
    int64_t values[6];

    (void)state;
    map_strings(vocab, &one, texts, 6, values);
    assert_memory_equal(values, expected_one, sizeof values);
    map_strings(vocab, &two, texts, 6, values);
    assert_memory_equal(values, expected_two, sizeof values);
    vocab_close(vocab);
}

/* Whichever way the values are found, and with every way of comparing. */
static void
absent_terms_are_counted(void **state)
{
    struct vocab *vocab = open_text("v.txt", "a\nb\nc\nd\n");
    const char *const texts[] = { "a", "m", "", "z", "b", "m", "c" };
    const struct vocab_rule rules[] = {
        { .offset = 1, .oov_first = 0, .oov_count = 1 },
        { .offset = 3, .oov_first = 0, .oov_count = 3 },
        { .offset = 0, .oov_first = 2, .oov_count = 1 }, /* a line's own value */
        { .offset = 0, .oov_first = -7, .oov_count = 1 },
        { .offset = 2,
          .oov_first = 1,
          .oov_count = 1,
          .has_mask = true,
          .mask = bytes_of_text("") },
    };
    const uint64_t expected[] = { 4, 4, 4, 4, 3 };

    (void)state;
    for (int level = TND_CPU_PORTABLE; level < TND_CPU_LEVELS; level++)
        for (size_t r = 0; tnd_cpu_use((enum tnd_cpu_level)level) && r < 5; r++) {
            struct byte_view views[7];
            int64_t values[7];
            uint64_t absent = 10;
            const struct vocab_output output = { values, TUNDISH_INT64, 1, &absent };

            for (size_t i = 0; i < 7; i++)
                views[i] = bytes_of_text(texts[i]);
            assert_int_equal(vocab_map(vocab, &rules[r], views, 7, &output), 7);
            assert_int_equal(absent, 10 + expected[r]);
        }
    for (int level = TND_CPU_PORTABLE; level < TND_CPU_LEVELS; level++)
        for (size_t count = 0; tnd_cpu_use((enum tnd_cpu_level)level) && count < 70; count++) {
            int64_t values[70];

            for (size_t i = 0; i < count; i++)
                values[i] = i % 3 == 0 ? -5 : (int64_t)i;
            assert_int_equal(vocab_count_equal(values, count, -5), (count + 2) / 3);
        }
    vocab_close(vocab);
}

static void
a_refused_term_is_counted_as_absent(void **state)
{
    const int64_t asked[] = { 5, 9, 6 };
    const struct vocab_rule rule = { .offset = 0 };
    struct vocab *vocab;
    int64_t values[3];
    uint64_t absent = 0;
    const struct vocab_output output = { values, TUNDISH_INT64, 1, &absent };

    (void)state;
    assert_int_equal(vocab_open_integers(cache, "v", asked, 1, &vocab), TUNDISH_OK);
    assert_int_equal(vocab_map_integers(vocab, &rule, asked, 3, &output), 1);
    assert_int_equal(absent, 1);
    vocab_close(vocab);
}

static void
the_mask_comes_before_the_table(void **state)
{
    struct vocab *vocab = open_text("v.txt", "b\nc\na\n");
    const char *const texts[] = { "a", "z", "b", "c", "" };
    const struct vocab_rule rule = { .offset = 2,
                                     .oov_first = 1,
                                     .oov_count = 1,
                                     .has_mask = true,
                                     .mask = bytes_of_text("a"),
                                     .mask_value = 0 };
    const struct vocab_rule empty = { .offset = 1,
                                      .oov_first = 0,
                                      .oov_count = 1,
                                      .has_mask = true,
                                      .mask = { NULL, 0 },
                                      .mask_value = INT64_MAX };
    const int64_t expected[] = { 0, 1, 2, 3, 1 };
    const int64_t expected_empty[] = { 3, 0, 1, 2, INT64_MAX };
    int64_t values[5];

    (void)state;
    map_strings(vocab, &rule, texts, 5, values);
    assert_memory_equal(values, expected, sizeof values);
    map_strings(vocab, &empty, texts, 5, values);
    assert_memory_equal(values, expected_empty, sizeof values);
    vocab_close(vocab);
}

static void
salted_and_table_style_misses_are_hashed(void **state)
{
    struct vocab *vocab = open_text("v.txt", "a\nb\n");
    const char *const texts[] = { "x", "a", "yy" };
    const struct vocab_rule salted = {
        .offset = 7, .oov_first = 0, .oov_count = 7, .oov = VOCAB_OOV_SIP, .salt = { 133, 137 }
    };
    const struct vocab_rule table = { .offset = 0, .oov_first = 2, .oov_count = 5 };
    int64_t values[3];

    (void)state;
    map_strings(vocab, &salted, texts, 3, values);
    assert_int_equal(values[0], tnd_hash_sip(salted.salt, "x", 1) % 7);
    assert_int_equal(values[1], 7);
    map_strings(vocab, &table, texts, 3, values);
    assert_int_equal(values[0], 2 + tnd_hash_farm("x", 1) % 5);
    assert_int_equal(values[1], 0);
    assert_int_equal(values[2], 2 + tnd_hash_farm("yy", 2) % 5);
    vocab_close(vocab);
}

static void
integers_miss_by_floor_modulus_farm_or_sip(void **state)
{
    const int64_t vocabulary[] = { 12, 36, 1138, 42 };
    const int64_t keys[] = { 37, 1000, 12, -3, INT64_MIN, -1 };
    struct vocab_rule rule = { .offset = 2, .oov_count = 2, .oov = VOCAB_OOV_FLOORMOD };
    const int64_t expected[] = { 1, 0, 2, 1, 0, 1 };
    int64_t values[6];
    const struct vocab_output output = { values, TUNDISH_INT64, 1, NULL };
    struct vocab *vocab;

    (void)state;
    assert_int_equal(vocab_open_integers(cache, "list", vocabulary, 4, &vocab), TUNDISH_OK);
    assert_int_equal(vocab_map_integers(vocab, &rule, keys, 6, &output), 6);
    assert_memory_equal(values, expected, sizeof values);
    rule.oov_count = 1000;
    assert_int_equal(vocab_map_integers(vocab, &rule, keys, 6, &output), 6);
    assert_int_equal(values[4], 192); /* INT64_MIN % 1000 in Python */
    assert_int_equal(values[5], 999);
    rule.oov = VOCAB_OOV_FARM;
    assert_int_equal(vocab_map_integers(vocab, &rule, keys, 6, &output), 6);
    assert_int_equal(values[3], tnd_hash_farm("-3", 2) % 1000);
    rule.oov = VOCAB_OOV_SIP;
    rule.salt[0] = 9;
    assert_int_equal(vocab_map_integers(vocab, &rule, keys, 6, &output), 6);
    assert_int_equal(values[3], tnd_hash_sip(rule.salt, "-3", 2) % 1000);
    rule.has_mask = true;
    rule.mask_integer = 1138;
    rule.mask_value = -9;
    assert_int_equal(vocab_map_integers(vocab, &rule, vocabulary, 4, &output), 4);
    assert_int_equal(values[2], -9);
    vocab_close(vocab);
}

static void
a_miss_that_is_not_allowed_is_named_by_position(void **state)
{
    static struct byte_view views[700];
    static int64_t values[700];
    const struct vocab_rule rule = {
        .offset = 0, .oov_count = 0, .has_mask = true, .mask = bytes_of_text("mask")
    };
    const struct vocab_output output = { values, TUNDISH_INT64, 1, NULL };
    struct vocab *vocab = open_text("v.txt", "a\nb\n");

    (void)state;
    for (size_t i = 0; i < 700; i++)
        views[i] = bytes_of_text(i % 2 == 0 ? "a" : "mask");
    assert_int_equal(vocab_map(vocab, &rule, views, 700, &output), 700);
    views[601] = bytes_of_text("absent");
    assert_int_equal(vocab_map(vocab, &rule, views, 700, &output), 601);
    vocab_close(vocab);
}

static void
values_go_where_the_output_says(void **state)
{
    const struct vocab_rule rule = { .offset = 1, .oov_count = 1 };
    const struct byte_view views[] = { bytes_of_text("b"), bytes_of_text("?"), bytes_of_text("a") };
    int64_t wide[9];
    int32_t narrow[9];
    struct vocab *vocab = open_text("v.txt", "a\nb\n");

    (void)state;
    memset(wide, -1, sizeof wide);
    memset(narrow, -1, sizeof narrow);
    vocab_map(vocab, &rule, views, 3, &(struct vocab_output){ wide + 1, TUNDISH_INT64, 3, NULL });
    vocab_map(vocab, &rule, views, 3, &(struct vocab_output){ narrow + 2, TUNDISH_INT32, 3, NULL });
    for (int i = 0; i < 9; i++) {
        const int64_t expected[] = { 2, 0, 1 };

        assert_int_equal(wide[i], i % 3 == 1 ? expected[i / 3] : -1);
        assert_int_equal(narrow[i], i % 3 == 2 ? expected[i / 3] : -1);
    }
    vocab_map(vocab, &rule, views, 3, &(struct vocab_output){ narrow, TUNDISH_INT32, 1, NULL });
    assert_int_equal(narrow[0], 2);
    assert_int_equal(narrow[2], 1);
    vocab_close(vocab);
}

TEST_FILE(test_vocab_lookup)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_level_finds_what_is_there_and_nothing_else, empty_cache),
        cmocka_unit_test_setup(every_level_asks_for_the_same, empty_cache),
        cmocka_unit_test_setup(every_level_finds_integers, empty_cache),
        cmocka_unit_test_setup(terms_that_look_like_keys_are_kept_apart, empty_cache),
        cmocka_unit_test_setup(single_terms_are_answered_as_many_are, empty_cache),
        cmocka_unit_test_setup(terms_at_the_end_of_the_last_page_are_read_no_further, empty_cache),
        cmocka_unit_test_setup(keras_recorded_lookups_come_out, empty_cache),
        cmocka_unit_test_setup(absent_terms_are_counted, empty_cache),
        cmocka_unit_test_setup(a_refused_term_is_counted_as_absent, empty_cache),
        cmocka_unit_test_setup(the_mask_comes_before_the_table, empty_cache),
        cmocka_unit_test_setup(salted_and_table_style_misses_are_hashed, empty_cache),
        cmocka_unit_test_setup(integers_miss_by_floor_modulus_farm_or_sip, empty_cache),
        cmocka_unit_test_setup(a_miss_that_is_not_allowed_is_named_by_position, empty_cache),
        cmocka_unit_test_setup(values_go_where_the_output_says, empty_cache),
    };

    return cmocka_run_group_tests(tests, make_top, remove_top);
}
