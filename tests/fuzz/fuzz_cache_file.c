/* fuzz_cache_file.c - any bytes as the records of a file of `cache`, with the checksums made right:
 * of a file that is taken each element lies in it, and the batches add up to its elements. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/crc32c.h"
#include "core/must.h"
#include "source/rows/cache_store.h"

static char cache_folder[64];
static int file = -1;

static void
set_up(void)
{
    snprintf(cache_folder, sizeof cache_folder, "/tmp/fuzz-cache-file-XXXXXX");
    must(mkdtemp(cache_folder) != NULL);
    file = memfd_create("cache", MFD_CLOEXEC);
    must(file >= 0);
}

static void
put(const void *bytes, size_t count)
{
    must(count == 0 || write(file, bytes, count) == (ssize_t)count);
}

static void
put_record(const uint8_t *data, size_t bytes)
{
    uint64_t length = bytes;
    uint32_t length_sum = tnd_crc32c_mask(tnd_crc32c(0, &length, sizeof length));
    uint32_t sum = tnd_crc32c_mask(tnd_crc32c(0, data, bytes));

    put(&length, sizeof length);
    put(&length_sum, sizeof length_sum);
    put(data, bytes);
    put(&sum, sizeof sum);
}

/* Each record is two bytes of length and its data; what does not make one follows as it is. */
static void
write_records(const uint8_t *data, size_t bytes)
{
    must(ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0);
    while (bytes >= 2) {
        size_t count = data[0] | (size_t)data[1] << 8;

        if (count > bytes - 2)
            break;
        put_record(data + 2, count);
        data += 2 + count;
        bytes -= 2 + count;
    }
    put(data, bytes > 0 ? bytes - 1 : 0);
}

static void
walk(const struct cache_rows *rows)
{
    struct record_reader reader;
    uint64_t words[128];
    size_t count;

    if (rows->stretch_count > 0)
        must(rows->stretches[rows->stretch_count - 1].batches == rows->row_count);
    must(rows->row_count == rows->list->count - 2);
    if (rows->row_count == 0 || cache_rows_seek(rows, 0, &reader) != TUNDISH_OK)
        return;
    while (reader.left > 0 && record_reader_next(&reader, 0, words, 64, &count))
        for (size_t i = 0; i < count; i++)
            must(words[2 * i] <= rows->list->end_limit &&
                 words[2 * i + 1] <= rows->list->end_limit - words[2 * i]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct source_files_options options = { .cache_folder = cache_folder };
    struct source_files *files;
    struct cache_key key = { .fingerprint = 0x3030303030303030 };
    struct cache_rows rows = { 0 };
    bool is_found = false;
    char path[32];

    if (file < 0)
        set_up();
    write_records(data, bytes);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    key.name = path;
    must(source_files_open(&options, &files) == TUNDISH_OK);
    if (cache_rows_open(files, &key, NULL, &rows, &is_found) == TUNDISH_OK && is_found) {
        walk(&rows);
        cache_rows_close(&rows);
    }
    source_files_close(files);
    return 0;
}
