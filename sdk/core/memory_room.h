/* memory_room.h - how much memory this process can still take. */
#ifndef TND_CORE_MEMORY_ROOM_H
#define TND_CORE_MEMORY_ROOM_H

#include <stdint.h>

/* Memory that can be had without hurting anybody: within what the machine has, and within the limit
 * of each control group that this process is in. Asking the kernel for more does not fail: it ends
 * some process, perhaps a trainer. */
struct tnd_memory_room {
    uint64_t bytes;
    char why[320]; /* a sentence's end for messages: whose limit it is, and what is in use */
};

void tnd_memory_room(struct tnd_memory_room *ret_room);

#endif
