/* stats_process.c - the resources that the whole process uses. */
#include "stats/stats_process.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mapped.h"
#include "core/status.h"
#include "stats/stats_private.h"

static const int64_t LOOK_AT_PROCESSORS_NS = 200000000;

static uint64_t
nanoseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

static uint64_t
resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file == NULL)
        return 0;
    if (fscanf(file, "%*u %llu", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The process and its command are labels, so another process is another set. */
static void
show_rival(struct stats *stats, const struct processors_use *use)
{
    char labels[TND_STATS_LABEL_BYTES] = "";

    if (stats->shown_rival != use->rival && stats->rival != NULL) {
        stats_drop(stats, stats->rival);
        stats->rival = NULL;
    }
    stats->shown_rival = use->rival;
    if (use->rival == 0)
        return;
    if (stats->rival == NULL) {
        stats_label_number(labels, "process", (uint64_t)use->rival);
        stats_label(labels, "command", use->rival_command);
        stats->rival = stats_add(stats, TND_STATS_KIND_rival, labels);
    }
    tnd_stats_set(&stats->rival->cpu, use->rival_ns);
}

/* Not every time, because it reads a file for each thread. But several times a second: a client
 * compares metrics one second apart, and shares of that second would be wrong otherwise. */
static void
show_processors(struct stats *stats, int64_t now_ns)
{
    struct tnd_stats_server *server = stats_server(stats);
    struct processors_use use;

    if (now_ns - stats->processors_seen_ns < LOOK_AT_PROCESSORS_NS)
        return;
    stats->processors_seen_ns = now_ns;
    processors_look(stats->processors, &use);
    tnd_stats_set(&server->run_delay, use.run_delay_ns);
    tnd_stats_set(&server->throttled, use.throttled_ns);
    show_rival(stats, &use);
    tnd_stats_set(&server->memory_stalled, memory_pressure_ns(&stats->memory_pressure));
}

/* Warn once if another program has truncated the file. The server goes on, without metrics. */
static void
say_if_cut(struct stats *stats)
{
    if (stats->cut_was_said || !tnd_mapped_is_cut(stats->map))
        return;
    stats->cut_was_said = true;
    tnd_log(TND_LOG_WARNING, "figures",
            "another program truncated %s: metrics are not available until the server is restarted",
            stats->path);
}

void
stats_show_process(struct stats *stats)
{
    struct tnd_stats_server *server = stats_server(stats);
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        tnd_stats_set(&server->cpu, nanoseconds(usage.ru_utime) + nanoseconds(usage.ru_stime));
        tnd_stats_set(&server->major_faults, (uint64_t)usage.ru_majflt);
    }
    tnd_stats_set(&server->resident_memory, resident_bytes());
    tnd_stats_set(&server->disk_full, tnd_status_disk_full_count());
    if (tnd_status_disk_full_count() > 0)
        tnd_stats_set(&server->disk_full_age,
                      (uint64_t)(tnd_clock_ns() - tnd_status_disk_full_ns()));
    show_processors(stats, tnd_clock_ns());
    say_if_cut(stats);
    /* Last: clients judge by the heartbeat whether the other metrics are fresh. */
    tnd_stats_set(&server->heartbeat, (uint64_t)tnd_clock_ns());
}
