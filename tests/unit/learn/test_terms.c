/* test_terms.c - terms counted in memory and beyond it, and ranked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include "learn/terms/term_runs.h"
#include "learn/terms/vocabulary_order.h"
#include "unit/test_file.h"

enum { TERMS = 120000 }; /* at the lowest limit, more runs than one merge reads */

/* Count term i i % 97 + 1 times, in both of two tables. */
static void
count(struct terms *tables[2])
{
    char text[32];

    for (int i = 0; i < TERMS; i++)
        for (int t = 0; t < 2; t++) {
            int size = sprintf(text, "term %d", i * 31 % TERMS);

            terms_at(tables[t], (struct byte_view){ (const uint8_t *)text, (uint64_t)size })
                ->count += i * 31 % TERMS % 97 + 1;
            assert_int_equal(terms_relieve(tables[t]), TUNDISH_OK);
        }
}

/* The same whatever the limit. */
static void
merge_gives_every_term_once_in_order(void **state)
{
    static const int64_t limits[] = { INT64_MAX, 3 << 20, 0 };

    (void)state;
    for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
        struct terms_memory memory = { .limit_bytes = limits[l] };
        int folder = open("/tmp", O_RDONLY | O_DIRECTORY);
        struct terms *tables[2] = { terms_open(&memory, folder), terms_open(&memory, folder) };
        struct term_merge *merge;
        struct term term;
        char before[32] = "";
        int seen = 0;

        count(tables);
        assert_int_equal(term_merge_open(tables, 2, &merge), TUNDISH_OK);
        while (term_merge_next(merge, &term) == TUNDISH_OK) {
            char text[32];
            int number;

            snprintf(text, sizeof text, "%.*s", (int)term.text.size, (const char *)term.text.data);
            assert_true(strcmp(before, text) < 0);
            strcpy(before, text);
            assert_int_equal(sscanf(text, "term %d", &number), 1);
            assert_int_equal(term.count, 2 * (number % 97 + 1));
            seen++;
        }
        assert_int_equal(seen, TERMS);
        term_merge_close(merge);
        terms_close(tables[0]);
        terms_close(tables[1]);
        assert_int_equal(memory.used_bytes, 0);
        close(folder);
    }
}

/* Texts of all lengths around a slot's, with bytes that a shorter one would be filled up with. */
static size_t
odd_text(int i, uint8_t text[16])
{
    size_t size = (size_t)(i % 12);

    memset(text, 0, 16);
    memcpy(text, &i, sizeof i);
    return size < 4 && i >= 12 ? 12 : size;
}

/* Both ways of counting know the same terms. */
static void
tallies_are_in_the_counts_of_what_is_gathered(void **state)
{
    enum { ODD = 20000 };
    struct terms_memory memory = { .limit_bytes = INT64_MAX };
    struct terms *tables[2] = { terms_open(&memory, -1), terms_open(&memory, -1) };

    (void)state;
    for (int pass = 0; pass < 3; pass++)
        for (int t = 0; t < 2; t++)
            for (int i = 0; i < ODD; i += 50) {
                static uint8_t texts[50][16];
                struct byte_view views[50];

                for (int k = 0; k < 50; k++)
                    views[k] = (struct byte_view){ texts[k], odd_text(i + k, texts[k]) };
                terms_tally(tables[t], views, 50);
                terms_at(tables[t], views[7])->count += 2;
            }
    assert_true(terms_gather(tables, 2));
    assert_int_equal(terms_count(tables[0]), ODD);
    assert_int_equal(terms_count(tables[1]), 0);
    for (int i = 0; i < ODD; i++) {
        uint8_t text[16];
        struct byte_view view = { text, odd_text(i, text) };

        assert_int_equal(terms_at(tables[0], view)->count, i % 50 == 7 ? 18 : 6);
    }
    assert_int_equal(terms_count(tables[0]), ODD);
    terms_close(tables[0]);
    terms_close(tables[1]);
    assert_int_equal(memory.used_bytes, 0);
}

/* Every third term is in both tables, the others are in one; the first table is smaller, larger or
 * empty. */
static void
gathering_keeps_every_count(void **state)
{
    enum { EACH = 20000 };
    static const int firsts[] = { 0, 100, EACH, 4 * EACH };
    struct terms_memory memory = { .limit_bytes = INT64_MAX };

    (void)state;
    for (size_t f = 0; f < sizeof firsts / sizeof *firsts; f++) {
        struct terms *tables[2] = { terms_open(&memory, -1), terms_open(&memory, -1) };
        int64_t counted = 0;

        for (int i = 0; i < firsts[f] || i < EACH; i++)
            for (int t = 0; t < 2; t++) {
                char text[32];
                int size = sprintf(text, "%s%d", i % 3 == 0 ? "" : t == 0 ? "a" : "b", i);
                struct byte_view view = { (const uint8_t *)text, (uint64_t)size };

                if (i < (t == 0 ? firsts[f] : EACH))
                    terms_tally(tables[t], &view, 1);
            }
        assert_true(terms_gather(tables, 2));
        for (uint32_t i = 0; i < terms_count(tables[0]); i++) {
            assert_true(terms_list(tables[0])[i].count > 0);
            counted += terms_list(tables[0])[i].count;
        }
        assert_int_equal(counted, firsts[f] + EACH);
        terms_close(tables[0]);
        terms_close(tables[1]);
    }
}

