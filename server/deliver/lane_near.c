/* lane_near.c - a lane's memory, near the processors that read it. */
#include "core/log.h"
#include "core/numa.h"
#include "deliver/lane_private.h"

static uint32_t
count_trainers(const struct lane *lane)
{
    uint32_t count = 0;

    must_hold(&lane->lock);
    for (uint32_t i = 0; i < lane->reader_limit; i++)
        count += lane->readers[i] != NULL && lane->readers[i]->connection != NULL;
    return count;
}

/* Segments that batches have for themselves are opened by workers, under the lock: they see the
 * node, or are moved with those that exist when it is set. */
void
lane_lie_near(struct lane *lane, pid_t trainer)
{
    int node = tnd_numa_node_of_process(trainer);

    if (node < 0 || node == lane->memory_node)
        return;
    tnd_lock_take(&lane->lock);
    if (count_trainers(lane) != 1)
        node = -1;
    else
        lane->memory_node = node;
    for (uint32_t i = 0; node >= 0 && i < lane->own_count; i++)
        tnd_numa_move(lane->own[i]->memory.bytes, lane->own[i]->memory.segment_bytes,
                      (uint32_t)node);
    tnd_lock_release(&lane->lock);
    if (node < 0)
        return;
    if (tnd_numa_move(lane->segment.bytes, lane->segment.segment_bytes, (uint32_t)node))
        tnd_log(TND_LOG_NOTICE, "lane", "%s: its memory lies on node %d, as its trainer",
                lane->name, node);
    else
        tnd_log(TND_LOG_WARNING, "lane",
                "%s: its trainer is bound to memory node %d, where the kernel does not move the "
                "batches",
                lane->name, node);
}
