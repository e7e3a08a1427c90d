/* memory_pressure.h - how long programs had to wait for memory.
 *
 * The kernel (PSI, Linux 4.20) counts the time that threads were stopped because a page had to be
 * made free or read again: of each control group of version 2, and of the machine. Counted is the
 * innermost group of this process that has such a file, else the machine. A file that cannot be
 * read counts as 0.
 */
#ifndef STATS_MEMORY_PRESSURE_H
#define STATS_MEMORY_PRESSURE_H

#include <stdint.h>

struct memory_pressure {
    char path[512];
    uint64_t before_ns; /* when it was opened */
};

void memory_pressure_open(struct memory_pressure *ret_pressure);

/* Nanoseconds since then in which at least one thread was stopped. */
uint64_t memory_pressure_ns(const struct memory_pressure *pressure);

#endif
