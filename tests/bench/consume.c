/* consume.c - a trainer that only looks: reads a stream, pass by pass, and says how fast it came.
 *
 * Prints one line of JSON for each epoch:
 *     {"pass": 0, "rows": ..., "batches": ..., "bytes": ..., "seconds": ..., "digest": {...}}
 * The first pass is the check: it makes the digest that peers make of the same data
 * (peers/digest.py). Later passes touch one byte of each page, as with --unchecked all do. With
 * --first it prints {"first_batch": true} and ends; with --latency it times the way from a release
 * to the batch that it makes room for, from a lane with room for one batch only, and never sleeps
 * (spin) or never looks twice before it does (sleep). With --turns it waits for a line of standard
 * input before each pass, and ends with it. With --bursts it lets the lane fill up and times what a
 * batch takes that is there already. consume.py does the same in Python.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tundish/tundish.h"

enum { PAGE_BYTES = 4096, LATENCY_WARM = 1000, LATENCY_BATCHES = 20000 };
enum { BURSTS = 200, FILL_MS = 10 }; /* as in consume.py */
#define SPIN_NS INT64_C(1000000000)

struct settings {
    bool only_first;
    bool unchecked;
    bool turns;
    bool bursts;
    const char *latency; /* "spin", "sleep" or NULL */
    const char *dense;   /* columns of the digest, beside `ids`; NULL: none */
    const char *label;
    unsigned step_ms; /* how long the trainer works on a batch */
};

/* What peers/digest.py computes: of the ids in order, of the ids in any order, and sums. */
struct digest {
    uint64_t ordered;
    uint64_t bag;
    uint64_t rows;
    double dense_sum;
    double label_sum;
};

struct pass {
    uint64_t rows, batches, bytes;
    double seconds;
};

static volatile unsigned sink; /* so that touching is not optimised away */

static double
now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static _Noreturn void
fail(const char *what, tundish_status status)
{
    fprintf(stderr, "consume: %s: %s: %s\n", what, tundish_status_name(status),
            tundish_last_error());
    exit(1);
}

static const tundish_tensor *
tensor_at(const tundish_batch *batch, uint32_t index)
{
    const tundish_tensor *tensor;
    tundish_status status = tundish_tensor_at(batch, index, &tensor);

    if (status != TUNDISH_OK)
        fail("a column", status);
    return tensor;
}

static const tundish_tensor *
tensor_named(const tundish_batch *batch, const char *name)
{
    const tundish_tensor *tensor;
    tundish_status status = tundish_tensor_named(batch, name, &tensor);

    if (status != TUNDISH_OK)
        fail(name, status);
    return tensor;
}

static uint64_t
row_count(const tundish_tensor *tensor)
{
    if (tensor->kind == TUNDISH_RAGGED)
        return tensor->row_split_counts[0] - 1;
    return tensor->rank == 0 ? 1 : (uint64_t)tensor->shape[0];
}

static uint64_t
touch(const void *data, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += PAGE_BYTES)
        sink += ((const uint8_t *)data)[at];
    return bytes;
}

static void
touch_batch(const tundish_batch *batch, struct pass *pass)
{
    for (uint32_t i = 0; i < batch->tensor_count; i++) {
        const tundish_tensor *tensor = tensor_at(batch, i);

        pass->bytes += touch(tensor->data, tensor->data_bytes);
        if (tensor->string_offsets != NULL)
            pass->bytes += touch(tensor->string_offsets, (tensor->element_count + 1) * 8);
    }
    pass->rows += row_count(tensor_at(batch, 0));
    pass->batches++;
}

static uint64_t
mix(uint64_t x)
{
    x = (x ^ (x >> 29)) * UINT64_C(0xBF58476D1CE4E5B9);
    return x ^ (x >> 32);
}

static void
digest_row(struct digest *digest, const uint64_t *ids, uint64_t count)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < count; i++)
        sum += ids[i] * ((i * UINT64_C(0x9E3779B97F4A7C15) + UINT64_C(0xD1B54A32D192ED03)) | 1);
    digest->bag += mix(sum);
    digest->rows++;
    digest->ordered += mix(sum + digest->rows * UINT64_C(0xA24BAED4963EE407));
}

/* A string stands for its length and its first and last 8 bytes. */
static void
digest_strings(struct digest *digest, const tundish_tensor *tensor)
{
    for (uint64_t i = 0; i < tensor->element_count; i++) {
        const uint8_t *text = (const uint8_t *)tensor->data + tensor->string_offsets[i];
        uint64_t bytes = (uint64_t)(tensor->string_offsets[i + 1] - tensor->string_offsets[i]);
        uint64_t ids[3] = { bytes, 0, 0 };
        size_t edge = bytes < 8 ? (size_t)bytes : 8;

        memcpy(&ids[1], text, edge);
        memcpy(&ids[2], text + bytes - edge, edge);
        digest_row(digest, ids, 3);
    }
}

