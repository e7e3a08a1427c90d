/* stats_relay.c - metrics of other nodes, in files beside this node's own. */
#include "stats/stats_relay.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/read_write.h"
#include "stats/stats_private.h"

enum { PATH_MAX_BYTES = 200 };

struct byte_view
stats_relay_copy(const struct stats *stats)
{
    return (struct byte_view){ (const uint8_t *)stats->header, atomic_load(&stats->used_bytes) };
}

static void
path_of(const char *stats_path, uint32_t rank, char path[PATH_MAX_BYTES])
{
    snprintf(path, PATH_MAX_BYTES, "%.150s.%u", stats_path, rank);
}

/* Write the values before the header: a reader trusts what the header counts. */
static void
write_copy(int file, const struct tnd_stats_header *header, struct byte_view copy, int64_t every_ns)
{
    struct tnd_stats_header own = *header;

    own.relay_every_ns = every_ns;
    atomic_store_explicit(&own.relayed_ns, tnd_clock_ns(), memory_order_relaxed);
    /* If the disk is full, that node is shown as silent. */
    if (tnd_write_at(file, copy.data + sizeof own, copy.size - sizeof own, sizeof own) == 0)
        (void)tnd_write_at(file, &own, sizeof own, 0);
}

void
stats_relay_keep(struct stats *stats, uint32_t rank, struct byte_view copy, int64_t every_ns)
{
    struct tnd_stats_header *header;
    char path[PATH_MAX_BYTES];
    int file;

    /* The copy comes from another node: a bad rank must not choose a path. */
    if (copy.size < sizeof *header || rank == 0 || rank >= TND_STATS_NODES)
        return;
    path_of(stats->path, rank, path);
    /* O_NOFOLLOW: the folder may be /tmp, where others could place a link. */
    file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return;
    atomic_store_explicit(&stats->has_relayed, true, memory_order_relaxed);
    header = aligned_alloc(TND_STATS_LINE, sizeof *header); /* a message may lie at any address */
    if (header != NULL) {
        memcpy(header, copy.data, sizeof *header);
        write_copy(file, header, copy, every_ns);
    }
    free(header);
    close(file);
}

void
stats_relay_remove(const char *stats_path)
{
    if (access(stats_path, F_OK) != 0)
        return;
    for (uint32_t rank = 1; rank < TND_STATS_NODES; rank++) {
        char path[PATH_MAX_BYTES];

        path_of(stats_path, rank, path);
        unlink(path);
    }
}
