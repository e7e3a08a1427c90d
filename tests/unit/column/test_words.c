/* test_words.c - integers of texts out of dictionaries: each word's is made once. */
#include "unit/test_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "column/words.h"

enum { TEXTS = 700 };

static size_t made; /* texts that length_of was asked for */

/* A text's length; of one of five letters a number too large to be kept, of one of seven none. */
static int64_t
length_as(const struct byte_view *text, int64_t sign)
{
    int64_t length = text->size == 5 ? INT64_C(5) << 40 : (int64_t)text->size;

    return text->size == 7 ? INT64_MIN : sign * length;
}

static void
length_of(const void *context, const struct byte_view *texts, size_t count, int64_t *ret_values)
{
    int64_t sign = *(const int *)context;

    assert_true(count <= WORDS_BLOCK);
    made += count;
    for (size_t i = 0; i < count; i++)
        ret_values[i] = length_as(&texts[i], sign);
}

static const char letters[] = "aaaaaaaa";

/* Texts of 0 to 7 letters, numbered so in two dictionaries; every tenth is in neither. */
static void
make_texts(struct byte_view *texts, uint32_t *numbers)
{
    for (uint32_t i = 0; i < TEXTS; i++) {
        texts[i] = (struct byte_view){ (const uint8_t *)letters, i % 8 };
        numbers[i] = i % 10 == 9 ? WORDS_NONE : (uint32_t)(i % 3 == 1) << WORDS_SHIFT | i % 8;
    }
}

static void
assert_lengths(const struct byte_view *texts, int64_t count, int sign, const int64_t *values)
{
    for (int64_t i = 0; i < count; i++)
        assert_true(values[i] == length_as(&texts[i], sign));
}

static void
each_word_is_made_once_for_each_key(void **state)
{
    static const int plus = 1, minus = -1;
    const struct words_maker maker = { .key = &plus, .make = length_of, .context = &plus };
    const struct words_maker other = { .key = &minus, .make = length_of, .context = &minus };
    struct words first = { .count = 8 }, second = { .count = 8 };
    uint64_t room[8]; /* for the first one's first memo */
    struct scratch *scratch = scratch_open();
    struct byte_view texts[TEXTS];
    uint32_t numbers[TEXTS];
    int64_t values[TEXTS];
    struct words *dictionaries[] = { &first, &second };
    struct words_note note = { .texts = texts,
                               .count = TEXTS,
                               .numbers = numbers,
                               .dictionary_count = 2,
                               .dictionaries = dictionaries };
    size_t before;

    (void)state;
    make_texts(texts, numbers);
    assert_true(words_memo_bytes(8) <= sizeof room);
    words_give_room(&first, room);
    assert_false(words_make(scratch, &maker, texts, TEXTS, values));
    for (int task = 0; task < 2; task++) {
        words_tell(scratch, &note);
        before = made;
        assert_true(words_make(scratch, &maker, texts, TEXTS, values));
        assert_lengths(texts, TEXTS, 1, values);
        /* Again are made: those in no dictionary, and those of which nothing is kept. */
        if (task == 1)
            assert_int_equal(made - before, 70 + 70 + 70);
        else
            assert_true(made - before < 500);
        assert_true(words_make(scratch, &other, texts, TEXTS, values));
        assert_lengths(texts, TEXTS, -1, values);
        assert_true(words_make(scratch, &maker, texts + 100, 50, values));
        assert_lengths(texts + 100, 50, 1, values);
        assert_false(words_make(scratch, &maker, texts + 100, TEXTS, values));
        scratch_reset(scratch);
        assert_false(words_make(scratch, &maker, texts, TEXTS, values));
    }
    scratch_close(scratch);
    words_close(&first);
    words_close(&second);
}

