/* bench_columns.c - numeric stages over columns of fixed size: bench_columns
 *
 * Each stage runs alone, in one thread, over a column larger than the caches and, again and again,
 * over a batch of 1,024 values. Prints one JSON object a line: nanoseconds a value, bytes read and
 * written a second, and their share of what copying a column of the same number of bytes moves on
 * this machine in the same turn. The best of several turns counts for both.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/dtype.h"
#include "core/memory.h"
#include "inference/transform.h"
#include "learn/analyze.h"

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

/* A pipeline whose rows are ROW values of x, spread evenly over what is measured. */
static char *
pipeline_of(tundish_dtype dtype, const char *stage)
{
    char *values = tnd_alloc(16 * ROW), *whole, *at = values;

    for (int i = 0; i < ROW; i++)
        at += tnd_dtype_is_float(dtype) ? sprintf(at, "%s%.6f", i > 0 ? ", " : "", i / 256.0 - 2)
                                        : sprintf(at, "%s%d", i > 0 ? ", " : "", i << 14);
    whole = tnd_sprintf("streams:\n  s:\n    dataset:\n      - from_tensors:\n          x: "
                        "{dtype: %s, values: [%s]}\n      - %s\n",
                        tnd_dtype_name(dtype), values, stage);
    free(values);
    return whole;
}

static void
check(tundish_status status, const struct spec_errors *errors)
{
    if (status == TUNDISH_OK)
        return;
    fprintf(stderr, "bench_columns: %s\n", spec_errors_text(errors));
    exit(1);
}

/* Boundaries of buckets are learned, from the one row that the pipeline has. */
static void
learn(const char *text, const char *folder)
{
    struct spec_errors errors = { 0 };
    struct spec_file *file;

    check(spec_open_text(text, strlen(text), "bench", "/", &errors, &file), &errors);
    check(analyze_run(&(struct analyze_options){ .file = file,
                                                 .stream = &file->streams[0],
                                                 .folder = folder,
                                                 .cache_folder = folder,
                                                 .thread_count = 1,
                                                 .memory_bytes = ANALYZE_MEMORY_BYTES,
                                                 .is_quiet = true,
                                                 .errors = &errors }),
          &errors);
    spec_close(file);
}

static struct transformer *
open_stage(tundish_dtype dtype, const char *stage, const char *folder,
           struct transform **ret_transform)
{
    char *text = pipeline_of(dtype, stage);
    const struct transform_options options = {
        .path = "bench", .text = text, .root = "/", .analysis = folder
    };
    struct spec_errors errors = { 0 };

    if (strncmp(stage, "bucketize", 9) == 0)
        learn(text, folder);
    check(transform_open(&options, &errors, ret_transform), &errors);
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

static int
remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

static void
measure(const char *name, tundish_dtype dtype, const char *stage, const void *values, int64_t count)
{
    char folder[] = "/tmp/bench-columns-XXXXXX";
    int64_t repeats = LARGE / count, total = repeats * count;
    struct column column = { .count = count / ROW,
                             .level_count = 1,
                             .value_count = count,
                             .values = values,
                             .levels = { { .uniform = ROW } } };
    const struct output_column *out;
    struct transform *transform;
    struct transformer *transformer = open_stage(dtype, stage, mkdtemp(folder), &transform);
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
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* "discretization: {bin_boundaries: [...]}" with so many of them over what is measured. */
static char *
discretization_of(int count, tundish_dtype dtype)
{
    double range = dtype == TUNDISH_FLOAT32 ? 4 : 1 << 24,
           least = dtype == TUNDISH_FLOAT32 ? -2 : 0;
    char *text = tnd_alloc((size_t)count * 24 + 64), *at = text;

    at += sprintf(at, "discretization: {bin_boundaries: [");
    for (int i = 0; i < count; i++)
        at += sprintf(at, "%s%.6f", i > 0 ? ", " : "", range * i / count + least);
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
        char *of_floats = discretization_of(boundaries[b], TUNDISH_FLOAT32);
        char *of_integers = discretization_of(boundaries[b], TUNDISH_INT64);
        char *name = tnd_sprintf("discretization, %d", boundaries[b]);

        measure(name, TUNDISH_FLOAT32, of_floats, floats, count);
        if (boundaries[b] >= 10 && boundaries[b] != 16)
            measure(name, TUNDISH_INT64, of_integers, integers, count);
        free(of_floats);
        free(of_integers);
        free(name);
    }
    for (int buckets = 100; buckets <= 1000; buckets *= 10) {
        char *stage = tnd_sprintf("bucketize: {num_buckets: %d}", buckets);
        char *name = tnd_sprintf("bucketize, %d", buckets);

        measure(name, TUNDISH_FLOAT32, stage, floats, count);
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
