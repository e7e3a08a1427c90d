/* numa.h - the nodes of this machine's memory: which processors each is near, and where pages lie.
 *
 * As the kernel tells in TND_NUMA_FOLDER. Where there is one node, or the kernel tells nothing,
 * every function here does nothing.
 */
#ifndef TND_CORE_NUMA_H
#define TND_CORE_NUMA_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TND_NUMA_FOLDER "/sys/devices/system/node"

enum { TND_NUMA_NODES_MAX = 64, TND_NUMA_TEXT_BYTES = 1024 };

struct tnd_numa {
    uint32_t count; /* of nodes that have processors; memory alone makes none */
    struct tnd_numa_node {
        uint32_t id;
        cpu_set_t processors;
    } nodes[TND_NUMA_NODES_MAX];
};

void tnd_numa_read(const char *folder, struct tnd_numa *ret_numa);

/* The id of the node that has all these processors, if there are several nodes; else -1. */
int tnd_numa_node_of(const struct tnd_numa *numa, const cpu_set_t *processors);

/* The processors for thread `index`, where threads are spread over the nodes of those allowed. */
void tnd_numa_spread(const struct tnd_numa *numa, const cpu_set_t *allowed, uint32_t index,
                     cpu_set_t *ret_processors);

/* "2: 0 (processors 0-15), 1 (processors 16-31)". */
void tnd_numa_text(const struct tnd_numa *numa, char text[TND_NUMA_TEXT_BYTES]);

/* The node to which another process is bound, or -1. */
int tnd_numa_node_of_process(pid_t process);

/* Bind the calling thread to its node's processors, as tnd_numa_spread says. */
void tnd_numa_bind_thread(uint32_t index);

/* Let the pages of a mapping lie on a node, if it has room: those that are there move, also for the
 * other processes that share them. False: the kernel refuses, and they stay. */
bool tnd_numa_move(void *bytes, size_t size, uint32_t node);

#endif
