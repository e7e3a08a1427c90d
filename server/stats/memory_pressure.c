/* memory_pressure.c - the kernel's files about pressure. */
#include "stats/memory_pressure.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "core/cgroups.h"

#define OF_MACHINE "/proc/pressure/memory"

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234", in microseconds; "full" follows. */
static uint64_t
read_total_ns(const char *path)
{
    uint64_t total_us = 0;
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return 0;
    if (fscanf(file, "some avg10=%*f avg60=%*f avg300=%*f total=%" SCNu64, &total_us) != 1)
        total_us = 0;
    fclose(file);
    return total_us * 1000;
}

/* The first that has the file is the innermost. */
static void
take_group(void *context, const char *folder)
{
    struct memory_pressure *pressure = context;

    if (pressure->path[0] != '\0')
        return;
    snprintf(pressure->path, sizeof pressure->path, "%.480s/memory.pressure", folder);
    if (access(pressure->path, R_OK) != 0)
        pressure->path[0] = '\0';
}

void
memory_pressure_open(struct memory_pressure *ret_pressure)
{
    *ret_pressure = (struct memory_pressure){ 0 };
    tnd_cgroups_visit("memory", take_group, ret_pressure);
    if (ret_pressure->path[0] == '\0')
        snprintf(ret_pressure->path, sizeof ret_pressure->path, OF_MACHINE);
    ret_pressure->before_ns = read_total_ns(ret_pressure->path);
}

uint64_t
memory_pressure_ns(const struct memory_pressure *pressure)
{
    uint64_t now_ns = read_total_ns(pressure->path);

    return now_ns > pressure->before_ns ? now_ns - pressure->before_ns : 0;
}
