/* arena.h - which bytes of a lane's payload room are in use.
 *
 * There are never more extents than slots, so a sorted array and first fit do: low addresses are
 * used again soon, while they are still in the caches.
 */
#ifndef DELIVER_ARENA_H
#define DELIVER_ARENA_H

#include <stdbool.h>
#include <stdint.h>

struct arena_extent {
    uint64_t offset;
    uint64_t bytes;
};

struct arena {
    uint64_t arena_bytes;
    uint64_t used_bytes;
    uint32_t count, capacity;
    struct arena_extent *extents; /* by offset */
};

void arena_open(struct arena *arena, uint64_t arena_bytes, uint32_t extent_capacity);
void arena_close(struct arena *arena); /* accepts zeros */

/* Find room for that many bytes (not 0), rounded up to TND_BUFFER_ALIGN. False: there is no room
 * now. */
bool arena_take(struct arena *arena, uint64_t bytes, uint64_t *ret_offset);

/* Give back the extent at an offset that arena_take returned. */
void arena_put(struct arena *arena, uint64_t offset);

#endif
