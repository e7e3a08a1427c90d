/* arena.c - first fit among a few extents. */
#include "deliver/arena.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"
#include "shm/layout.h"

void
arena_open(struct arena *arena, uint64_t arena_bytes, uint32_t extent_capacity)
{
    *arena = (struct arena){ .arena_bytes = arena_bytes, .capacity = extent_capacity };
    arena->extents = tnd_zalloc(extent_capacity, sizeof *arena->extents);
}

void
arena_close(struct arena *arena)
{
    free(arena->extents);
    *arena = (struct arena){ 0 };
}

/* First fit. `offset` is where the gap before extents[index] begins, so the loop ends at the first
 * gap that is large enough, or after the last extent. */
bool
arena_take(struct arena *arena, uint64_t bytes, uint64_t *ret_offset)
{
    uint64_t offset = 0;
    uint32_t index = 0;

    must(bytes > 0);
    if (bytes > arena->arena_bytes || arena->count == arena->capacity)
        return false;
    bytes = (bytes + TND_BUFFER_ALIGN - 1) / TND_BUFFER_ALIGN * TND_BUFFER_ALIGN;
    for (; index < arena->count && arena->extents[index].offset - offset < bytes; index++)
        offset = arena->extents[index].offset + arena->extents[index].bytes;
    /* After the last extent only the end of the arena bounds the gap. The last extent's rounded
     * size may pass that end, so compare before subtracting. */
    if (index == arena->count &&
        (offset > arena->arena_bytes || arena->arena_bytes - offset < bytes))
        return false;
    memmove(&arena->extents[index + 1], &arena->extents[index],
            (arena->count - index) * sizeof *arena->extents);
    must_in_debug(offset % TND_BUFFER_ALIGN == 0);
    arena->extents[index] = (struct arena_extent){ .offset = offset, .bytes = bytes };
    arena->count++;
    arena->used_bytes += bytes;
    *ret_offset = offset;
    return true;
}

void
arena_put(struct arena *arena, uint64_t offset)
{
    uint32_t index = 0;

    while (index < arena->count && arena->extents[index].offset != offset)
        index++;
    /* An offset that was never taken is an error in the lane's own book: no trainer can cause
     * it. */
    must(index < arena->count);
    must_in_debug(arena->used_bytes >= arena->extents[index].bytes);
    arena->used_bytes -= arena->extents[index].bytes;
    arena->count--;
    memmove(&arena->extents[index], &arena->extents[index + 1],
            (arena->count - index) * sizeof *arena->extents);
}
