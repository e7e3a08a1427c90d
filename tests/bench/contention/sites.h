/* sites.h - counters by place in the program, in a file that another process reads meanwhile.
 *
 * A place is the return address of the call that is counted; harness/cores.py finds its function.
 * The file is made by harness/cores.py, zeroed, and its name is in BENCH_SITES. Without it nothing
 * is counted.
 */
#ifndef CONTENTION_SITES_H
#define CONTENTION_SITES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* cores.py has these numbers, too. */
enum {
    SITES_LOCKS = 2048,
    SITES_COUNTS = 16384,
    SITES_STEPS = 8,
    SITES_BUCKETS = 40 * SITES_STEPS
};

enum site_kind { SITE_ATOMIC = 1, SITE_MOVE };

/* Acquisitions of one lock at one place. */
struct lock_site {
    _Atomic uint64_t lock; /* 0: this entry is free */
    _Atomic uint64_t place;
    _Atomic uint64_t taken;
    _Atomic uint64_t found_taken; /* of these, when another thread had it */
    _Atomic uint64_t held_ns;
    _Atomic uint64_t buckets[SITES_BUCKETS]; /* by how long it was held: sites_bucket */
};

/* SITE_ATOMIC: read-modify-writes at `place`. SITE_MOVE: a cache line that the code at `from` had
 * written was asked for by another thread at `place`; `apart`: of these, for other bytes only. */
struct count_site {
    _Atomic uint64_t key; /* 0: this entry is free */
    _Atomic uint64_t place, from;
    _Atomic uint64_t count;
    _Atomic uint64_t apart;
    _Atomic uint64_t to_write; /* of the moves, those for writing */
};

struct sites {
    struct lock_site locks[SITES_LOCKS];
    struct count_site counts[SITES_COUNTS];
};

/* NULL: nothing is counted. */
struct sites *sites_all(void);

/* NULL: the table is full. */
struct lock_site *sites_lock(const void *lock, const void *place);
struct count_site *sites_count(enum site_kind kind, const void *place, const void *from);

/* Powers of two, in eight steps each. */
uint32_t sites_bucket(uint64_t ns);

static inline void
sites_add(_Atomic uint64_t *counter, uint64_t value)
{
    atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

#endif
