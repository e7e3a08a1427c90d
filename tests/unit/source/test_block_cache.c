/* test_block_cache.c - what comes from the cache is what is in the file. */
#include "source_fixture.h"

#include <pthread.h>

#include "source/files/block_cache.h"
#include "source/files/files_private.h"
#include "source/scan/scan.h"
#include "unit/test_file.h"

enum { FILE_BYTES = 5 << 20, READS = 20000, THREADS = 4 };

/* Byte i of the file. */
static uint8_t
byte_at(uint64_t i)
{
    return (uint8_t)(i * 2654435761U >> 11 ^ i >> 16);
}

struct reading {
    struct block_cache *cache;
    struct source_file *file;
    uint32_t seed;
    uint64_t served, wrong;
};

static void *
read_at_random(void *argument)
{
    struct reading *reading = argument;
    static _Thread_local uint8_t bytes[BLOCK_ROW_BYTES];

    for (int i = 0; i < READS; i++) {
        uint64_t offset, length;

        reading->seed = reading->seed * 1664525 + 1013904223;
        length = (reading->seed >> 20) % 500;
        reading->seed = reading->seed * 1664525 + 1013904223;
        offset = (reading->seed >> 3) % (FILE_BYTES - 500);
        if (!block_cache_read(reading->cache, reading->file, bytes, length, offset))
            continue;
        reading->served++;
        for (uint64_t k = 0; k < length; k++)
            reading->wrong += bytes[k] != byte_at(offset + k);
    }
    return NULL;
}

/* A file of bytes, opened so that its size is known. */
static struct source_file *
open_file(const struct folder *folder, struct source_files **ret_files)
{
    const struct record_format format = { .scanner = &scanner_fixed_length_record,
                                          .numbers = { 1 } };
    struct source_files_options options = { .root = folder->path, .cache_folder = folder->cache };
    uint8_t *data = tnd_alloc(FILE_BYTES);
    const struct record_list *list;
    struct source_file *file;

    for (uint64_t i = 0; i < FILE_BYTES; i++)
        data[i] = byte_at(i);
    put_file(folder, "a", data, FILE_BYTES);
    free(data);
    assert_int_equal(source_files_open(&options, ret_files), TUNDISH_OK);
    file = files_enter(*ret_files, "a", 1, &format);
    assert_int_equal(scan_complete(file, NULL, &list), TUNDISH_OK);
    return file;
}

/* Far more blocks than slots, so that slots are taken away under the readers' hands. */
static void
many_threads_read_right_bytes_while_slots_change_hands(void **state)
{
    struct folder folder;
    struct source_files *files;
    struct source_file *file;
    struct block_cache *cache = block_cache_open(1 << 20);
    struct reading readings[THREADS];
    pthread_t threads[THREADS];

    (void)state;
    folder_open(&folder);
    file = open_file(&folder, &files);
    for (uint32_t i = 0; i < THREADS; i++) {
        readings[i] = (struct reading){ .cache = cache, .file = file, .seed = i };
        assert_int_equal(pthread_create(&threads[i], NULL, read_at_random, &readings[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(readings[i].wrong, 0);
        assert_true(readings[i].served > 0);
    }
    block_cache_close(cache);
    source_files_close(files);
    folder_close(&folder);
}

/* All but the first dozen of a block, and those that go on into one that is not there yet. */
static void
a_cache_that_holds_the_file_serves_nearly_all_reads(void **state)
{
    struct folder folder;
    struct source_files *files;
    struct source_file *file;
    struct block_cache *cache = block_cache_open(64 << 20);
    struct reading reading;

    (void)state;
    folder_open(&folder);
    file = open_file(&folder, &files);
    reading = (struct reading){ .cache = cache, .file = file };
    (void)read_at_random(&reading);
    assert_int_equal(reading.wrong, 0);
    assert_true(reading.served <= READS);
    assert_true(reading.served >= READS - 2 * 12 * (FILE_BYTES / BLOCK_BYTES));
    block_cache_close(cache);
    source_files_close(files);
    folder_close(&folder);
}

/* Reads of one block each, of `bytes`, in turn through the file, again and again. */
static uint64_t
served_in_round(struct block_cache *cache, struct source_file *file, size_t bytes, uint64_t round)
{
    static uint8_t row[BLOCK_ROW_BYTES];
    uint64_t served = 0;

    for (uint64_t block = 0; block < FILE_BYTES / BLOCK_BYTES; block++)
        served += block_cache_read(cache, file, row, bytes, block * BLOCK_BYTES + round * bytes);
    return served;
}

static void
a_block_is_brought_when_it_has_been_asked_for_a_dozen_times(void **state)
{
    struct folder folder;
    struct source_files *files;
    struct source_file *file;
    struct block_cache *cache = block_cache_open(64 << 20);

    (void)state;
    folder_open(&folder);
    file = open_file(&folder, &files);
    for (uint64_t round = 0; round < 12; round++) /* some blocks are always brought, as samples */
        assert_true(served_in_round(cache, file, 60, round) < FILE_BYTES / BLOCK_BYTES / 2);
    (void)served_in_round(cache, file, 60, 12);
    assert_int_equal(served_in_round(cache, file, 60, 13), FILE_BYTES / BLOCK_BYTES);
    block_cache_close(cache);
    source_files_close(files);
    folder_close(&folder);
}

static void
blocks_of_large_rows_are_brought_at_once(void **state)
{
    struct folder folder;
    struct source_files *files;
    struct source_file *file;
    struct block_cache *cache = block_cache_open(64 << 20);

    (void)state;
    folder_open(&folder);
    file = open_file(&folder, &files);
    assert_int_equal(served_in_round(cache, file, 2000, 0), FILE_BYTES / BLOCK_BYTES);
    block_cache_close(cache);
    source_files_close(files);
    folder_close(&folder);
}

static void
bytes_behind_the_end_are_not_served(void **state)
{
    struct folder folder;
    struct source_files *files;
    struct source_file *file;
    struct block_cache *cache = block_cache_open(1 << 20);
    uint8_t bytes[100];

    (void)state;
    folder_open(&folder);
    file = open_file(&folder, &files);
    assert_false(block_cache_read(cache, file, bytes, 100, FILE_BYTES - 50));
    assert_false(block_cache_read(cache, file, bytes, 100, FILE_BYTES + (1 << 20)));
    assert_false(block_cache_read(cache, file, bytes, 100, UINT64_C(1) << 60));
    for (int i = 0; i < 100 && !block_cache_read(cache, file, bytes, 50, FILE_BYTES - 50); i++)
        assert_true(i < 50);
    assert_int_equal(bytes[49], byte_at(FILE_BYTES - 1));
    block_cache_close(cache);
    source_files_close(files);
    folder_close(&folder);
}

TEST_FILE(test_block_cache)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_read_right_bytes_while_slots_change_hands),
        cmocka_unit_test(a_cache_that_holds_the_file_serves_nearly_all_reads),
        cmocka_unit_test(a_block_is_brought_when_it_has_been_asked_for_a_dozen_times),
        cmocka_unit_test(blocks_of_large_rows_are_brought_at_once),
        cmocka_unit_test(bytes_behind_the_end_are_not_served),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
