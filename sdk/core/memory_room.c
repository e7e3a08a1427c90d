/* memory_room.c - the smallest of the rooms that the machine and each control group leave. */
#include "core/memory_room.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cgroups.h"

enum { PATH_BYTES = 1100 };

/* The number after `key` in a file of the kernel's, or UINT64_MAX. */
static uint64_t
read_number(const char *path, const char *key)
{
    uint64_t number = UINT64_MAX;
    char line[128];
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return UINT64_MAX;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0) {
            char *end;
            unsigned long long value = strtoull(line + strlen(key), &end, 10);

            if (end != line + strlen(key))
                number = value;
            break;
        }
    fclose(file);
    return number;
}

static uint64_t
read_of_group(const char *folder, const char *file, const char *key)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "%.1000s/%s", folder, file);
    return read_number(path, key);
}

/* slurmstepd.scope/job_7/step_0 of version 2, slurm/uid_1000/job_7/step_0 of version 1. */
static bool
is_of_slurm(const char *folder)
{
    const char *slurm = strstr(folder, "/slurm");

    return slurm != NULL && strstr(slurm, "/job_") != NULL;
}

/* Lower the room to the unused part of a group's limit. Cached files count as unused: the kernel
 * drops them when memory is needed. */
static void
take_group(void *context, const char *folder)
{
    struct tnd_memory_room *room = context;
    uint64_t limit = read_of_group(folder, "memory.max", "");
    uint64_t used = read_of_group(folder, "memory.current", "");
    uint64_t cached = read_of_group(folder, "memory.stat", "inactive_file ");
    uint64_t left;

    if (limit == UINT64_MAX) {
        limit = read_of_group(folder, "memory.limit_in_bytes", "");
        used = read_of_group(folder, "memory.usage_in_bytes", "");
        cached = read_of_group(folder, "memory.stat", "total_inactive_file ");
    }
    if (limit == UINT64_MAX || used == UINT64_MAX)
        return;
    if (cached != UINT64_MAX && cached < used)
        used -= cached;
    left = limit > used ? limit - used : 0;
    if (left >= room->bytes)
        return;
    room->bytes = left;
    snprintf(room->why, sizeof room->why,
             "the control group %.200s has a limit of %llu, of which %llu are in use%s", folder,
             (unsigned long long)limit, (unsigned long long)used,
             is_of_slurm(folder) ? "; it is what --mem asks Slurm for" : "");
}

void
tnd_memory_room(struct tnd_memory_room *ret_room)
{
    uint64_t kilobytes = read_number("/proc/meminfo", "MemAvailable:");

    ret_room->bytes = kilobytes > UINT64_MAX / 1024 ? UINT64_MAX : kilobytes * 1024;
    snprintf(ret_room->why, sizeof ret_room->why, "the machine has no more available");
    tnd_cgroups_visit("memory", take_group, ret_room);
}
