/* cpu_room.c - affinity, and the quotas of control groups. */
#include "core/cpu_room.h"

#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "core/cgroups.h"

enum { PATH_BYTES = 1100 };

/* The first numbers of a file of the kernel's. */
static int
read_numbers(const char *folder, const char *name, int64_t *ret_first, int64_t *ret_second)
{
    char path[PATH_BYTES];
    FILE *file;
    int count;

    snprintf(path, sizeof path, "%.1000s/%s", folder, name);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    count = fscanf(file, "%" SCNd64 " %" SCNd64, ret_first, ret_second);
    fclose(file);
    return count;
}

/* "max 100000" of version 2 and -1 of version 1 mean: without a limit. */
static bool
read_quota(const char *folder, int64_t *ret_quota, int64_t *ret_period)
{
    int64_t none;

    if (read_numbers(folder, "cpu.max", ret_quota, ret_period) != 2 &&
        (read_numbers(folder, "cpu.cfs_quota_us", ret_quota, &none) < 1 ||
         read_numbers(folder, "cpu.cfs_period_us", ret_period, &none) < 1))
        return false;
    return *ret_quota > 0 && *ret_period > 0;
}

static void
take_group(void *context, const char *folder)
{
    struct tnd_cpu_room *room = context;
    int64_t quota = 0, period = 0, count;

    if (!read_quota(folder, &quota, &period))
        return;
    /* One and a half processors keep two threads busy, most of the time. */
    count = quota / period + (quota % period != 0);
    if (count >= room->count)
        return;
    room->count = count < 1 ? 1 : (uint32_t)count;
    snprintf(room->why, sizeof room->why, "the control group %.200s allows %.1f processors' time",
             folder, (double)quota / (double)period);
}

void
tnd_cpu_room(struct tnd_cpu_room *ret_room)
{
    struct tnd_cpu_room room = { .count = 1 };
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t mine;

    room.online = room.count = online < 1 ? 1 : (uint32_t)online;
    /* It fails where there are more processors than the set can hold: then they all count. */
    if (sched_getaffinity(0, sizeof mine, &mine) == 0 && (uint32_t)CPU_COUNT(&mine) < room.count) {
        room.count = (uint32_t)CPU_COUNT(&mine);
        snprintf(room.why, sizeof room.why, "its affinity (taskset, a batch system) allows %u",
                 room.count);
    }
    tnd_cgroups_visit("cpu", take_group, &room);
    *ret_room = room;
}

uint32_t
tnd_cpu_count(void)
{
    struct tnd_cpu_room room;

    tnd_cpu_room(&room);
    return room.count;
}