/* Words 3, 4 and 6 of one dictionary are all of another: of them nothing is made again. */
static void
a_smaller_dictionary_has_what_was_made_of_its_words(void **state)
{
    static const int plus = 1;
    const struct words_maker maker = { .key = &plus, .make = length_of, .context = &plus };
    const uint32_t carried[8] = { [3] = 1, [4] = 2, [6] = 3 };
    struct words first = { .count = 8 }, fewer = { .count = 3 };
    struct words *dictionary = &first;
    struct scratch *scratch = scratch_open();
    struct byte_view texts[8];
    uint32_t numbers[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    int64_t values[8];
    struct words_note note = { .texts = texts,
                               .count = 8,
                               .numbers = numbers,
                               .dictionary_count = 1,
                               .dictionaries = &dictionary };
    size_t before;

    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        texts[i] = (struct byte_view){ (const uint8_t *)letters, i };
    words_tell(scratch, &note);
    assert_true(words_make(scratch, &maker, texts, 8, values));
    scratch_reset(scratch);
    words_carry(&first, &fewer, carried);
    words_close(&first);
    dictionary = &fewer;
    for (uint32_t i = 0; i < 8; i++)
        numbers[i] = carried[i] == 0 ? WORDS_NONE : carried[i] - 1;
    words_tell(scratch, &note);
    before = made;
    assert_true(words_make(scratch, &maker, texts, 8, values));
    assert_lengths(texts, 8, 1, values);
    assert_int_equal(made - before, 5);
    scratch_close(scratch);
    words_close(&fewer);
}

static struct byte_view
text_of_number(const struct words *words, uint32_t number)
{
    (void)words;
    return (struct byte_view){ (const uint8_t *)letters, number };
}

static void
texts_that_are_left_out_are_made_where_they_are_needed(void **state)
{
    static const int plus = 1;
    const struct words_maker maker = { .key = &plus, .make = length_of, .context = &plus };
    struct words first = { .count = 8, .text = text_of_number };
    struct words second = { .count = 8, .text = text_of_number };
    struct scratch *scratch = scratch_open();
    struct byte_view texts[TEXTS], whole[TEXTS];
    uint32_t numbers[TEXTS];
    int64_t values[TEXTS];
    struct words *dictionaries[] = { &first, &second };
    const struct words_note note = { .texts = texts,
                                     .count = TEXTS,
                                     .lacks_texts = true,
                                     .numbers = numbers,
                                     .dictionary_count = 2,
                                     .dictionaries = dictionaries };

    (void)state;
    make_texts(whole, numbers);
    for (int i = 0; i < TEXTS; i++)
        texts[i] = numbers[i] == WORDS_NONE ? whole[i] : (struct byte_view){ NULL, 99 };
    words_fill(scratch, texts, TEXTS, 1);
    assert_int_equal(texts[0].size, 99);
    words_tell(scratch, &note);
    assert_true(words_make(scratch, &maker, texts + 3, TEXTS - 3, values));
    assert_lengths(whole + 3, TEXTS - 3, 1, values);
    words_fill(scratch, texts + 4, 30, 8);
    for (int i = 0; i < 40; i++)
        if (numbers[i] != WORDS_NONE)
            assert_int_equal(texts[i].size, i % 8 == 4 && i < 34 ? whole[i].size : 99);
    words_fill(scratch, texts, TEXTS, 1);
    for (int i = 0; i < TEXTS; i++) {
        assert_ptr_equal(texts[i].data, whole[i].data);
        assert_int_equal(texts[i].size, whole[i].size);
    }
    scratch_close(scratch);
    words_close(&first);
    words_close(&second);
}

/* Each of a text's length; those of five letters and of seven are not to be kept. */
static void
all_words_are_made_before_texts_ask(void **state)
{
    static const int plus = 1;
    const struct words_maker maker = { .key = &plus, .make = length_of, .context = &plus };
    const int32_t lengths[8] = { 0, 1, 2, 3, 4, WORDS_UNMADE, 6, WORDS_UNMADE };
    enum { MANY = WORDS_BLOCK + 20 };
    struct words few = { .count = 8, .text = text_of_number }, *dictionary = &few;
    struct words many = { .count = MANY, .text = text_of_number };
    struct scratch *scratch = scratch_open();
    struct byte_view texts[TEXTS];
    uint32_t numbers[TEXTS];
    int32_t made_ahead[MANY];
    int64_t values[TEXTS];
    const struct words_note note = { .texts = texts,
                                     .count = TEXTS,
                                     .numbers = numbers,
                                     .dictionary_count = 1,
                                     .dictionaries = &dictionary };
    size_t before;

    (void)state;
    words_make_all(&few, &maker, made_ahead);
    assert_memory_equal(made_ahead, lengths, sizeof lengths);
    make_texts(texts, numbers);
    for (int i = 0; i < TEXTS; i++)
        numbers[i] = (uint32_t)i % 8;
    words_tell(scratch, &note);
    before = made;
    assert_true(words_make(scratch, &maker, texts, TEXTS, values));
    assert_lengths(texts, TEXTS, 1, values);
    assert_int_equal(made - before, 2 * (TEXTS / 8));
    words_make_all(&many, &maker, made_ahead);
    assert_int_equal(made_ahead[MANY - 1], MANY - 1);
    scratch_close(scratch);
    words_close(&few);
    words_close(&many);
}

/* Integers that came with the texts are taken as they are, by their own maker. */
static void
integers_that_come_with_texts_are_not_made_again(void **state)
{
    static const int plus = 1, minus = -1;
    const struct words_maker maker = { .key = &plus, .make = length_of, .context = &plus };
    const struct words_maker other = { .key = &minus, .make = length_of, .context = &minus };
    struct words words = { .count = 8 }, *dictionary = &words;
    struct scratch *scratch = scratch_open();
    struct byte_view texts[TEXTS];
    uint32_t numbers[TEXTS];
    int32_t came[TEXTS];
    int64_t values[TEXTS];
    const struct words_note note = { .texts = texts,
                                     .count = TEXTS,
                                     .numbers = numbers,
                                     .dictionary_count = 1,
                                     .dictionaries = &dictionary,
                                     .key = &plus,
                                     .made = came };
    size_t before;

    (void)state;
    make_texts(texts, numbers);
    for (int i = 0; i < TEXTS; i++) {
        numbers[i] = (uint32_t)i % 8;
        came[i] = i == 650 ? WORDS_UNMADE : (int32_t)texts[i].size;
    }
    words_tell(scratch, &note);
    for (int i = 0; i < TEXTS; i++)
        if (texts[i].size == 5 || texts[i].size == 7)
            came[i] = WORDS_UNMADE;
    before = made;
    assert_true(words_make(scratch, &maker, texts + 8, TEXTS - 8, values));
    assert_lengths(texts + 8, TEXTS - 8, 1, values);
    assert_true(made - before > 0);
    for (int i = 0; i < TEXTS; i++)
        came[i] = i;
    before = made;
    assert_true(words_make(scratch, &maker, texts + 8, TEXTS - 8, values));
    for (int i = 8; i < TEXTS; i++)
        assert_int_equal(values[i - 8], i);
    assert_int_equal(made, before);
    assert_true(words_make(scratch, &other, texts, TEXTS, values));
    assert_lengths(texts, TEXTS, -1, values);
    scratch_close(scratch);
    words_close(&words);
}

static void
let_go(void *count)
{
    ++*(int *)count;
}

static void
what_is_kept_for_a_task_is_let_go_with_it(void **state)
{
    struct scratch *scratch = scratch_open();
    int count = 0;

    (void)state;
    scratch_keep(scratch, let_go, &count);
    scratch_keep(scratch, let_go, &count);
    assert_int_equal(count, 0);
    scratch_reset(scratch);
    assert_int_equal(count, 2);
    scratch_reset(scratch);
    assert_int_equal(count, 2);
    scratch_keep(scratch, let_go, &count);
    scratch_close(scratch);
    assert_int_equal(count, 3);
}

TEST_FILE(test_words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_is_made_once_for_each_key),
        cmocka_unit_test(a_smaller_dictionary_has_what_was_made_of_its_words),
        cmocka_unit_test(texts_that_are_left_out_are_made_where_they_are_needed),
        cmocka_unit_test(all_words_are_made_before_texts_ask),
        cmocka_unit_test(integers_that_come_with_texts_are_not_made_again),
        cmocka_unit_test(what_is_kept_for_a_task_is_let_go_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
