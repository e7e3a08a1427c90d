/* numa.c - reads sysfs, and asks the kernel to move pages. */
#include "core/numa.h"

#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LIST_BYTES = 4096, PATH_BYTES = 1100 };

/* The next range of a list as "0-3,8": false at its end, or where it is none. */
static bool
next_range(const char **list, unsigned long *ret_first, unsigned long *ret_last)
{
    char *end;

    while (**list == ',' || **list == ' ')
        ++*list;
    if (**list < '0' || **list > '9')
        return false;
    *ret_first = *ret_last = strtoul(*list, &end, 10);
    if (*end == '-')
        *ret_last = strtoul(end + 1, &end, 10);
    *list = end;
    return *ret_first <= *ret_last;
}

static bool
read_list(const char *folder, const char *name, char list[LIST_BYTES])
{
    char path[PATH_BYTES];
    FILE *file;
    bool is_read;

    snprintf(path, sizeof path, "%.1000s/%s", folder, name);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    is_read = fgets(list, LIST_BYTES, file) != NULL;
    fclose(file);
    return is_read;
}

static void
read_node(const char *folder, uint32_t id, struct tnd_numa *numa)
{
    struct tnd_numa_node *node = &numa->nodes[numa->count];
    char name[32], list[LIST_BYTES];
    const char *next = list;
    unsigned long first, last;

    snprintf(name, sizeof name, "node%u/cpulist", id);
    if (!read_list(folder, name, list))
        return;
    *node = (struct tnd_numa_node){ .id = id };
    while (next_range(&next, &first, &last))
        for (; first <= last && first < CPU_SETSIZE; first++)
            CPU_SET(first, &node->processors);
    numa->count += CPU_COUNT(&node->processors) > 0;
}

void
tnd_numa_read(const char *folder, struct tnd_numa *ret_numa)
{
    char list[LIST_BYTES];
    const char *next = list;
    unsigned long first, last;

    ret_numa->count = 0;
    if (!read_list(folder, "online", list))
        return;
    while (next_range(&next, &first, &last))
        for (; first <= last && first <= UINT16_MAX && ret_numa->count < TND_NUMA_NODES_MAX;
             first++)
            read_node(folder, (uint32_t)first, ret_numa);
}

int
tnd_numa_node_of(const struct tnd_numa *numa, const cpu_set_t *processors)
{
    for (uint32_t i = 0; numa->count > 1 && i < numa->count; i++) {
        cpu_set_t both;

        CPU_AND(&both, &numa->nodes[i].processors, processors);
        if (CPU_COUNT(&both) > 0)
            return CPU_EQUAL(&both, processors) ? (int)numa->nodes[i].id : -1;
    }
    return -1;
}

void
tnd_numa_spread(const struct tnd_numa *numa, const cpu_set_t *allowed, uint32_t index,
                cpu_set_t *ret_processors)
{
    cpu_set_t near[TND_NUMA_NODES_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < numa->count; i++) {
        CPU_AND(&near[count], &numa->nodes[i].processors, allowed);
        count += CPU_COUNT(&near[count]) > 0;
    }
    *ret_processors = count > 1 ? near[index % count] : *allowed;
}

/* Append "0-15,32": the processors of a set. */
static size_t
write_set(const cpu_set_t *set, char *text, size_t used)
{
    const char *comma = "";

    for (size_t i = 0; i < CPU_SETSIZE && used < TND_NUMA_TEXT_BYTES; i++) {
        size_t first = i;

        if (!CPU_ISSET(i, set))
            continue;
        while (i + 1 < CPU_SETSIZE && CPU_ISSET(i + 1, set))
            i++;
        used += (size_t)snprintf(text + used, TND_NUMA_TEXT_BYTES - used,
                                 first == i ? "%s%zu" : "%s%zu-%zu", comma, first, i);
        comma = ",";
    }
    return used;
}

void
tnd_numa_text(const struct tnd_numa *numa, char text[TND_NUMA_TEXT_BYTES])
{
    size_t used = (size_t)snprintf(text, TND_NUMA_TEXT_BYTES, "%u", numa->count);

    for (uint32_t i = 0; i < numa->count && used < TND_NUMA_TEXT_BYTES; i++) {
        used += (size_t)snprintf(text + used, TND_NUMA_TEXT_BYTES - used, "%s %u (processors ",
                                 i == 0 ? ":" : ",", numa->nodes[i].id);
        used =
            used < TND_NUMA_TEXT_BYTES ? write_set(&numa->nodes[i].processors, text, used) : used;
        if (used < TND_NUMA_TEXT_BYTES)
            used += (size_t)snprintf(text + used, TND_NUMA_TEXT_BYTES - used, ")");
    }
}

int
tnd_numa_node_of_process(pid_t process)
{
    struct tnd_numa numa;
    cpu_set_t processors;

    /* 0 is a process of another namespace, and would be this one. */
    if (process <= 0)
        return -1;
    tnd_numa_read(TND_NUMA_FOLDER, &numa);
    if (numa.count < 2 || sched_getaffinity(process, sizeof processors, &processors) != 0)
        return -1;
    return tnd_numa_node_of(&numa, &processors);
}

void
tnd_numa_bind_thread(uint32_t index)
{
    struct tnd_numa numa;
    cpu_set_t allowed, processors;

    tnd_numa_read(TND_NUMA_FOLDER, &numa);
    if (numa.count < 2 || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    tnd_numa_spread(&numa, &allowed, index, &processors);
    pthread_setaffinity_np(pthread_self(), sizeof processors, &processors);
}

bool
tnd_numa_move(void *bytes, size_t size, uint32_t node)
{
    enum { WORD = 8 * sizeof(unsigned long), WORDS = 1024 / WORD };
    unsigned long nodes[WORDS] = { 0 };

    if (node >= WORDS * WORD)
        return false;
    nodes[node / WORD] |= 1UL << node % WORD;
    /* The kernel reads one bit less than it is told. */
    return syscall(SYS_mbind, bytes, size, MPOL_PREFERRED, nodes, WORDS * WORD + 1, MPOL_MF_MOVE) ==
           0;
}
