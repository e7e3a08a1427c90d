/* bench_parquet.c - what decoding the columns of Parquet files takes, in one thread and without
 * making rows of them: bench_parquet FILE ... A line for each file, the least CPU time of some
 * passes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/must.h"
#include "source/parquet/bits.h"
#include "source/parquet/column.h"
#include "source/parquet/file.h"

enum { PASSES = 5 };

struct leaves {
    uint32_t *numbers;
};

static tundish_status
choose_all(void *context, const struct parquet_schema *schema, const uint32_t **ret_leaves,
           uint32_t *ret_count)
{
    struct leaves *leaves = context;

    leaves->numbers = tnd_zalloc(schema->count + 1, sizeof *leaves->numbers);
    for (uint32_t i = 0; i < schema->count; i++)
        leaves->numbers[i] = i;
    *ret_leaves = leaves->numbers;
    *ret_count = schema->count;
    return TUNDISH_OK;
}

static void
decode_chunk(int descriptor, const struct parquet_footer *footer, uint32_t group, uint32_t leaf)
{
    static uint8_t *bytes; /* kept, as a library's own allocator keeps memory */
    static uint64_t room;
    struct parquet_chunk *chunk = &footer->chunks[(size_t)group * footer->wanted_count + leaf];
    struct parquet_decode what = { .leaf = &footer->schema.leaves[leaf],
                                   .chunk = chunk,
                                   .row_count = footer->groups[group].row_count,
                                   .bytes_max = UINT64_C(1) << 32 };
    struct parquet_column column;

    if (room < chunk->bytes) {
        room = chunk->bytes;
        bytes = tnd_realloc(bytes, room + PARQUET_SLACK, 1);
    }
    must(pread(descriptor, bytes, chunk->bytes, (off_t)chunk->offset) == (ssize_t)chunk->bytes);
    must(parquet_column_decode(&what, (struct byte_view){ bytes, chunk->bytes }, &column) ==
         TUNDISH_OK);
    parquet_column_close(&column);
}

static double
cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void
measure(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    struct stat about;
    struct leaves leaves = { 0 };
    struct parquet_choice choice = { .choose = choose_all, .context = &leaves };
    struct parquet_input input = { .read = parquet_read_descriptor, .context = &descriptor };
    struct parquet_footer footer = { 0 };
    double least = 0;

    must(descriptor >= 0 && fstat(descriptor, &about) == 0);
    input.file_bytes = (uint64_t)about.st_size;
    must(parquet_footer_load(&input, &choice, &footer) == TUNDISH_OK);
    for (int pass = 0; pass < PASSES; pass++) {
        double begin = cpu_s(), taken;

        for (uint32_t group = 0; group < footer.group_count; group++)
            for (uint32_t leaf = 0; leaf < footer.wanted_count; leaf++)
                decode_chunk(descriptor, &footer, group, leaf);
        taken = cpu_s() - begin;
        least = pass == 0 || taken < least ? taken : least;
    }
    printf("{\"cpu_s\": %.6f}\n", least);
    parquet_footer_close(&footer);
    free(leaves.numbers);
    close(descriptor);
}

int
main(int count, char **arguments)
{
    for (int i = 1; i < count; i++)
        measure(arguments[i]);
    return 0;
}
