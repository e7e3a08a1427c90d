/* numbered.c - pointers by number. */
#include "source/files/numbered.h"

#include <stdlib.h>

#include "core/memory.h"
#include "core/must.h"

/* Block 0 has the first 2^8 numbers, block k the 2^(8+k) from 2^(8+k) - 2^8 on. */
static uint32_t
block_of(uint32_t number, uint32_t *ret_index)
{
    uint64_t shifted = (uint64_t)number + (1U << NUMBERED_FIRST_BITS);
    uint32_t top = 63 - (uint32_t)__builtin_clzll(shifted);

    *ret_index = (uint32_t)(shifted - (UINT64_C(1) << top));
    return top - NUMBERED_FIRST_BITS;
}

uint32_t
numbered_add(struct numbered *table, void *entry)
{
    uint32_t number = atomic_load_explicit(&table->count, memory_order_relaxed);
    uint32_t index;
    uint32_t block = block_of(number, &index);
    void **entries;

    must(block < NUMBERED_BLOCKS);
    entries = atomic_load_explicit(&table->blocks[block], memory_order_relaxed);
    if (entries == NULL) {
        entries = tnd_zalloc((size_t)1 << (block + NUMBERED_FIRST_BITS), sizeof *entries);
        atomic_store_explicit(&table->blocks[block], entries, memory_order_release);
    }
    entries[index] = entry;
    /* Pairs with the load in numbered_count: a thread that sees the number sees the entry. */
    atomic_store_explicit(&table->count, number + 1, memory_order_release);
    return number;
}

void *
numbered_get(const struct numbered *table, uint32_t number)
{
    uint32_t index, block;

    if (number >= numbered_count(table))
        return NULL;
    block = block_of(number, &index);
    return atomic_load_explicit(&table->blocks[block], memory_order_acquire)[index];
}

void
numbered_close(struct numbered *table)
{
    for (uint32_t i = 0; i < NUMBERED_BLOCKS; i++)
        free(atomic_exchange(&table->blocks[i], NULL));
    atomic_store(&table->count, 0);
}
