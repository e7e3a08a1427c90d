/* memory.c - the allocator: one heap for all nodes but node 0.
 *
 * Node 0's turns are timed, and a server has a heap to itself. In one that it shared with thousands
 * it would look after the blocks of all. Aligned blocks are not in it, and not counted.
 */
#include "memory.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fibers.h"

enum { KINDS = 33 };
static const size_t HEAP_BYTES = (size_t)1 << (KINDS - 1); /* of addresses */

/* 1 << kind bytes, with this. */
struct block {
    union {
        struct block *next; /* of those that are free */
        size_t bytes;       /* that were asked for */
    };
    uint64_t kind;
    uint8_t body[];
};

static struct {
    uint8_t *start;
    size_t end; /* blocks were made up to here */
    struct block *free[KINDS];
    size_t bytes, most;
} heap;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void __real_free(void *block);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_reallocarray(void *block, size_t count, size_t bytes);
void __wrap_free(void *block);

static bool
has_heap(void)
{
#if !defined __SANITIZE_ADDRESS__ /* which looks into its own blocks only */
    if (heap.start == NULL)
        heap.start = mmap(NULL, HEAP_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
#endif
    return heap.start != NULL && heap.start != MAP_FAILED;
}

static struct block *
block_of(void *body)
{
    return (struct block *)((uint8_t *)body - offsetof(struct block, body));
}

static bool
is_in_heap(const void *body)
{
    return (uintptr_t)body - (uintptr_t)heap.start < heap.end;
}

static void
set_bytes(struct block *block, size_t bytes)
{
    block->bytes = bytes;
    heap.bytes += bytes;
    heap.most = heap.bytes > heap.most ? heap.bytes : heap.most;
}

/* NULL: it is not node 0 that asks, or there is no room. */
static void *
take(size_t bytes)
{
    size_t whole = bytes + sizeof(struct block);
    uint64_t kind = 64 - (uint64_t)__builtin_clzll(whole - 1);
    struct block *block;

    if (fibers_charged() != 0 || bytes > HEAP_BYTES / 2 || !has_heap())
        return NULL;
    block = heap.free[kind];
    if (block != NULL) {
        heap.free[kind] = block->next;
    } else {
        if (HEAP_BYTES - heap.end < (size_t)1 << kind)
            return NULL;
        block = (struct block *)(heap.start + heap.end);
        block->kind = kind;
        heap.end += (size_t)1 << kind;
    }
    set_bytes(block, bytes);
    return block->body;
}

static void
give_back(void *body)
{
    struct block *block = block_of(body);

    heap.bytes -= block->bytes;
    block->next = heap.free[block->kind];
    heap.free[block->kind] = block;
}

size_t
memory_of_first_most(void)
{
    return heap.most;
}

void *
__wrap_malloc(size_t bytes)
{
    void *body = take(bytes);

    return body != NULL ? body : __real_malloc(bytes);
}

void *
__wrap_calloc(size_t count, size_t bytes)
{
    void *body = count == 0 || bytes <= SIZE_MAX / count ? take(count * bytes) : NULL;

    return body != NULL ? memset(body, 0, count * bytes) : __real_calloc(count, bytes);
}

void *
__wrap_realloc(void *body, size_t bytes)
{
    struct block *block;
    void *grown;

    if (body == NULL)
        return __wrap_malloc(bytes);
    if (!is_in_heap(body))
        return __real_realloc(body, bytes);
    block = block_of(body);
    if (bytes <= ((size_t)1 << block->kind) - sizeof *block) {
        heap.bytes -= block->bytes;
        set_bytes(block, bytes);
        return body;
    }
    grown = __wrap_malloc(bytes);
    if (grown == NULL)
        return NULL;
    memcpy(grown, body, block->bytes);
    give_back(body);
    return grown;
}

void *
__wrap_reallocarray(void *body, size_t count, size_t bytes)
{
    return count == 0 || bytes <= SIZE_MAX / count ? __wrap_realloc(body, count * bytes) : NULL;
}

void
__wrap_free(void *body)
{
    if (is_in_heap(body))
        give_back(body);
    else
        __real_free(body);
}
