/* bench_transform.c - inference: rows through libtundish_transform, one at a time and in batches.
 *
 *     bench_transform PIPELINE ROOT RECORDS.tfrecord     prints one line of JSON
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tundish/tundish_transform.h>

enum { ROWS_MAX = 100000, BATCH = 1024 };

static double
now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void
check(tundish_status status)
{
    if (status == TUNDISH_OK)
        return;
    fprintf(stderr, "bench_transform: %s\n", tundish_transform_last_error());
    exit(1);
}

static size_t
read_records(const char *path, tundish_bytes *records)
{
    FILE *file = fopen(path, "rb");
    uint8_t head[12], tail[4];
    size_t count = 0;
    uint64_t bytes;

    if (file == NULL) {
        perror(path);
        exit(1);
    }
    while (count < ROWS_MAX && fread(head, 1, sizeof head, file) == sizeof head) {
        uint8_t *data;

        memcpy(&bytes, head, sizeof bytes);
        data = malloc(bytes);
        if (fread(data, 1, bytes, file) != bytes || fread(tail, 1, 4, file) != 4)
            break;
        records[count++] = (tundish_bytes){ data, bytes };
    }
    fclose(file);
    return count;
}

/* Seconds for all rows, `batch` at a time; the best of five. */
static double
measure(tundish_transformer *transformer, const tundish_bytes *records, size_t count, size_t batch)
{
    double best = 1e9;

    for (int pass = 0; pass < 5; pass++) {
        double begin = now_s(), took;

        for (size_t i = 0; i + batch <= count; i += batch)
            check(tundish_transform_records(transformer, records + i, batch));
        took = now_s() - begin;
        best = took < best ? took : best;
    }
    return best / (double)(count / batch * batch);
}

int
main(int argc, char **argv)
{
    static tundish_bytes records[ROWS_MAX];
    tundish_transform_options options = TUNDISH_TRANSFORM_OPTIONS_INIT;
    tundish_transform *transform;
    tundish_transformer *transformer;
    size_t count;

    if (argc != 4) {
        fprintf(stderr, "usage: bench_transform PIPELINE ROOT RECORDS.tfrecord\n");
        return 2;
    }
    options.root = argv[2];
    check(tundish_transform_open(argv[1], &options, &transform));
    check(tundish_transformer_open(transform, &transformer));
    count = read_records(argv[3], records);
    if (count < BATCH) {
        fprintf(stderr, "bench_transform: %zu records are too few\n", count);
        return 1;
    }
    printf("{\"rows\": %zu, \"one_row_us\": %.3f, \"batch_row_us\": %.3f}\n", count,
           1e6 * measure(transformer, records, count, 1),
           1e6 * measure(transformer, records, count, BATCH));
    tundish_transformer_close(transformer);
    tundish_transform_close(transform);
    return 0;
}