/* A row of pixels: their sum, each weighed by its place. */
static uint64_t
pixels_id(const uint8_t *pixels, uint64_t count)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < count; i++)
        sum += pixels[i] * (i + 1);
    return sum;
}

/* int64 rows stand for themselves, float32 rows for their first value. */
static void
digest_ids(struct digest *digest, const tundish_tensor *tensor)
{
    uint64_t rows = row_count(tensor), width = rows == 0 ? 0 : tensor->element_count / rows;

    if (tensor->dtype == TUNDISH_STRING) {
        digest_strings(digest, tensor);
        return;
    }
    for (uint64_t row = 0; row < rows; row++) {
        if (tensor->dtype == TUNDISH_INT64) {
            digest_row(digest, (const uint64_t *)tensor->data + row * width, width);
        } else if (tensor->dtype == TUNDISH_UINT8) {
            uint64_t id = pixels_id((const uint8_t *)tensor->data + row * width, width);

            digest_row(digest, &id, 1);
        } else {
            uint64_t id = (uint64_t)((const float *)tensor->data)[row * width];

            digest_row(digest, &id, 1);
        }
    }
}

static double
sum_of(const tundish_tensor *tensor)
{
    double sum = 0.0;

    for (uint64_t i = 0; i < tensor->element_count; i++) {
        if (tensor->dtype == TUNDISH_FLOAT32)
            sum += (double)((const float *)tensor->data)[i];
        else
            sum += (double)((const int64_t *)tensor->data)[i];
    }
    return sum;
}

static void
digest_batch(const struct settings *settings, struct digest *digest, const tundish_batch *batch)
{
    digest_ids(digest, tensor_named(batch, "ids"));
    if (settings->dense != NULL)
        digest->dense_sum += sum_of(tensor_named(batch, settings->dense));
    if (settings->label != NULL)
        digest->label_sum += sum_of(tensor_named(batch, settings->label));
}

static void
work(unsigned milliseconds)
{
    const struct timespec step = { .tv_sec = milliseconds / 1000,
                                   .tv_nsec = (long)(milliseconds % 1000) * 1000000 };

    if (milliseconds > 0)
        nanosleep(&step, NULL);
}

/* Read to the end of an epoch; false at the end of the stream. */
static bool
read_pass(const struct settings *settings, tundish_reader *reader, struct pass *pass,
          struct digest *digest)
{
    double start = now_s();
    const tundish_batch *batch;
    tundish_status status;

    *pass = (struct pass){ 0 };
    while ((status = tundish_next(reader, TUNDISH_FOREVER, &batch)) == TUNDISH_OK) {
        touch_batch(batch, pass);
        if (digest != NULL)
            digest_batch(settings, digest, batch);
        work(settings->step_ms);
        tundish_release(reader, batch);
    }
    pass->seconds = now_s() - start;
    if (status != TUNDISH_END && status != TUNDISH_END_OF_STREAM && status != TUNDISH_STOPPED)
        fail("reading", status);
    return status == TUNDISH_END;
}

static void
print_pass(uint64_t number, const struct pass *pass, const struct digest *digest)
{
    printf("{\"pass\": %" PRIu64 ", \"rows\": %" PRIu64 ", \"batches\": %" PRIu64
           ", \"bytes\": %" PRIu64 ", \"seconds\": %.6f",
           number, pass->rows, pass->batches, pass->bytes, pass->seconds);
    if (digest != NULL) {
        printf(", \"digest\": {\"ordered\": \"%016" PRIx64 "\", \"bag\": \"%016" PRIx64
               "\", \"rows\": %" PRIu64 ", \"dense_sum\": %.17g, \"label_sum\": %.17g}",
               digest->ordered, digest->bag, digest->rows, digest->dense_sum, digest->label_sum);
    }
    printf("}\n");
    fflush(stdout);
}

/* False at the end of standard input. */
static bool
is_my_turn(const struct settings *settings)
{
    int byte = settings->turns ? getchar() : '\n';

    while (byte != '\n' && byte != EOF)
        byte = getchar();
    return byte == '\n';
}

static void
read_passes(const struct settings *settings, tundish_reader *reader)
{
    struct digest digest = { 0 };
    struct pass pass;

    struct digest *check = settings->unchecked ? NULL : &digest;

    for (uint64_t number = 0; is_my_turn(settings); number++) {
        if (!read_pass(settings, reader, &pass, check))
            return;
        print_pass(number, &pass, check);
        check = NULL;
    }
}

