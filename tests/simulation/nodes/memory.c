/* memory.c - the allocator, which remembers the blocks of node 0. */
#include "memory.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fibers.h"

/* The blocks of node 0 by their addresses; open addressing. Every node's frees look here, and rank
 * 0's turns are timed, so it holds none that were freed. */
static struct {
    uintptr_t *blocks;
    size_t room, used, bytes, most;
} of_first;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *block);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *block);

static size_t
home_of(uintptr_t block, size_t room)
{
    return (size_t)(block * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (room - 1);
}

static size_t
find(const uintptr_t *blocks, size_t room, uintptr_t block)
{
    size_t at = home_of(block, room);

    while (blocks[at] != 0 && blocks[at] != block)
        at = (at + 1) & (room - 1);
    return at;
}

static void
grow(void)
{
    size_t room = of_first.room == 0 ? 1 << 12 : of_first.room * 2;
    uintptr_t *blocks = __real_calloc(room, sizeof *blocks);

    for (size_t i = 0; i < of_first.room; i++)
        if (of_first.blocks[i] != 0)
            blocks[find(blocks, room, of_first.blocks[i])] = of_first.blocks[i];
    __real_free(of_first.blocks);
    of_first.blocks = blocks;
    of_first.room = room;
}

static void *
note(void *block)
{
    if (block == NULL || fibers_charged() != 0)
        return block;
    if (2 * of_first.used >= of_first.room)
        grow();
    of_first.blocks[find(of_first.blocks, of_first.room, (uintptr_t)block)] = (uintptr_t)block;
    of_first.used++;
    of_first.bytes += malloc_usable_size(block);
    of_first.most = of_first.bytes > of_first.most ? of_first.bytes : of_first.most;
    return block;
}

/* Those behind it that would not be found past the gap move up. */
static void
take_out(size_t gap)
{
    size_t room = of_first.room;

    of_first.blocks[gap] = 0;
    for (size_t at = (gap + 1) & (room - 1); of_first.blocks[at] != 0; at = (at + 1) & (room - 1)) {
        size_t home = home_of(of_first.blocks[at], room);

        if (((at - home) & (room - 1)) < ((at - gap) & (room - 1)))
            continue;
        of_first.blocks[gap] = of_first.blocks[at];
        of_first.blocks[at] = 0;
        gap = at;
    }
    of_first.used--;
}

static void
forget(void *block)
{
    size_t at;

    if (block == NULL || of_first.room == 0)
        return;
    at = find(of_first.blocks, of_first.room, (uintptr_t)block);
    if (of_first.blocks[at] != (uintptr_t)block)
        return;
    take_out(at);
    of_first.bytes -= malloc_usable_size(block);
}

size_t
memory_of_first(void)
{
    return of_first.bytes;
}

size_t
memory_of_first_most(void)
{
    return of_first.most;
}

void
memory_forget(void)
{
    __real_free(of_first.blocks);
    memset(&of_first, 0, sizeof of_first);
}

void *
__wrap_malloc(size_t bytes)
{
    return note(__real_malloc(bytes));
}

void *
__wrap_calloc(size_t count, size_t bytes)
{
    return note(__real_calloc(count, bytes));
}

void *
__wrap_realloc(void *block, size_t bytes)
{
    forget(block);
    return note(__real_realloc(block, bytes));
}

void *
__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return note(__real_aligned_alloc(alignment, bytes));
}

void
__wrap_free(void *block)
{
    forget(block);
    __real_free(block);
}
