/* test_fetch.c - rows wanted in any order come as they were asked for, neighbours in one read. */
#include "source_fixture.h"

#include "source/files/fetch.h"
#include "source/files/files_private.h"
#include "source/scan/scan.h"
#include "unit/test_file.h"

enum { FILES = 3, FILE_BYTES = 70000, ROW_BYTES = 100, FILE_ROWS = FILE_BYTES / ROW_BYTES };
enum { ROWS = FILES * FILE_ROWS };

/* Byte i of a file. */
static uint8_t
byte_at(uint32_t file, uint64_t i)
{
    return (uint8_t)(i * 2654435761U >> 13 ^ i >> 8 ^ file * 97);
}

struct reading {
    struct folder folder;
    struct source_files *files;
    struct source_file *of[FILES];
    struct frame output;
    uint64_t words[2 * ROWS * 2]; /* each row twice */
    struct byte_view views[2 * ROWS];
};

static void
open_files(struct reading *reading)
{
    const struct record_format format = { .scanner = &scanner_fixed_length_record,
                                          .numbers = { 1 } };
    struct source_files_options options = { .root = reading->folder.path,
                                            .cache_folder = reading->folder.cache };
    const char *const names[FILES] = { "a", "b", "c" };

    assert_int_equal(source_files_open(&options, &reading->files), TUNDISH_OK);
    for (uint32_t f = 0; f < FILES; f++) {
        static uint8_t data[FILE_BYTES];
        const struct record_list *list;

        for (uint64_t i = 0; i < FILE_BYTES; i++)
            data[i] = byte_at(f, i);
        put_file(&reading->folder, names[f], data, FILE_BYTES);
        reading->of[f] = files_enter(reading->files, names[f], 1, &format);
        assert_int_equal(scan_complete(reading->of[f], NULL, &list), TUNDISH_OK);
    }
}

/* Row `row` of all files together is the one at this place. */
static uint32_t
row_at(uint32_t place)
{
    return (uint32_t)((uint64_t)place * 1009 % ROWS); /* a prime: each row once */
}

static void
ask(struct reading *reading, uint32_t place, uint32_t row)
{
    const struct source_file *file = reading->of[row / FILE_ROWS];

    reading->words[2 * place] = (uint64_t)(row % FILE_ROWS) * ROW_BYTES;
    reading->words[2 * place + 1] = reference_high(file) | ROW_BYTES;
}

static uint64_t
fetch(struct reading *reading, int64_t count)
{
    const struct source_read read = {
        .files = reading->files,
        .words = reading->words,
        .stride = 2,
        .count = count,
        .output = &reading->output,
    };
    uint64_t before = atomic_load(&files_services(reading->files)->counters.bytes_read);

    scratch_reset(reading->output.scratch);
    assert_int_equal(fetch_rows(&read, 0, reading->views), TUNDISH_OK);
    return atomic_load(&files_services(reading->files)->counters.bytes_read) - before;
}

static void
assert_is_row(const struct byte_view *view, uint32_t row)
{
    assert_int_equal(view->size, ROW_BYTES);
    for (uint32_t i = 0; i < ROW_BYTES; i++)
        assert_int_equal(view->data[i],
                         byte_at(row / FILE_ROWS, (uint64_t)(row % FILE_ROWS) * ROW_BYTES + i));
}

static void
setup(struct reading *reading)
{
    memset(reading, 0, sizeof *reading);
    folder_open(&reading->folder);
    open_files(reading);
    reading->output.scratch = scratch_open();
}

static void
teardown(struct reading *reading)
{
    scratch_close(reading->output.scratch);
    source_files_close(reading->files);
    folder_close(&reading->folder);
}

static struct reading reading;

static void
scattered_rows_of_several_files_are_those_asked_for(void **state)
{
    (void)state;
    setup(&reading);
    for (uint32_t i = 0; i < ROWS; i++)
        ask(&reading, i, row_at(i));
    fetch(&reading, ROWS);
    for (uint32_t i = 0; i < ROWS; i++)
        assert_is_row(&reading.views[i], row_at(i));
    teardown(&reading);
}

/* Only where equal rows come to lie side by side are they read once. */
static void
rows_asked_for_twice_are_read_once(void **state)
{
    (void)state;
    setup(&reading);
    for (uint32_t i = 0; i < 2 * ROWS; i++)
        ask(&reading, i, row_at(i % ROWS));
    assert_int_equal(fetch(&reading, 2 * ROWS), FILES * FILE_BYTES);
    for (uint32_t i = 0; i < 2 * ROWS; i++)
        assert_is_row(&reading.views[i], row_at(i % ROWS));
    teardown(&reading);
}

/* Of each file windows of 40 rows from every third one on, also the last of them first. */
static void
rows_of_windows_are_read_once(void **state)
{
    enum { WINDOW = 40, SHIFT = 3, WINDOWS = 20, OF_FILE = WINDOWS * WINDOW };

    (void)state;
    setup(&reading);
    for (int backwards = 0; backwards < 2; backwards++) {
        uint32_t rows[FILES * OF_FILE];

        for (uint32_t i = 0; i < FILES * OF_FILE; i++) {
            uint32_t window = i % OF_FILE / WINDOW;

            rows[i] = (FILES - 1 - i / OF_FILE) * FILE_ROWS + i % WINDOW +
                      SHIFT * (backwards ? WINDOWS - 1 - window : window);
            ask(&reading, i, rows[i]);
        }
        assert_int_equal(fetch(&reading, FILES * OF_FILE),
                         FILES * ROW_BYTES * ((WINDOWS - 1) * SHIFT + WINDOW));
        for (uint32_t i = 0; i < FILES * OF_FILE; i++)
            assert_is_row(&reading.views[i], rows[i]);
    }
    teardown(&reading);
}

/* Rows that lie one after the other, but for one: another one, the same of another file, the one
 * before once more, or none. */
static void
a_row_out_of_line_is_the_one_asked_for(void **state)
{
    enum { FIRST = 10, COUNT = 190 };
    static const uint32_t last[] = { 600, FIRST + COUNT - 1 + FILE_ROWS, FIRST + COUNT - 2,
                                     FIRST + COUNT - 1 };

    (void)state;
    setup(&reading);
    for (size_t k = 0; k < sizeof last / sizeof *last; k++) {
        uint64_t rows = last[k] == FIRST + COUNT - 2 ? COUNT - 1 : COUNT;

        for (uint32_t i = 0; i < COUNT; i++)
            ask(&reading, i, i + 1 < COUNT ? FIRST + i : last[k]);
        assert_int_equal(fetch(&reading, COUNT), rows * ROW_BYTES);
        for (uint32_t i = 0; i < COUNT; i++)
            assert_is_row(&reading.views[i], i + 1 < COUNT ? FIRST + i : last[k]);
    }
    teardown(&reading);
}

static void
one_row_and_none_are_read(void **state)
{
    (void)state;
    setup(&reading);
    ask(&reading, 0, ROWS - 1);
    assert_int_equal(fetch(&reading, 1), ROW_BYTES);
    assert_is_row(&reading.views[0], ROWS - 1);
    assert_int_equal(fetch(&reading, 0), 0);
    teardown(&reading);
}

TEST_FILE(test_fetch)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scattered_rows_of_several_files_are_those_asked_for),
        cmocka_unit_test(rows_asked_for_twice_are_read_once),
        cmocka_unit_test(rows_of_windows_are_read_once),
        cmocka_unit_test(a_row_out_of_line_is_the_one_asked_for),
        cmocka_unit_test(one_row_and_none_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
