/* numbered.h - pointers by number: added under the caller's lock, looked up without one.
 *
 * Entries lie in blocks, each twice as large as the one before, that never move; so a number that
 * somebody holds can be looked up while others are being added.
 */
#ifndef SOURCE_FILES_NUMBERED_H
#define SOURCE_FILES_NUMBERED_H

#include <stdatomic.h>
#include <stdint.h>

enum { NUMBERED_FIRST_BITS = 8, NUMBERED_BLOCKS = 32 - NUMBERED_FIRST_BITS };

struct numbered {
    _Atomic(void **) blocks[NUMBERED_BLOCKS];
    _Atomic uint32_t count;
};

/* Add an entry; its number is the count before. One thread at a time. */
uint32_t numbered_add(struct numbered *table, void *entry);

/* The entry of a number below the count, or NULL. */
void *numbered_get(const struct numbered *table, uint32_t number);

static inline uint32_t
numbered_count(const struct numbered *table)
{
    /* Pairs with the store in numbered_add: entries below the count are there. */
    return atomic_load_explicit(&table->count, memory_order_acquire);
}

/* Free the blocks, not the entries. */
void numbered_close(struct numbered *table);

#endif
