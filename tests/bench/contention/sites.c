/* sites.c - the tables of sites.h: open addressing, entries that are never given up. */
#include "sites.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PROBES = 64 };

static struct sites *all;

__attribute__((constructor(101))) static void
open_sites(void)
{
    const char *name = getenv("BENCH_SITES");
    int file = name == NULL ? -1 : open(name, O_RDWR | O_CLOEXEC);
    void *bytes;

    if (file < 0)
        return;
    bytes = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (bytes != MAP_FAILED)
        all = bytes;
}

struct sites *
sites_all(void)
{
    return all;
}

static uint64_t
mix(uint64_t word)
{
    word *= UINT64_C(0x9e3779b97f4a7c15);
    return word ^ word >> 29;
}

/* Claim the entry for `key`, or see that it has it. */
static bool
is_of(_Atomic uint64_t *entry, uint64_t key)
{
    uint64_t old = atomic_load_explicit(entry, memory_order_relaxed);

    return old == key ||
           (old == 0 && (atomic_compare_exchange_strong(entry, &old, key) || old == key));
}

/* A lock has few places, and they are entries of their own with one key: the lock, with the place
 * mixed in. The two words are stored again each time, always the same. */
struct lock_site *
sites_lock(const void *lock, const void *place)
{
    uint64_t hash = mix((uint64_t)(uintptr_t)lock ^ mix((uint64_t)(uintptr_t)place));

    for (uint64_t i = 0; i < PROBES; i++) {
        struct lock_site *site = &all->locks[(hash + i) % SITES_LOCKS];
        uint64_t unset = 0;

        if (atomic_load_explicit(&site->lock, memory_order_acquire) == 0) {
            /* The place first, so that whoever sees the lock sees both. */
            if (!atomic_compare_exchange_strong(&site->place, &unset, (uint64_t)(uintptr_t)place)) {
                i--; /* another thread is filling this entry */
                continue;
            }
            atomic_store_explicit(&site->lock, (uint64_t)(uintptr_t)lock, memory_order_release);
        }
        if (site->lock == (uint64_t)(uintptr_t)lock && site->place == (uint64_t)(uintptr_t)place)
            return site;
    }
    return NULL;
}

struct count_site *
sites_count(enum site_kind kind, const void *place, const void *from)
{
    uint64_t key = mix((uint64_t)(uintptr_t)place * 3 + mix((uint64_t)(uintptr_t)from) + kind) << 2;

    key |= (uint64_t)kind;
    for (uint64_t i = 0; i < PROBES; i++) {
        struct count_site *site = &all->counts[((key >> 2) + i) % SITES_COUNTS];

        if (!is_of(&site->key, key))
            continue;
        atomic_store_explicit(&site->place, (uint64_t)(uintptr_t)place, memory_order_relaxed);
        atomic_store_explicit(&site->from, (uint64_t)(uintptr_t)from, memory_order_relaxed);
        return site;
    }
    return NULL;
}

uint32_t
sites_bucket(uint64_t ns)
{
    uint32_t bits, bucket;

    if (ns < SITES_STEPS)
        return (uint32_t)ns;
    bits = 63 - (uint32_t)__builtin_clzll(ns);
    bucket = (bits - 2) * SITES_STEPS + (uint32_t)(ns >> (bits - 3) & 7);
    return bucket < SITES_BUCKETS ? bucket : SITES_BUCKETS - 1;
}
