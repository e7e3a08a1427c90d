/* memory_room.h - how much memory this process can still take. */
#ifndef TND_CORE_MEMORY_ROOM_H
#define TND_CORE_MEMORY_ROOM_H

#include <stdint.h>

/* Memory that this process can take without harm: within the machine's free memory, and within the
 * limit of each control group that it is in. A larger allocation does not fail: the kernel then
 * kills a process, perhaps a trainer. */
struct tnd_memory_room {
    uint64_t bytes;
    char why[352]; /* a sentence's end for messages: whose limit it is, and what is in use */
};

void tnd_memory_room(struct tnd_memory_room *ret_room);

#endif
