/* test_portable.c - elements as bytes come back as they were, and damaged ones are refused. */
#include "batch/portable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "order/ops.h"
#include "order/run.h"
#include "source/source.h"
#include "unit/test_file.h"

/* A batch of two batches of rows of two words, beside an ordinal. */
enum { WIDTH = 2, RUN_WORDS = 1 };

static uint64_t
batch_of(uint64_t first, uint64_t count)
{
    uint64_t words[64];

    for (uint64_t i = 0; i < 2 * count; i++)
        words[i] = first + i;
    return run_word(run_new(words, count, 2, 0));
}

static void
make_element(uint64_t element[WIDTH])
{
    const uint64_t batches[2] = { batch_of(100, 3), batch_of(200, 2) };

    element[0] = run_word(run_new(batches, 2, 1, 1));
    element[1] = 7;
}

/* A run's rows, with those of the batch that it is an empty slice of. */
static void
print_run(const struct run *run, char *text, size_t room)
{
    snprintf(text + strlen(text), room - strlen(text), "%s", run->in_pieces ? "<" : "[");
    for (uint64_t i = 0; i < run->element_count; i++)
        for (uint32_t w = 0; w < run->width; w++) {
            uint64_t word = run->words[i * run->width + w];

            if ((run->run_words >> w & 1) == 0)
                snprintf(text + strlen(text), room - strlen(text), " %llu",
                         (unsigned long long)word);
            else if (word != 0)
                print_run(run_of_word(word), text, room);
            else
                snprintf(text + strlen(text), room - strlen(text), " none");
        }
    snprintf(text + strlen(text), room - strlen(text), run->in_pieces ? ">" : "]");
    if (run->row_count == 0 && run->parent != NULL) {
        snprintf(text + strlen(text), room - strlen(text), " of ");
        print_run(run->parent, text, room);
    }
}

static void
assert_comes_back(const uint64_t element[WIDTH], const char *expected)
{
    const struct portable_elements elements = { element, 1, WIDTH, RUN_WORDS };
    struct portable_bytes bytes = { 0 };
    uint64_t again[WIDTH];
    struct byte_view from;
    char text[512] = "";

    portable_write(&elements, &bytes);
    from = (struct byte_view){ bytes.bytes, bytes.used };
    assert_int_equal(portable_read(&from, 1, WIDTH, RUN_WORDS, again), TUNDISH_OK);
    assert_int_equal(from.size, 0);
    print_run(run_of_word(again[0]), text, sizeof text);
    assert_string_equal(text, expected);
    assert_int_equal(again[1], element[1]);
    run_words_release(again, 1, WIDTH, RUN_WORDS);
    for (size_t left = 0; left < bytes.used; left++) {
        uint8_t *cut = malloc(left + 1); /* so that a sanitizer sees its end */

        memcpy(cut, bytes.bytes, left);
        from = (struct byte_view){ cut, left };
        assert_int_equal(portable_read(&from, 1, WIDTH, RUN_WORDS, again), TUNDISH_E_CORRUPT);
        free(cut);
    }
    free(bytes.bytes);
}

/* Which rows were repeated is told, of a batch and of a slice. */
static void
repeated_rows_come_back_as_such(void **state)
{
    struct run *batch = run_of_word(batch_of(100, 3)), *filled = run_fill(batch, batch, 5);
    struct run *runs[2] = { filled, run_slice(filled, 2, 4) };

    (void)state;
    assert_int_equal(filled->row_count, 8);
    for (int i = 0; i < 2; i++) {
        uint64_t word = run_word(runs[i]), again;
        const struct portable_elements elements = { &word, 1, 1, 1 };
        struct portable_bytes bytes = { 0 };
        struct byte_view from;

        portable_write(&elements, &bytes);
        from = (struct byte_view){ bytes.bytes, bytes.used };
        assert_int_equal(portable_read(&from, 1, 1, 1, &again), TUNDISH_OK);
        assert_int_equal(run_of_word(again)->row_count, i == 0 ? 8 : 4);
        assert_int_equal(run_of_word(again)->repeated, i == 0 ? 5 : 3);
        run_release(run_of_word(again));
        run_release(runs[i]);
        free(bytes.bytes);
    }
    run_release(batch);
}

/* Every run that is made is given up, also by what fails half-way. */
static _Atomic int64_t living;

static int
count_runs(void **state)
{
    (void)state;
    atomic_store(&living, 0);
    run_count_living(&living);
    return 0;
}

static int
see_that_none_is_left(void **state)
{
    (void)state;
    run_count_living(NULL);
    return atomic_load(&living) == 0 ? 0 : -1;
}

static void
batches_of_batches_come_back(void **state)
{
    uint64_t element[WIDTH];

    (void)state;
    make_element(element);
    assert_comes_back(element, "[[ 100 101 102 103 104 105][ 200 201 202 203]]");
    run_words_release(element, 1, WIDTH, RUN_WORDS);
}