static void
nothing_is_gathered_once_some_was_written(void **state)
{
    struct terms_memory memory = { .limit_bytes = 0 };
    int folder = open("/tmp", O_RDONLY | O_DIRECTORY);
    struct terms *tables[2] = { terms_open(&memory, folder), terms_open(&memory, folder) };

    (void)state;
    count(tables);
    assert_false(terms_gather(tables, 2));
    terms_close(tables[0]);
    terms_close(tables[1]);
    close(folder);
}

static void
ranking_keeps_the_first_of_the_order(void **state)
{
    static const int64_t limits[] = { INT64_MAX, 100000 };
    int folder = open("/tmp", O_RDONLY | O_DIRECTORY);

    (void)state;
    for (size_t l = 0; l < 2; l++)
        for (int64_t most = -1; most < 3000; most += 1500) {
            struct term_ranking *ranking =
                term_ranking_open(&vocabulary_order_count, most, limits[l], folder);
            struct term term, last = { .count = INT64_MAX };
            int64_t taken = 0;
            char texts[2][32] = { "", "" };

            for (int i = 0; i < 5000; i++) {
                char text[32];
                int size = sprintf(text, "%d", i);

                term = (struct term){ .text = { (const uint8_t *)text, (uint64_t)size },
                                      .count = i * 7 % 100 };
                assert_int_equal(term_ranking_put(ranking, &term), TUNDISH_OK);
            }
            while (term_ranking_take(ranking, &term) == TUNDISH_OK) {
                memcpy(texts[taken % 2], term.text.data, term.text.size);
                term.text.data = (const uint8_t *)texts[taken % 2];
                if (taken > 0)
                    assert_true(vocabulary_order_count.compare(&last, &term) < 0);
                last = term;
                taken++;
            }
            assert_int_equal(taken, most < 0 ? 5000 : most);
            term_ranking_close(ranking);
        }
    close(folder);
}

/* Texts that share their first bytes, end in zeros or are empty, with numbers that are often equal.
 */
static void
draw_terms(struct term list[], int count, uint8_t (*texts)[24])
{
    static const double weights[] = { -2.5, -0.0, 0.0, 1e-300, 1, 1e300, -1e300, 7 };

    for (int i = 0; i < count; i++) {
        uint64_t size = (uint64_t)(i % 23);

        memset(texts[i], i % 3 == 0 ? 0 : 'a', sizeof texts[i]);
        if (size > 3)
            memcpy(texts[i] + size - 4, &i, 4);
        list[i] = (struct term){ .text = { texts[i], size },
                                 .count = i * 31 % 17,
                                 .weight = weights[i * 13 % 8] };
    }
}

static void
sorting_by_keys_is_sorting_by_comparison(void **state)
{
    enum { COUNT = 3000 };
    static const struct term_order *const orders[] = { &term_order_text, &vocabulary_order_count,
                                                       &vocabulary_order_weight,
                                                       &vocabulary_order_fingerprint };
    static uint8_t texts[COUNT][24];
    static struct term list[COUNT];

    (void)state;
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
        for (uint32_t count = 0; count <= COUNT; count = count * 7 + 1) {
            uint64_t bytes = 0, sorted_bytes = 0;

            draw_terms(list, COUNT, texts);
            for (uint32_t i = 0; i < count; i++)
                bytes += list[i].text.size;
            term_sort(list, count, orders[o]);
            for (uint32_t i = 0; i < count; i++)
                sorted_bytes += list[i].text.size;
            for (uint32_t i = 1; i < count; i++)
                assert_true(orders[o]->compare(&list[i - 1], &list[i]) <= 0);
            assert_int_equal(sorted_bytes, bytes);
        }
}

static void
integer_keys_are_ordered_as_integers(void **state)
{
    static const int64_t integers[] = { INT64_MIN, -3, -1, 0, 1, 255, 256, INT64_MAX };
    uint8_t before[8], key[8];

    (void)state;
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        vocabulary_integer_key(integers[i], key);
        assert_int_equal(vocabulary_key_integer(key), integers[i]);
        if (i > 0)
            assert_true(memcmp(before, key, 8) < 0);
        memcpy(before, key, 8);
    }
}

TEST_FILE(test_terms)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_gives_every_term_once_in_order),
        cmocka_unit_test(tallies_are_in_the_counts_of_what_is_gathered),
        cmocka_unit_test(gathering_keeps_every_count),
        cmocka_unit_test(nothing_is_gathered_once_some_was_written),
        cmocka_unit_test(ranking_keeps_the_first_of_the_order),
        cmocka_unit_test(sorting_by_keys_is_sorting_by_comparison),
        cmocka_unit_test(integer_keys_are_ordered_as_integers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
