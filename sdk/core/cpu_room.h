/* cpu_room.h - how many processors this process can keep busy. */
#ifndef TND_CORE_CPU_ROOM_H
#define TND_CORE_CPU_ROOM_H

#include <stdint.h>

/* The minimum of the processors that are online, those of the affinity mask, and the CPU quota of
 * the control groups. Threads beyond these only wait for each other. */
struct tnd_cpu_room {
    uint32_t count; /* at least 1 */
    uint32_t online;
    char why[320]; /* a sentence's end for messages: who limits it; "" if nobody does */
};

void tnd_cpu_room(struct tnd_cpu_room *ret_room);

/* Its count alone: how many threads are worth while. */
uint32_t tnd_cpu_count(void);

#endif
