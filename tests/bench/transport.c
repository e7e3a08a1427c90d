/* transport.c - what it costs to hand ready batches to another process: bench_transport [SECONDS]
 *
 * One JSON object a line. Throughput: batches of 4 KiB to 32 MiB through one lane; `fill` "copy"
 * copies each from a source into its slot, as a worker's last step would, "none" publishes slots as
 * they are. The trainer checks the number in each batch's first word. Latency: the arena holds one
 * batch, so each must be released before the next can be placed; from the release to the return of
 * tundish_next, with both sides spinning and with both sleeping.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/status.h"
#include "deliver/socket/hub.h"
#include "deliver/wakeup.h"
#include "tundish/tundish.h"

enum { SLOTS = 6, LATENCY_SLOTS = 3, LATENCY_BYTES = 4096, LATENCY_BATCHES = 20000 };

struct trial {
    uint64_t batch_bytes;
    uint64_t batches;
    bool copies;
    bool is_latency;
    int64_t trainer_spin_ns, server_spin_ns;
};

static char path[64];

static tundish_status
admit(void *user, struct feed *feed, const char *group, uint32_t replica,
      const struct feed_start *start)
{
    (void)user, (void)feed, (void)group, (void)replica, (void)start;
    return TUNDISH_OK;
}

static void
joined(void *user, struct feed *feed, const char *group, uint32_t replica, uint32_t present,
       uint32_t full_group_count)
{
    (void)user, (void)feed, (void)group, (void)replica, (void)present, (void)full_group_count;
}

static void
left(void *user, struct feed *feed, const char *group, uint32_t replica,
     const struct departure *departure)
{
    (void)user, (void)feed, (void)group, (void)replica, (void)departure;
}

static void
refused(void *user, struct feed *feed)
{
    (void)user, (void)feed;
}

static void
group_ended(void *user, struct feed *feed, const char *group, bool lost)
{
    (void)lost, (void)user, (void)feed, (void)group;
}

static void
restart(void *user, struct feed *feed, uint64_t epoch)
{
    (void)user, (void)feed, (void)epoch;
}

static int64_t
tick(void *user, struct feed *feed, int64_t now_ns)
{
    (void)user, (void)feed, (void)now_ns;
    return INT64_MAX;
}

static bool
find_standing(void *user, struct feed *feed, const char *group, uint64_t *number,
              struct feed_standing *ret_standing)
{
    (void)user, (void)number;
    feed_find_standing(feed, group, ret_standing);
    return true;
}

static const struct feed_ops ops = {
    .admit = admit,
    .joined = joined,
    .left = left,
    .refused = refused,
    .group_ended = group_ended,
    .restart = restart,
    .tick = tick,
    .find_standing = find_standing,
};

static double
cpu_seconds(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void
fail_loudly(const char *what)
{
    fprintf(stderr, "bench_transport: %s: %s\n", what, tnd_error_text());
    exit(1);
}

static void
publish_all(const struct trial *trial, struct lane *lane, struct wakeup *wakeup)
{
    uint8_t *source = tnd_alloc(trial->batch_bytes);
    struct slot slot;

    memset(source, 0x5a, trial->batch_bytes);
    lane_slot_init(lane, &slot);
    slot.columns[0].shape[0] = (int64_t)(trial->batch_bytes / sizeof(float));
    for (slot.position = 0; slot.position < trial->batches; slot.position++) {
        tundish_status status;

        slot.step = slot.position;
        slot_values(&slot, 0)->stored_bytes = trial->batch_bytes;
        while ((status = lane_reserve(lane, &slot)) == TUNDISH_E_TIMEOUT)
            wakeup_wait(wakeup, trial->server_spin_ns, -1);
        if (status != TUNDISH_OK)
            fail_loudly("reserve");
        if (trial->copies)
            memcpy(slot_values(&slot, 0)->data, source, trial->batch_bytes);
        memcpy(slot_values(&slot, 0)->data, &slot.position, sizeof slot.position);
        lane_seal(lane, &slot);
        lane_publish(lane, &slot);
    }
    while (lane_publish_end(lane, slot.position, TND_SLOT_END_OF_STREAM, 0, slot.position,
                            TUNDISH_OK, NULL) == TUNDISH_E_TIMEOUT)
        wakeup_wait(wakeup, trial->server_spin_ns, -1);
    lane_slot_fini(&slot);
    free(source);
}

/* In a process of its own; writes the CPU it used to the pipe and waits for the trainer to end. */
static void
serve(const struct trial *trial, int results, int until)
{
    tundish_column_spec column = {
        .name = "x", .dtype = TUNDISH_FLOAT32, .kind = TUNDISH_DENSE, .rank = 1, .shape = { -1 }
    };
    tundish_spec spec = { 1, sizeof column, &column };
    struct feed_config config = { .stream = "x",
                                  .session = "x",
                                  .replica_count = 1,
                                  .total_replica_count = 1,
                                  .rejoin_ns = 1,
                                  .ops = &ops };
    struct hub_config at = { .socket_path = path };
    struct wakeup *wakeup;
    struct hub *hub;
    struct feed *feed;
    double began, used;
    char byte;

    if (wakeup_open(&wakeup) != TUNDISH_OK)
        fail_loudly("wakeup");
    config.lane = (struct lane_config){
        .slots = trial->is_latency ? LATENCY_SLOTS : SLOTS,
        .arena_bytes = trial->batch_bytes * (trial->is_latency ? 1 : SLOTS),
        .spec = &spec,
        .wakeup = wakeup,
    };
    if (feed_open(&config, &feed) != TUNDISH_OK || hub_open(&at, &hub) != TUNDISH_OK ||
        hub_add(hub, feed) != TUNDISH_OK || hub_start(hub) != TUNDISH_OK)
        fail_loudly("serve");
    began = cpu_seconds();
    publish_all(trial, feed_lane(feed, 0), wakeup);
    used = cpu_seconds() - began;
    must(write(results, &used, sizeof used) == (ssize_t)sizeof used);
    must(read(until, &byte, 1) >= 0);
    hub_remove(hub, feed);
    hub_close(hub);
    feed_close(feed);
    wakeup_close(wakeup);
    exit(0);
}

