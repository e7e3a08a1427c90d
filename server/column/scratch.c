/* scratch.c - a bump allocator over a chain of blocks, which are kept from task to task. */
#include "column/scratch.h"

#include <stdint.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/must.h"

enum { ALIGNMENT = 64, TAIL = 64, FIRST_BLOCK = 256 << 10 };

struct block {
    struct block *next;
    size_t bytes; /* of payload */
    uint8_t *payload;
};

/* Memory that is kept for the task; lies in the task's. */
struct kept {
    struct kept *next;
    void (*release)(void *);
    void *what;
};

struct scratch {
    struct block *first, *current;
    size_t used;              /* of current */
    struct budget_task *task; /* or NULL */
    struct kept *kept;
    struct words_note *words;
};

static struct block *
block_new(size_t bytes)
{
    struct block *block = tnd_alloc(sizeof *block);

    *block = (struct block){ .bytes = bytes, .payload = tnd_alloc_aligned(ALIGNMENT, bytes) };
    return block;
}

struct scratch *
scratch_open(void)
{
    struct scratch *scratch = tnd_zalloc(1, sizeof *scratch);

    scratch->first = scratch->current = block_new(FIRST_BLOCK);
    return scratch;
}

static void
close_blocks(struct block *block)
{
    for (struct block *next; block != NULL; block = next) {
        next = block->next;
        free(block->payload);
        free(block);
    }
}

void
scratch_close(struct scratch *scratch)
{
    if (scratch == NULL)
        return;
    scratch_reset(scratch);
    close_blocks(scratch->first);
    free(scratch);
}

/* Go to the next kept block that is large enough, or add one. Sizes double, so that a task needs
 * few blocks. */
static void
advance(struct scratch *scratch, size_t bytes)
{
    struct block *block = scratch->current;

    while (block->next != NULL) {
        block = block->next;
        if (block->bytes >= bytes)
            break;
    }
    if (block == scratch->current || block->bytes < bytes) {
        size_t wanted = 2 * block->bytes;

        block->next = block_new(bytes > wanted ? bytes : wanted);
        block = block->next;
    }
    scratch->current = block;
    scratch->used = 0;
}

void *
scratch_alloc(struct scratch *scratch, size_t bytes)
{
    size_t whole = (bytes + TAIL + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    void *memory;

    /* A size near SIZE_MAX would wrap to a small one. */
    must(whole > bytes);
    if (scratch->current->bytes - scratch->used < whole)
        advance(scratch, whole);
    memory = scratch->current->payload + scratch->used;
    scratch->used += whole;
    return memory;
}

void *
scratch_array(struct scratch *scratch, size_t count, size_t bytes)
{
    size_t total;

    must(!__builtin_mul_overflow(count, bytes, &total));
    return scratch_alloc(scratch, total);
}

void
scratch_keep(struct scratch *scratch, void (*release)(void *), void *what)
{
    struct kept *kept = scratch_alloc(scratch, sizeof *kept);

    *kept = (struct kept){ .next = scratch->kept, .release = release, .what = what };
    scratch->kept = kept;
}

struct words_note **
scratch_words(struct scratch *scratch)
{
    return &scratch->words;
}

void
scratch_share(struct scratch *scratch, struct budget_task *task)
{
    scratch->task = task;
}

tundish_status
scratch_ask(struct scratch *scratch, uint64_t bytes)
{
    return scratch->task != NULL ? budget_take(scratch->task, bytes) : TUNDISH_OK;
}

uint64_t
scratch_ask_most(const struct scratch *scratch)
{
    return scratch->task != NULL ? budget_of_task(scratch->task) : UINT64_MAX;
}

/* Free all blocks after the first that do not fit in `bytes`. */
static void
trim(struct scratch *scratch, uint64_t bytes)
{
    struct block *block = scratch->first;

    while (block->next != NULL && block->next->bytes <= bytes) {
        block = block->next;
        bytes -= block->bytes;
    }
    close_blocks(block->next);
    block->next = NULL;
}

void
scratch_reset(struct scratch *scratch)
{
    for (struct kept *kept = scratch->kept; kept != NULL; kept = kept->next)
        kept->release(kept->what);
    scratch->kept = NULL;
    scratch->words = NULL;
    scratch->current = scratch->first;
    scratch->used = 0;
    if (scratch->task == NULL || scratch->task->held == 0)
        return;
    trim(scratch, budget_kept(scratch->task));
    budget_give(scratch->task);
}