static int
compare_doubles(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;

    return (one > other) - (one < other);
}

static const tundish_batch *
next_batch(tundish_reader *reader)
{
    const tundish_batch *batch;
    tundish_status status = tundish_next(reader, TUNDISH_FOREVER, &batch);

    if (status != TUNDISH_OK)
        fail("reading", status);
    return batch;
}

static void
time_batches(tundish_reader *reader)
{
    static double taken[LATENCY_BATCHES];
    const tundish_batch *batch = next_batch(reader);
    struct pass pass = { 0 };

    for (int i = -LATENCY_WARM; i < LATENCY_BATCHES; i++) {
        double start;

        touch_batch(batch, &pass);
        start = now_s();
        tundish_release(reader, batch);
        batch = next_batch(reader);
        if (i >= 0)
            taken[i] = (now_s() - start) * 1e9;
    }
    tundish_release(reader, batch);
    qsort(taken, LATENCY_BATCHES, sizeof(*taken), compare_doubles);
    printf("{\"latency_ns\": {\"p50\": %.0f, \"p90\": %.0f, \"p99\": %.0f}}\n",
           taken[LATENCY_BATCHES / 2], taken[LATENCY_BATCHES * 9 / 10],
           taken[LATENCY_BATCHES * 99 / 100]);
}

/* Batches that are there already: half the lane's, so that nothing is waited for. */
static void
time_bursts(tundish_reader *reader)
{
    static double taken[BURSTS];
    tundish_info info = { .size = sizeof(info) };
    tundish_status status = tundish_get_info(reader, &info);
    struct pass pass = { 0 };

    if (status != TUNDISH_OK)
        fail("asking", status);
    for (int i = 0; i < BURSTS; i++) {
        double start;

        work(FILL_MS);
        start = now_s();
        for (uint32_t read = 0; read < info.slot_count / 2; read++) {
            const tundish_batch *batch = next_batch(reader);

            touch_batch(batch, &pass);
            tundish_release(reader, batch);
        }
        taken[i] = (now_s() - start) * 1e6 / (info.slot_count / 2);
    }
    qsort(taken, BURSTS, sizeof(*taken), compare_doubles);
    printf("{\"batch_us\": %.3f}\n", taken[BURSTS / 2]);
}

static void
read_first(tundish_reader *reader)
{
    const tundish_batch *batch = next_batch(reader);
    struct pass pass = { 0 };

    touch_batch(batch, &pass);
    printf("{\"first_batch\": true}\n");
    tundish_release(reader, batch);
}

static struct settings
parse_options(int argc, char **argv)
{
    static const struct option options[] = {
        { "first", no_argument, NULL, 'f' },
        { "unchecked", no_argument, NULL, 'u' },
        { "latency", required_argument, NULL, 'l' },
        { "dense", required_argument, NULL, 'd' },
        { "label", required_argument, NULL, 'y' },
        { "step-ms", required_argument, NULL, 's' },
        { "turns", no_argument, NULL, 't' },
        { "bursts", no_argument, NULL, 'b' },
        { NULL, 0, NULL, 0 },
    };
    struct settings settings = { 0 };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'f':
            settings.only_first = true;
            break;
        case 'u':
            settings.unchecked = true;
            break;
        case 'l':
            settings.latency = optarg;
            break;
        case 'd':
            settings.dense = optarg;
            break;
        case 'y':
            settings.label = optarg;
            break;
        case 's':
            settings.step_ms = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 't':
            settings.turns = true;
            break;
        case 'b':
            settings.bursts = true;
            break;
        default:
            fprintf(stderr,
                    "usage: consume [--first | --unchecked | --latency spin|sleep | --bursts] "
                    "[--dense COLUMN] [--label COLUMN] [--step-ms MS] [--turns]\n");
            exit(2);
        }
    }
    return settings;
}

int
main(int argc, char **argv)
{
    struct settings settings = parse_options(argc, argv);
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_reader *reader;
    tundish_status status;

    if (settings.latency != NULL)
        options.spin_ns = strcmp(settings.latency, "spin") == 0 ? SPIN_NS : -1;
    status = tundish_open(&options, &reader);
    if (status != TUNDISH_OK)
        fail("opening", status);
    if (settings.only_first)
        read_first(reader);
    else if (settings.latency != NULL)
        time_batches(reader);
    else if (settings.bursts)
        time_bursts(reader);
    else
        read_passes(&settings, reader);
    tundish_close(reader);
    return 0;
}
