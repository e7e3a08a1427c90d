/* block_cache.c - a set-associative cache of blocks.
 *
 * A slot is guarded by one counter: a reader that copies from it adds one. A reader that fills it
 * sets the top bit, which only succeeds while nothing is copied. A reader that finds the bit set
 * reads the file instead, so nothing ever waits.
 *
 * A block costs what a dozen rows cost, so it must serve more than that. One set in 64 always takes
 * blocks in, and the reads that these serve decide whether the others do. A block is read when a
 * few of its rows have been asked for, not with the first: the first batch of a stream, which a
 * trainer waits for, may have its rows all over the files.
 */
#include "source/files/block_cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/memory.h"
#include "core/must.h"
#include "source/files/file.h"

enum {
    WAYS = 8,
    SAMPLE_SETS = 64,  /* one of this many takes every block */
    SAMPLE_FILLS = 32, /* between decisions */
    WORTH_HITS = 12,   /* reads that a block must serve */
    ASKS_MAX = 12, /* rows of a block that are read without it: as many as the block itself costs */
    ASKS_SHARE = 64, /* ... but no more than one in so many that it has */
    ASKS_A_SLOT = 4  /* counters of asks: collisions only bring a block early */
};
#define FILLING (UINT32_C(1) << 31)

struct slot {
    _Atomic uint64_t tag;     /* file number + 1, block number; 0: empty */
    _Atomic uint32_t guard;   /* how many copy from it, and FILLING */
    _Atomic uint32_t used_at; /* the cache's clock at its last use */
    uint32_t bytes;           /* less than a block at the end of a file */
    _Atomic uint32_t block;   /* block of the memory + 1; 0: it has none yet */
};

struct block_cache {
    uint32_t set_count; /* a power of two */
    struct slot *slots;
    uint8_t *memory;
    size_t memory_bytes;
    _Atomic uint32_t blocks_given; /* given to slots: in the order of their first use, so that the
                                first few blocks do not touch as many huge pages */
    _Atomic uint32_t clock;        /* fills so far */
    _Atomic uint8_t *asks;         /* of blocks that are not here, by hash of their tags */
    _Atomic bool admits;
    _Atomic uint32_t sample_hits, sample_fills;
};

