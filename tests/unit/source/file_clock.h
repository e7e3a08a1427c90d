/* file_clock.h - a clock by which a file is as old as a test says. */
#ifndef UNIT_SOURCE_FILE_CLOCK_H
#define UNIT_SOURCE_FILE_CLOCK_H

#include <stdint.h>
#include <sys/stat.h>

#include "core/clock.h"

/* Results are kept of files that have not changed for two seconds. */
static const int64_t OLD_NS = 2100000000, YOUNG_NS = 1900000000;
static int64_t age_ns;
static struct stat written; /* the file */

static int64_t
standing(void *context)
{
    (void)context;
    return 1;
}

static int64_t
wall(void *context)
{
    (void)context;
    return written.st_ctim.tv_sec * INT64_C(1000000000) + written.st_ctim.tv_nsec + age_ns;
}

static const struct tnd_clock file_clock = { standing, wall, NULL };

#endif
