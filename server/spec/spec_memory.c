/* spec_memory.c - an arena: the values of a pipeline file are all freed together. */
#include "spec/spec_memory.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"

enum { BLOCK_BYTES = 64 * 1024 };

struct block {
    struct block *next;
    size_t used_bytes, total_bytes;
    max_align_t data[];
};

struct spec_memory {
    struct block *blocks; /* the first is the one being filled */
};

struct spec_memory *
spec_memory_open(void)
{
    return tnd_zalloc(1, sizeof(struct spec_memory));
}

void
spec_memory_close(struct spec_memory *memory)
{
    if (memory == NULL)
        return;
    while (memory->blocks != NULL) {
        struct block *block = memory->blocks;

        memory->blocks = block->next;
        free(block);
    }
    free(memory);
}

static struct block *
block_with_room(struct spec_memory *memory, size_t bytes)
{
    /* Only the newest block is looked at. The rest of the others is a few kilobytes in a file's
     * life. */
    struct block *block = memory->blocks;
    size_t total_bytes = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;

    if (block != NULL && block->total_bytes - block->used_bytes >= bytes)
        return block;
    block = tnd_zalloc(1, sizeof *block + total_bytes);
    block->total_bytes = total_bytes;
    block->next = memory->blocks;
    memory->blocks = block;
    return block;
}

void *
spec_memory_take(struct spec_memory *memory, size_t count, size_t bytes)
{
    size_t wanted_bytes;
    struct block *block;
    void *taken;

    must(!__builtin_mul_overflow(count, bytes, &wanted_bytes));
    must(wanted_bytes <= SIZE_MAX - sizeof *block - alignof(max_align_t));
    /* Rounded up, so that every allocation is aligned for any type. */
    wanted_bytes = (wanted_bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    block = block_with_room(memory, wanted_bytes);
    taken = (char *)block->data + block->used_bytes;
    block->used_bytes += wanted_bytes;
    return taken;
}

char *
spec_memory_text(struct spec_memory *memory, const char *text, size_t text_bytes)
{
    char *copy = spec_memory_take(memory, text_bytes + 1, 1);

    if (text_bytes > 0)
        memcpy(copy, text, text_bytes);
    return copy;
}

char *
spec_memory_sprintf(struct spec_memory *memory, const char *format, ...)
{
    va_list arguments;
    char *text, *copy;

    va_start(arguments, format);
    tnd_must_have(vasprintf(&text, format, arguments) >= 0);
    va_end(arguments);
    copy = spec_memory_text(memory, text, strlen(text));
    free(text);
    return copy;
}