static void
a_slice_comes_without_the_rest_of_its_batch(void **state)
{
    struct run *batch = run_of_word(batch_of(100, 4));
    uint64_t element[WIDTH] = { run_word(run_slice(batch, 1, 2)), 9 };

    (void)state;
    assert_comes_back(element, "[ 102 103 104 105]");
    run_release(run_of_word(element[0]));
    run_release(batch);
}

static void
an_empty_slice_knows_its_batch(void **state)
{
    struct run *batch = run_of_word(batch_of(100, 2));
    uint64_t element[WIDTH] = { run_word(run_slice(batch, 2, 0)), 9 };

    (void)state;
    assert_comes_back(element, "[] of [ 100 101 102 103]");
    run_release(run_of_word(element[0]));
    run_release(batch);
}

static tundish_status
add_word(void *user, const struct plan_node *source, uint64_t *words)
{
    (void)source;
    *(uint64_t *)user += words[0];
    return TUNDISH_OK;
}

/* Another thread may be filling the rest. */
static void
only_rows_of_a_slice_are_visited(void **state)
{
    struct plan_node rows = { .width = 2, .source = &(struct source_ops){ 0 } };
    struct plan_node *inputs[] = { &rows };
    struct plan_node batches = { .width = 1,
                                 .run_words = 1,
                                 .inputs = inputs,
                                 .input_count = 1,
                                 .order = &(struct order_ops){ .form = ORDER_BATCHES } };
    uint64_t sum = 0;
    const struct portable_visit visit = { add_word, &sum };
    struct run *batch = run_of_word(batch_of(100, 4));
    uint64_t words[] = { run_word(run_slice(batch, 1, 2)), run_word(run_slice(batch, 2, 0)) };

    (void)state;
    assert_int_equal(portable_visit(&visit, &batches, &words[0], 1, 1), TUNDISH_OK);
    assert_int_equal(sum, 102 + 104);
    assert_int_equal(portable_visit(&visit, &batches, &words[1], 1, 1), TUNDISH_OK);
    assert_int_equal(sum, 102 + 104 + 100 + 102 + 104 + 106);
    run_words_release(words, 2, 1, 1);
    run_release(batch);
}

static void
pieces_of_several_batches_come_back(void **state)
{
    const uint64_t pieces[2] = { batch_of(100, 1), batch_of(200, 2) };
    struct run *joined = run_join(pieces, 2, 1, 1, 3);
    uint64_t element[WIDTH] = { run_word(joined), 9 };

    (void)state;
    assert_comes_back(element, "<[ 100 101][ 200 201 202 203]>");
    element[0] = run_word(run_slice(joined, 3, 0));
    assert_comes_back(element, "<[] of [ 100 101]> of <[ 100 101][ 200 201 202 203]>");
    run_release(run_of_word(element[0]));
    run_release(joined);
}

static void
a_word_without_a_run_comes_back(void **state)
{
    const uint64_t batches[2] = { 0, batch_of(100, 1) };
    uint64_t element[WIDTH] = { run_word(run_new(batches, 2, 1, 1)), 9 };

    (void)state;
    assert_comes_back(element, "[ none[ 100 101]]");
    run_words_release(element, 1, WIDTH, RUN_WORDS);
}

/* Each word of the message in turn is another: it is refused, or comes to something, and nothing is
 * read beyond its end. */
static void
damaged_elements_do_no_harm(void **state)
{
    static const uint64_t values[] = {
        0, 1, 2, 3, 64, 65, UINT64_C(1) << 32, UINT64_MAX / 8, UINT64_MAX
    };
    uint64_t element[WIDTH], again[WIDTH];
    struct portable_bytes bytes = { 0 };
    const struct portable_elements elements = { element, 1, WIDTH, RUN_WORDS };

    (void)state;
    make_element(element);
    portable_write(&elements, &bytes);
    for (size_t at = 0; at + 8 <= bytes.used; at += 4)
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            uint8_t *damaged = malloc(bytes.used);
            struct byte_view from = { damaged, bytes.used };

            memcpy(damaged, bytes.bytes, bytes.used);
            memcpy(damaged + at, &values[k], sizeof values[k]);
            if (portable_read(&from, 1, WIDTH, RUN_WORDS, again) == TUNDISH_OK)
                run_words_release(again, 1, WIDTH, RUN_WORDS);
            free(damaged);
        }
    free(bytes.bytes);
    run_words_release(element, 1, WIDTH, RUN_WORDS);
}

#define COUNTED(test) cmocka_unit_test_setup_teardown(test, count_runs, see_that_none_is_left)

TEST_FILE(test_portable)
{
    const struct CMUnitTest tests[] = {
        COUNTED(repeated_rows_come_back_as_such),
        COUNTED(batches_of_batches_come_back),
        COUNTED(a_slice_comes_without_the_rest_of_its_batch),
        COUNTED(an_empty_slice_knows_its_batch),
        COUNTED(only_rows_of_a_slice_are_visited),
        COUNTED(pieces_of_several_batches_come_back),
        COUNTED(a_word_without_a_run_comes_back),
        COUNTED(damaged_elements_do_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