static int
by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* What the trainer measures. */
struct result {
    double seconds, trainer_cpu;
    int64_t *waits_ns; /* latency */
    uint64_t wait_count;
};

static void
train(const struct trial *trial, struct result *result)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    const tundish_batch *batch;
    const tundish_tensor *tensor;
    tundish_reader *reader;
    tundish_status status;
    double began_cpu;
    int64_t began_ns = 0, released_ns = 0;

    options.server = path;
    options.spin_ns = trial->trainer_spin_ns;
    if (tundish_open(&options, &reader) != TUNDISH_OK)
        fail_loudly("open");
    began_cpu = cpu_seconds();
    while ((status = tundish_next(reader, TUNDISH_FOREVER, &batch)) == TUNDISH_OK) {
        int64_t now_ns = tnd_clock_ns();

        if (batch->step == 0)
            began_ns = now_ns;
        else if (trial->is_latency)
            result->waits_ns[result->wait_count++] = now_ns - released_ns;
        if (tundish_tensor_at(batch, 0, &tensor) != TUNDISH_OK ||
            memcmp(tensor->data, &batch->step, sizeof batch->step) != 0)
            fail_loudly("wrong batch");
        released_ns = tnd_clock_ns();
        tundish_release(reader, batch);
    }
    if (status != TUNDISH_END_OF_STREAM)
        fail_loudly("next");
    result->seconds = (double)(tnd_clock_ns() - began_ns) / 1e9;
    result->trainer_cpu = cpu_seconds() - began_cpu;
    tundish_close(reader);
}

