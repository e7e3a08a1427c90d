/* columns.c - numeric stages over columns of fixed size: bench_columns
 *
 * Each stage runs alone, in one thread, over a column larger than the caches and, again and again,
 * over a batch of 1,024 values. Prints one JSON object a line: nanoseconds a value, bytes read and
 * written a second, and their share of what copying a column of the same number of bytes moves on
 * this machine in the same turn. The best of several turns counts for both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/dtype.h"
#include "core/memory.h"
#include "transform/transform.h"

enum { ROW = 1024, LARGE = 16 << 20, SMALL = ROW, TURNS = 5, APART = 1984 };

/* The thread's own time, so that others on the machine count less. */
static int64_t
spent_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Both arrays begin elsewhere in a page: what is loaded soon must not look stored just now. */
static double
seconds_of_copy(size_t bytes, int64_t repeats)
{
    uint8_t *memory = tnd_alloc(2 * bytes + APART), *from = memory, *to = memory + bytes + APART;
    double best = 1e9;

    memset(from, 1, bytes);
    memset(to, 2, bytes);
    for (int turn = 0; turn < TURNS; turn++) {
        int64_t begin = spent_ns();
        double took;

        for (int64_t i = 0; i < repeats; i++) {
            memcpy(to, from, bytes);
            __asm__ volatile("" : : "r"(to) : "memory");
        }
        took = (double)(spent_ns() - begin) / 1e9;
        best = took < best ? took : best;
    }
    free(memory);
    return best;
}

/* A pipeline whose rows are ROW values of x. */
static char *
pipeline_of(tundish_dtype dtype, const char *stage)
{
    char *text = tnd_sprintf("streams:\n  s:\n    dataset:\n      - from_tensors:\n          x: "
                             "{dtype: %s, values: [0%s]}\n",
                             tnd_dtype_name(dtype), tnd_dtype_is_float(dtype) ? ".0" : "");
    char *values = tnd_alloc(8 * ROW + 8), *whole, *at = values;

    for (int i = 1; i < ROW; i++)
        at += sprintf(at, ", 0");
    text[strlen(text) - 3] = '\0'; /* the bracket, the brace and the line's end */
    whole = tnd_sprintf("%s%s]}\n      - %s\n", text, values, stage);
    free(text);
    free(values);
    return whole;
}

static struct transformer *
open_stage(tundish_dtype dtype, const char *stage, struct transform **ret_transform)
{
    char *text = pipeline_of(dtype, stage);
    const struct transform_options options = { .path = "bench", .text = text, .root = "/" };
    struct spec_errors errors = { 0 };

    if (transform_open(&options, &errors, ret_transform) != TUNDISH_OK) {
        fprintf(stderr, "bench_columns: %s\n", spec_errors_text(&errors));
        exit(1);
    }
    free(text);
    return transformer_open(*ret_transform);
}

static double
seconds_of_stage(struct transformer *transformer, const struct column *column, int64_t repeats,
                 const struct output_column **ret_columns)
{
    double best = 1e9;

    for (int turn = 0; turn < TURNS; turn++) {
        int64_t begin = spent_ns();
        double took;

        for (int64_t i = 0; i < repeats; i++) {
            transformer_begin(transformer);
            if (transformer_run(transformer, column, column->count, ret_columns) != TUNDISH_OK) {
                fprintf(stderr, "bench_columns: %s\n", tnd_error_text());
                exit(1);
            }
        }
        took = (double)(spent_ns() - begin) / 1e9;
        best = took < best ? took : best;
    }
    return best;
}

static void
measure(const char *name, tundish_dtype dtype, const char *stage, const void *values, int64_t count)
{
    int64_t repeats = LARGE / count, total = repeats * count;
    struct column column = { .count = count / ROW,
                             .level_count = 1,
                             .value_count = count,
                             .values = values,
                             .levels = { { .uniform = ROW } } };
    const struct output_column *out;
    struct transform *transform;
    struct transformer *transformer = open_stage(dtype, stage, &transform);
    double seconds = seconds_of_stage(transformer, &column, repeats, &out);
    size_t bytes = tnd_dtype_bytes(dtype) + tnd_dtype_bytes(out[0].spec->dtype);
    double copy = seconds_of_copy((size_t)count * bytes / 2, repeats);

    printf("{\"stage\": \"%s\", \"from\": \"%s\", \"to\": \"%s\", \"values\": %lld, "
           "\"ns_a_value\": %.3f, \"bytes_per_s\": %.3g, \"to_memcpy\": %.3f}\n",
           name, tnd_dtype_name(dtype), tnd_dtype_name(out[0].spec->dtype), (long long)count,
           1e9 * seconds / (double)total, (double)(bytes * (size_t)total) / seconds,
           copy / seconds);
    fflush(stdout);
    transformer_close(transformer);
    transform_close(transform);
}

/* "discretization: {bin_boundaries: [...]}" with so many of them between -2 and 2. */
static char *
discretization_of(int count)
{
    char *text = tnd_alloc((size_t)count * 24 + 64), *at = text;

    at += sprintf(at, "discretization: {bin_boundaries: [");
    for (int i = 0; i < count; i++)
        at += sprintf(at, "%s%.6f", i > 0 ? ", " : "", 4.0 * i / count - 2);
    sprintf(at, "]}");
    return text;
}

static void
measure_all(const float *floats, const int64_t *integers, int64_t count)
{
    static const int boundaries[] = { 4, 10, 16, 100, 1000 };

    measure("normalization", TUNDISH_FLOAT32,
            "normalization: {mean: 0.5, variance: 2.0, axis: null}", floats, count);
    measure("normalization", TUNDISH_INT64, "normalization: {mean: 0.5, variance: 2.0, axis: null}",
            integers, count);
    measure("rescaling", TUNDISH_FLOAT32, "rescaling: {scale: 0.5, offset: 1.0}", floats, count);
    for (size_t b = 0; b < sizeof boundaries / sizeof *boundaries; b++) {
        char *stage = discretization_of(boundaries[b]);
        char *name = tnd_sprintf("discretization, %d", boundaries[b]);

        measure(name, TUNDISH_FLOAT32, stage, floats, count);
        if (boundaries[b] == 10)
            measure(name, TUNDISH_INT64, stage, integers, count);
        free(stage);
        free(name);
    }
    measure("hashing", TUNDISH_INT64, "hashing: {num_bins: 100000}", integers, count);
    measure("hashing, salted", TUNDISH_INT64, "hashing: {num_bins: 100000, salt: 133}", integers,
            count);
}

int
main(void)
{
    float *floats = tnd_alloc(LARGE * sizeof *floats);
    int64_t *integers = tnd_alloc(LARGE * sizeof *integers);
    uint64_t state = 1;

    for (size_t i = 0; i < LARGE; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        floats[i] = (float)((double)(state >> 11) * 0x1p-51 - 2);
        integers[i] = (int64_t)(state >> 40);
    }
    measure_all(floats, integers, LARGE);
    measure_all(floats, integers, SMALL);
    free(floats);
    free(integers);
    return 0;
}
