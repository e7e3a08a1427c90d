/* fuzz_tfrecord.c - any bytes as a TFRecord file: scanned, read, checked; plain and packed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/must.h"
#include "source/files/files_private.h"
#include "source/scan/scan.h"
#include "source/source.h"

static char cache_folder[64];
static int file = -1;

static void
set_up(void)
{
    snprintf(cache_folder, sizeof cache_folder, "/tmp/fuzz-tfrecord-XXXXXX");
    must(mkdtemp(cache_folder) != NULL);
    file = memfd_create("records", MFD_CLOEXEC);
    must(file >= 0);
}

static void
read_rows(struct source_files *files, const uint64_t *words, size_t count, struct scratch *scratch)
{
    struct column_spec spec = { .name = "value", .dtype = TUNDISH_STRING };
    struct schema schema = { .count = 1, .columns = &spec };
    struct column column = { 0 };
    struct frame_errors errors = { 0 };
    struct frame frame = { .count = (int64_t)count,
                           .column_count = 1,
                           .columns = &column,
                           .schema = &schema,
                           .scratch = scratch,
                           .errors = &errors };
    struct source_read read = { .files = files,
                                .words = words,
                                .stride = SOURCE_WIDTH,
                                .count = (int64_t)count,
                                .output = &frame };

    scratch_reset(scratch);
    must(source_find("tfrecord")->read(NULL, &read) == TUNDISH_OK);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct record_format format = { .scanner = &scanner_tfrecord };
    struct source_files_options options = { .cache_folder = cache_folder };
    struct source_files *files;
    struct scan_cursor cursor;
    struct scratch *scratch;
    uint64_t words[64 * SOURCE_WIDTH];
    char path[32];
    size_t count;

    if (bytes == 0)
        return 0;
    if (file < 0)
        set_up();
    must(ftruncate(file, 0) == 0);
    must(pwrite(file, data + 1, bytes - 1, 0) == (ssize_t)(bytes - 1));
    format.packing = data[0] % 3 == 0 ? PACKING_GZIP : PACKING_NONE;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    must(source_files_open(&options, &files) == TUNDISH_OK);
    scratch = scratch_open();
    scan_cursor_open(&cursor, files_enter(files, path, strlen(path), &format), NULL);
    while (scan_cursor_next(&cursor, words, 64, &count) == ORDER_OK)
        read_rows(files, words, count, scratch);
    scan_cursor_close(&cursor);
    scratch_close(scratch);
    source_files_close(files);
    return 0;
}