static void
print(const struct trial *trial, const struct result *result, double server_cpu)
{
    double gigabytes = (double)(trial->batch_bytes * trial->batches) / 1e9;

    if (trial->is_latency) {
        qsort(result->waits_ns, result->wait_count, sizeof *result->waits_ns, by_time);
        printf("{\"bench\": \"transport_latency\", \"waiting\": \"%s\", \"batches\": %llu, "
               "\"p50_us\": %.2f, \"p99_us\": %.2f, \"trainer_cpu_s\": %.3f, "
               "\"server_cpu_s\": %.3f, \"seconds\": %.3f}\n",
               trial->trainer_spin_ns > 0 ? "spin" : "sleep", (unsigned long long)trial->batches,
               (double)result->waits_ns[result->wait_count / 2] / 1e3,
               (double)result->waits_ns[result->wait_count * 99 / 100] / 1e3, result->trainer_cpu,
               server_cpu, result->seconds);
    } else {
        printf("{\"bench\": \"transport\", \"kib\": %llu, \"fill\": \"%s\", \"batches\": %llu, "
               "\"seconds\": %.3f, \"batches_per_s\": %.0f, \"gb_per_s\": %.3f, "
               "\"cpu_s_per_gb\": %.4f, \"trainer_cpu_s\": %.3f, \"server_cpu_s\": %.3f}\n",
               (unsigned long long)(trial->batch_bytes >> 10), trial->copies ? "copy" : "none",
               (unsigned long long)trial->batches, result->seconds,
               (double)trial->batches / result->seconds, gigabytes / result->seconds,
               (result->trainer_cpu + server_cpu) / gigabytes, result->trainer_cpu, server_cpu);
    }
    fflush(stdout);
}

static void
run(const struct trial *trial)
{
    struct result result = { 0 };
    double server_cpu = 0;
    int results[2], until[2];
    pid_t server;

    must(pipe(results) == 0 && pipe(until) == 0);
    server = fork();
    if (server == 0) {
        close(until[1]);
        serve(trial, results[1], until[0]);
    }
    close(until[0]);
    result.waits_ns = tnd_alloc((trial->batches + 1) * sizeof *result.waits_ns);
    train(trial, &result);
    must(read(results[0], &server_cpu, sizeof server_cpu) == (ssize_t)sizeof server_cpu);
    close(until[1]);
    waitpid(server, NULL, 0);
    close(results[0]);
    close(results[1]);
    print(trial, &result, server_cpu);
    free(result.waits_ns);
}

int
main(int argc, char **argv)
{
    const uint64_t kib[] = { 4, 64, 1024, 8192, 32768 };
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.5;
    char folder[] = "/tmp/tundish-bench-XXXXXX";

    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(path, sizeof path, "%s/server", folder);
    for (size_t i = 0; i < sizeof kib / sizeof kib[0]; i++)
        for (int copies = 0; copies < 2; copies++) {
            /* So many that it takes about that long at 100,000 batches or 8 GB a second. */
            uint64_t by_count = (uint64_t)(seconds * 1e5);
            uint64_t by_bytes = (uint64_t)(seconds * 8e9) / (kib[i] << 10);
            struct trial trial = { .batch_bytes = kib[i] << 10,
                                   .copies = copies != 0,
                                   .batches = (by_count < by_bytes ? by_count : by_bytes) + 1,
                                   .trainer_spin_ns = 20000,
                                   .server_spin_ns = 20000 };

            run(&trial);
        }
    for (int sleeps = 0; sleeps < 2; sleeps++) {
        struct trial trial = { .batch_bytes = LATENCY_BYTES,
                               .batches = LATENCY_BATCHES,
                               .is_latency = true,
                               .trainer_spin_ns = sleeps ? -1 : INT64_C(1000000000),
                               .server_spin_ns = sleeps ? 0 : INT64_C(1000000000) };

        run(&trial);
    }
    strcat(path, ".lock");
    unlink(path);
    rmdir(folder);
    return 0;
}
