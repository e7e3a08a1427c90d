/* test_terms.c - terms counted in memory and beyond it, and ranked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include "learn/terms/terms.h"
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
                term_ranking_open(vocabulary_order_count, most, limits[l], folder);
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
                    assert_true(vocabulary_order_count(&last, &term) < 0);
                last = term;
                taken++;
            }
            assert_int_equal(taken, most < 0 ? 5000 : most);
            term_ranking_close(ranking);
        }
    close(folder);
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
        cmocka_unit_test(nothing_is_gathered_once_some_was_written),
        cmocka_unit_test(ranking_keeps_the_first_of_the_order),
        cmocka_unit_test(integer_keys_are_ordered_as_integers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