struct block_cache *
block_cache_open(uint64_t bytes)
{
    struct block_cache *cache = tnd_zalloc(1, sizeof *cache);
    /* MAP_NORESERVE: the memory is taken block by block, and a machine without overcommit must not
     * refuse address space that is never touched. */
    uint64_t sets = bytes / (WAYS * BLOCK_BYTES);

    cache->set_count = 1;
    while (cache->set_count <= sets / 2 && cache->set_count < UINT32_C(1) << 20)
        cache->set_count *= 2;
    cache->memory_bytes = (size_t)cache->set_count * WAYS * BLOCK_BYTES;
    cache->memory = mmap(NULL, cache->memory_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (cache->memory == MAP_FAILED) {
        free(cache);
        return NULL;
    }
    cache->slots = tnd_zalloc((size_t)cache->set_count * WAYS, sizeof *cache->slots);
    cache->asks = tnd_zalloc((size_t)cache->set_count * WAYS * ASKS_A_SLOT, sizeof *cache->asks);
    madvise(cache->memory, cache->memory_bytes, MADV_HUGEPAGE); /* rows lie all over it */
    atomic_store(&cache->admits, true);
    return cache;
}

void
block_cache_close(struct block_cache *cache)
{
    if (cache == NULL)
        return;
    munmap(cache->memory, cache->memory_bytes);
    free(cache->slots);
    free(cache->asks);
    free(cache);
}

/* Fibonacci hashing: tags of one file differ in their lowest bits only, and the high bits of the
 * product depend on all of them. */
static uint64_t
mix_tag(uint64_t tag)
{
    return tag * UINT64_C(0x9E3779B97F4A7C15) >> 32;
}

static uint32_t
set_of(const struct block_cache *cache, uint64_t tag)
{
    return (uint32_t)(mix_tag(tag) >> 8) & (cache->set_count - 1);
}

/* The memory of a slot that has been filled before. */
static uint8_t *
memory_of(const struct block_cache *cache, const struct slot *slot)
{
    uint32_t block = atomic_load_explicit(&slot->block, memory_order_relaxed);

    must(block > 0);
    return cache->memory + (size_t)(block - 1) * BLOCK_BYTES;
}

/* Give memory to a slot that is claimed. A block stays with its slot, so this happens once for
 * each. */
static void
give_memory(struct block_cache *cache, struct slot *slot)
{
    if (atomic_load_explicit(&slot->block, memory_order_relaxed) == 0)
        atomic_store_explicit(
            &slot->block,
            atomic_fetch_add_explicit(&cache->blocks_given, 1, memory_order_relaxed) + 1,
            memory_order_relaxed);
}

/* The store is skipped if nothing changes: a store would take the cache line away from the other
 * readers. */
static void
use_slot(struct block_cache *cache, struct slot *slot)
{
    uint32_t now = atomic_load_explicit(&cache->clock, memory_order_relaxed);

    if (atomic_load_explicit(&slot->used_at, memory_order_relaxed) != now)
        atomic_store_explicit(&slot->used_at, now, memory_order_relaxed);
}

/* Copy from the slot if it still holds that block and has those bytes. */
static bool
copy_from(struct block_cache *cache, struct slot *slot, uint64_t tag, void *to, size_t begin,
          size_t bytes)
{
    /* Pairs with the release in fill_slot: the filled bytes are visible. */
    uint32_t before = atomic_fetch_add_explicit(&slot->guard, 1, memory_order_acquire);
    bool is_there = (before & FILLING) == 0 &&
                    atomic_load_explicit(&slot->tag, memory_order_relaxed) == tag &&
                    begin + bytes <= slot->bytes;

    if (is_there) {
        memcpy(to, memory_of(cache, slot) + begin, bytes);
        use_slot(cache, slot);
    }
    /* Pairs with the claim in fill_slot: the copy is done before the slot is filled again. */
    atomic_fetch_sub_explicit(&slot->guard, 1, memory_order_release);
    return is_there;
}

/* Claim the least recently used slot of the set. Returns NULL if another thread copies from it or
 * fills it: then the file is read instead, which is cheaper than to wait. */
static struct slot *
claim_slot(struct block_cache *cache, struct slot *set)
{
    uint32_t now = atomic_load_explicit(&cache->clock, memory_order_relaxed);
    struct slot *oldest = NULL;
    uint32_t age = 0;
    uint32_t nobody = 0;

    for (int i = 0; i < WAYS; i++) {
        uint32_t used = atomic_load_explicit(&set[i].used_at, memory_order_relaxed);
        bool is_empty = atomic_load_explicit(&set[i].tag, memory_order_relaxed) == 0;
        /* The clock may wrap around; the difference is right all the same. */
        uint32_t its_age = is_empty ? UINT32_MAX : now - used;

        if (oldest == NULL || its_age > age) {
            oldest = &set[i];
            age = its_age;
        }
    }
    if (!atomic_compare_exchange_strong_explicit(&oldest->guard, &nobody, FILLING,
                                                 memory_order_acquire, memory_order_relaxed))
        return NULL;
    return oldest;
}

/* Decide whether blocks are worth their cost, by the reads that the sampled sets have served. */
static void
decide_worth(struct block_cache *cache)
{
    uint32_t fills = atomic_fetch_add_explicit(&cache->sample_fills, 1, memory_order_relaxed) + 1;
    uint32_t hits;

    if (fills % SAMPLE_FILLS != 0)
        return;
    hits = atomic_exchange_explicit(&cache->sample_hits, 0, memory_order_relaxed);
    atomic_store_explicit(&cache->admits, hits >= SAMPLE_FILLS * WORTH_HITS, memory_order_relaxed);
}

/* Have enough of the block's rows been asked for? The counter is not exact: two threads may count
 * one row, which costs one more read without the block. */
static bool
is_asked_for(struct block_cache *cache, uint64_t tag, size_t bytes)
{
    size_t count = (size_t)cache->set_count * WAYS * ASKS_A_SLOT;
    _Atomic uint8_t *asks = &cache->asks[mix_tag(tag) & (count - 1)];
    uint8_t before = atomic_load_explicit(asks, memory_order_relaxed);
    bool is_enough = before >= ASKS_MAX || (before + 1U) * ASKS_SHARE * bytes > BLOCK_BYTES;

    atomic_store_explicit(asks, is_enough ? 0 : (uint8_t)(before + 1), memory_order_relaxed);
    return is_enough;
}

/* Fill a slot with the block, and copy from it the bytes that are asked for. */
static bool
fill_slot(struct block_cache *cache, struct source_file *file, struct slot *set, uint64_t tag,
          void *to, size_t begin, size_t bytes)
{
    uint64_t offset = (tag & UINT32_MAX) * BLOCK_BYTES;
    struct slot *slot = claim_slot(cache, set);
    size_t got = 0;
    bool is_good;

    if (slot == NULL)
        return false;
    give_memory(cache, slot);
    /* From now on others see that the block is coming, and do not bring it twice. */
    atomic_store_explicit(&slot->tag, tag, memory_order_relaxed);
    is_good =
        file_read_up_to(file, memory_of(cache, slot), BLOCK_BYTES, offset, &got) == TUNDISH_OK &&
        begin + bytes <= got;
    /* A file may end inside the block. The bytes after its end are those of another block, so
     * copy_from checks the length. */
    slot->bytes = (uint32_t)got;
    if (is_good)
        memcpy(to, memory_of(cache, slot) + begin, bytes);
    else
        atomic_store_explicit(&slot->tag, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->used_at,
                          atomic_fetch_add_explicit(&cache->clock, 1, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_fetch_sub_explicit(&slot->guard, FILLING, memory_order_release);
    return is_good;
}

/* Copy bytes that lie in one block. */
static bool
read_block(struct block_cache *cache, struct source_file *file, void *to, size_t bytes,
           uint64_t offset)
{
    uint64_t tag = ((uint64_t)file->number + 1) << 32 | offset / BLOCK_BYTES;
    size_t begin = (size_t)(offset % BLOCK_BYTES);
    uint32_t number = set_of(cache, tag);
    struct slot *set = &cache->slots[(size_t)number * WAYS];
    bool is_sample = number % SAMPLE_SETS == 0;

    for (int i = 0; i < WAYS; i++) {
        if (atomic_load_explicit(&set[i].tag, memory_order_relaxed) != tag)
            continue;
        if (!copy_from(cache, &set[i], tag, to, begin, bytes))
            return false; /* on its way in or out, or the file was shorter then */
        if (is_sample)
            atomic_fetch_add_explicit(&cache->sample_hits, 1, memory_order_relaxed);
        return true;
    }
    if (is_sample)
        decide_worth(cache);
    else if (!atomic_load_explicit(&cache->admits, memory_order_relaxed) ||
             !is_asked_for(cache, tag, bytes))
        return false;
    return fill_slot(cache, file, set, tag, to, begin, bytes);
}

/* Only a hint: the tag may change meanwhile, and then a useless line is fetched, but no invalid
 * one, since a slot keeps its memory. */
void
block_cache_prefetch(const struct block_cache *cache, const struct source_file *file, size_t bytes,
                     uint64_t offset)
{
    uint64_t tag = ((uint64_t)file->number + 1) << 32 | offset / BLOCK_BYTES;
    const struct slot *set = &cache->slots[(size_t)set_of(cache, tag) * WAYS];

    for (int i = 0; i < WAYS; i++)
        if (atomic_load_explicit(&set[i].tag, memory_order_relaxed) == tag &&
            atomic_load_explicit(&set[i].block, memory_order_relaxed) != 0) {
            const uint8_t *row = memory_of(cache, &set[i]) + offset % BLOCK_BYTES;

            for (size_t k = 0; k < bytes; k += 64)
                __builtin_prefetch(row + k);
            return;
        }
}

bool
block_cache_read(struct block_cache *cache, struct source_file *file, void *to, size_t bytes,
                 uint64_t offset)
{
    size_t first = BLOCK_BYTES - (size_t)(offset % BLOCK_BYTES);

    must(bytes <= BLOCK_ROW_BYTES);
    /* The block's number has 32 bits in the tag. */
    if (offset / BLOCK_BYTES >= UINT32_MAX)
        return false;
    if (bytes <= first)
        return read_block(cache, file, to, bytes, offset);
    return read_block(cache, file, to, first, offset) &&
           read_block(cache, file, (uint8_t *)to + first, bytes - first, offset + first);
}
