/* test_parquet_spill.c - what is moved to a file is the same there, and goes with its last user. */
#include "unit/test_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/memory.h"
#include "source/parquet/bits.h"
#include "source/parquet/spill.h"
#include "source/parquet/tuples.h"

enum { ROWS = 1000, EACH = 8, TEXT_BYTES = ROWS * EACH + PARQUET_SLACK };

/* Text i is its number. */
static uint8_t *
make_texts(struct parquet_text *list)
{
    uint8_t *texts = tnd_zalloc(TEXT_BYTES, 1);

    for (uint32_t i = 0; i < ROWS; i++) {
        int bytes = snprintf((char *)texts + (size_t)i * EACH, EACH, "%u", i);

        list[i] = (struct parquet_text){ i * EACH, (uint32_t)bytes };
    }
    return texts;
}

static void
assert_text(const uint8_t *base, struct parquet_text text, uint32_t number)
{
    char expected[16];

    assert_int_equal(text.bytes, snprintf(expected, sizeof expected, "%u", number));
    assert_memory_equal(base + text.offset, expected, text.bytes);
}

/* Numbers and nulls, texts of a dictionary and others, and lists of two. */
static void
make_columns(struct parquet_column columns[4])
{
    struct parquet_words *words = tnd_zalloc(1, sizeof *words);
    struct parquet_text *values = tnd_alloc(ROWS * sizeof *values);
    int64_t *numbers = tnd_alloc(ROWS * sizeof *numbers);

    words->list = tnd_alloc(ROWS * sizeof *words->list);
    *words = (struct parquet_words){ .words = { .count = ROWS },
                                     .holds = 1,
                                     .list = words->list,
                                     .texts = make_texts(words->list),
                                     .text_bytes = TEXT_BYTES };
    columns[0] = (struct parquet_column){ .values = numbers, .nulls = tnd_zalloc(ROWS, 1) };
    columns[1] =
        (struct parquet_column){ .numbers = tnd_alloc(ROWS * sizeof(uint32_t)), .words = words };
    columns[2] = (struct parquet_column){ .values = values,
                                          .texts = make_texts(values),
                                          .text_bytes = TEXT_BYTES };
    columns[3] = (struct parquet_column){ .values = tnd_zalloc(ROWS, 2 * sizeof(float)),
                                          .splits = tnd_alloc((ROWS + 1) * sizeof(uint64_t)) };
    for (uint32_t i = 0; i < 4; i++) {
        columns[i].row_count = ROWS;
        columns[i].value_count = i < 3 ? ROWS : 2 * ROWS;
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        numbers[i] = 5 * (int64_t)i - 7;
        columns[0].nulls[i] = i % 3 == 0;
        columns[1].numbers[i] = ROWS - 1 - i;
        ((float *)columns[3].values)[2 * i + 1] = (float)i;
    }
    for (uint32_t i = 0; i <= ROWS; i++)
        columns[3].splits[i] = 2 * (uint64_t)i;
}

static void
assert_columns(const struct parquet_tuples *tuples, const struct parquet_column columns[4])
{
    for (uint32_t i = 0; i < ROWS; i++) {
        uint64_t word = parquet_tuple_value(tuples, &tuples->fields[1], i);
        uint64_t bits = parquet_tuple_value(tuples, &tuples->fields[2], i);
        struct parquet_text text;

        assert_int_equal((int64_t)parquet_tuple_value(tuples, &tuples->fields[0], i),
                         5 * (int64_t)i - 7);
        assert_int_equal(columns[0].nulls[i], i % 3 == 0);
        assert_text(columns[1].words->texts, columns[1].words->list[word], ROWS - 1 - i);
        memcpy(&text, &bits, sizeof text);
        assert_text(columns[2].texts, text, i);
        assert_int_equal(columns[3].splits[i + 1], 2 * i + 2);
        assert_true(((const float *)columns[3].values)[2 * i + 1] == (float)i);
    }
}

static const tundish_dtype dtypes[4] = { TUNDISH_INT64, TUNDISH_STRING, TUNDISH_STRING,
                                         TUNDISH_FLOAT32 };

/* Whoever holds a dictionary reads on. */
static void
all_that_columns_have_is_in_the_file(void **state)
{
    struct parquet_column columns[4];
    struct parquet_member members[4];
    struct parquet_words *before, *after;
    struct parquet_tuples *tuples;
    struct parquet_spill *spill;
    int folder = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint64_t bytes = 0;

    (void)state;
    make_columns(columns);
    for (uint32_t i = 0; i < 4; i++)
        members[i] = (struct parquet_member){ .column = &columns[i], .dtype = dtypes[i] };
    tuples = parquet_tuples_open(members, 4, ROWS);
    before = columns[1].words;
    parquet_words_hold(before);
    spill = parquet_spill_open(folder, tuples, members, 4, &bytes);
    assert_non_null(spill);
    assert_true(bytes > tuples->bytes + 2 * TEXT_BYTES + 2 * ROWS * sizeof(float));
    assert_columns(tuples, columns);
    assert_text(before->texts, before->list[9], 9);
    parquet_words_release(before);
    after = columns[1].words;
    parquet_words_hold(after);
    for (uint32_t i = 0; i < 4; i++)
        parquet_column_close(&columns[i]);
    parquet_tuples_close(tuples);
    parquet_spill_release(spill);
    assert_text(after->texts, after->list[9], 9);
    parquet_words_release(after);
    close(folder);
}

static void
assert_nothing_is_moved(int folder)
{
    struct parquet_column columns[4];
    struct parquet_member members[4];
    struct parquet_tuples *tuples;
    uint64_t bytes = 0;

    make_columns(columns);
    for (uint32_t i = 0; i < 4; i++)
        members[i] = (struct parquet_member){ .column = &columns[i], .dtype = dtypes[i] };
    tuples = parquet_tuples_open(members, 4, ROWS);
    assert_null(parquet_spill_open(folder, tuples, members, 4, &bytes));
    assert_int_equal(bytes, 0);
    assert_columns(tuples, columns);
    for (uint32_t i = 0; i < 4; i++)
        parquet_column_close(&columns[i]);
    parquet_tuples_close(tuples);
}

static void
nothing_is_moved_where_there_is_no_folder(void **state)
{
    (void)state;
    assert_nothing_is_moved(-1);
}

/* As on a full disk: a mapped page without a block would be a SIGBUS. */
static void
nothing_is_moved_where_a_file_has_no_room(void **state)
{
    int folder = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct rlimit before, little;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = (struct rlimit){ 4096, before.rlim_max };
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    assert_nothing_is_moved(folder);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    close(folder);
}

TEST_FILE(test_parquet_spill)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_columns_have_is_in_the_file),
        cmocka_unit_test(nothing_is_moved_where_there_is_no_folder),
        cmocka_unit_test(nothing_is_moved_where_a_file_has_no_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
