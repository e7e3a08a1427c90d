/* bench_stats.c - what it costs to count: {"call_ns": of a stage's call, "lookup_ns": of a looked
 * up value}.
 *
 * A pass of the data path counts once for each call of a stage on many elements, and once for each
 * value that is looked up in a vocabulary; the rest is a handful of stores a step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "content/vocabulary/vocab_lookup.h"
#include "core/bytes.h"
#include "core/clock.h"
#include "stats/stats_writer.h"

enum { COLUMNS = 4, SAMPLED = 8, STRINGS = 1024 };
enum { CALLS = 2000000, BLOCKS = 200000, ROUNDS = 5 };

/* A few strings of each column of them that a stage has made, COLUMNS of a row's forty, about. */
static uint64_t
sample_sizes(const struct byte_view *strings)
{
    uint64_t bytes = 0;

    for (int column = 0; column < COLUMNS; column++)
        for (int i = 0; i < SAMPLED; i++)
            bytes += strings[column * 3 + i * (STRINGS / SAMPLED)].size;
    return bytes;
}

/* As batch/evaluate.c does around a stage. */
static double
time_calls(struct stats *stats)
{
    static struct byte_view strings[2 * STRINGS];
    struct tnd_stats_stage *stage = stats_add(stats, TND_STATS_KIND_stage, "stage=\"bench\"");
    struct tnd_stats_track_entry *track = stats_add_track(stats, "bench", "bench");
    int64_t start_ns = tnd_clock_ns();

    for (int i = 0; i < CALLS; i++) {
        int64_t began_ns = tnd_clock_ns(), ended_ns = tnd_clock_ns();

        tnd_stats_set(&stage->queued, 100);
        tnd_stats_add(&stage->busy, (uint64_t)(ended_ns - began_ns));
        tnd_stats_observe(&stage->call, (uint64_t)(ended_ns - began_ns));
        tnd_stats_add(&stage->skipped, 0);
        tnd_stats_add(&stage->output, sample_sizes(strings));
        tnd_stats_set(&stage->queued, 0);
        tnd_stats_add(&stage->rows, 100);
        tnd_stats_add(&stage->calls, 1);
        stats_event(track, began_ns, ended_ns, 1, 100);
    }
    return (double)(tnd_clock_ns() - start_ns) / CALLS;
}

/* As content/vocabulary/vocab_map.c does behind a block of lookups, whose values it has just
 * written. */
static double
time_lookups(void)
{
    int64_t values[VOCAB_BLOCK];
    uint64_t absent = 0;
    int64_t start_ns;

    for (int i = 0; i < VOCAB_BLOCK; i++)
        values[i] = i % 32;
    start_ns = tnd_clock_ns();
    for (int i = 0; i < BLOCKS; i++) {
        values[i % VOCAB_BLOCK] ^= 1; /* so that nothing is known beforehand */
        absent += vocab_count_equal(values, VOCAB_BLOCK, 0);
    }
    if (absent == 0)
        return -1;
    return (double)(tnd_clock_ns() - start_ns) / BLOCKS / VOCAB_BLOCK;
}

int
main(void)
{
    char folder[] = "/tmp/tundish-bench-stats.XXXXXX", socket[64];
    struct stats *stats;
    double call_ns = 1e9, lookup_ns = 1e9;

    if (mkdtemp(folder) == NULL)
        return 1;
    snprintf(socket, sizeof socket, "%s/server", folder);
    if (stats_open(socket, 1, &stats) != TUNDISH_OK)
        return 1;
    for (int i = 0; i < ROUNDS; i++) {
        double call = time_calls(stats), lookup = time_lookups();

        call_ns = call < call_ns ? call : call_ns;
        lookup_ns = lookup < lookup_ns ? lookup : lookup_ns;
    }
    stats_close(stats);
    rmdir(folder);
    printf("{\"call_ns\": %.2f, \"lookup_ns\": %.4f}\n", call_ns, lookup_ns);
    return 0;
}
