/* ring.h - the counters of a lane, and how each side waits for the other at no cost to it.
 *
 * The server counts `published` up, the consumer `released`. A side that finds nothing to do looks
 * for a while (spin), then raises a flag in a line of its own, looks once more, and sleeps. A side
 * that makes progress stores its counter first and reads the other's flag after that. All of these
 * are seq_cst, so either the sleeper sees the progress or the other side sees the flag. While
 * neither side sleeps there are no system calls. Every sleep has a time limit, so a peer that lies
 * or dies causes a delay, never a hang.
 */
#ifndef TND_SHM_RING_H
#define TND_SHM_RING_H

#include <stdbool.h>

#include "shm/layout.h"

/* A consumer wakes at least this often to see whether the server is still there. */
#define TND_RING_SLEEP_MAX_NS INT64_C(100000000)

static inline void
tnd_ring_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#endif
}

/* Server: everything below `published` is with the consumers now. The caller then looks at each
 * consumer's `sleeping` with tnd_ring_is_asleep, and wakes all if one is. */
void tnd_ring_publish(struct tnd_batches *batches, uint64_t published);

/* Server: let waiting consumers look at their sockets. */
void tnd_ring_notify(struct tnd_batches *batches);

/* The descriptor that a consumer polls instead of sleeping: readable after each raise, until it is
 * read. It is a timer rather than an eventfd. All holders share a descriptor's flags, so a consumer
 * could make writes to an eventfd block, and with them the server. Setting a timer never blocks.
 * -1: see errno. Any thread may raise it. */
int tnd_ring_event_open(void);
void tnd_ring_event_raise(int event);

bool tnd_ring_is_asleep(const struct tnd_returns *returns);
void tnd_ring_wake(struct tnd_batches *batches);

/* A consumer waits for a counter (of the lane, or of its line) to pass `position`, or for `notice`
 * to differ from the value it has seen. */
struct tnd_ring_wait {
    const struct tnd_batches *batches;
    struct tnd_returns *returns;
    const _Atomic uint64_t *counter;
    uint64_t position;
    uint32_t notice;
};

/* Consumer: is there something to take or to hear? The acquire loads pair with tnd_ring_publish and
 * tnd_ring_notify: if so, the slot is whole and the message sent. */
static inline bool
tnd_ring_ready(const struct tnd_ring_wait *wait)
{
    return atomic_load_explicit(wait->counter, memory_order_acquire) > wait->position ||
           atomic_load_explicit(&wait->batches->notice, memory_order_acquire) != wait->notice;
}

/* Consumer: look for up to spin_ns. */
bool tnd_ring_spin(const struct tnd_ring_wait *wait, int64_t spin_ns);

/* Consumer: sleep until ready, up to timeout_ns and TND_RING_SLEEP_MAX_NS. */
bool tnd_ring_sleep(const struct tnd_ring_wait *wait, int64_t timeout_ns);

/* Consumer: everything below `released` is given back. Returns true if the server sleeps and wants
 * its wakeup signalled. */
bool tnd_ring_release(struct tnd_returns *returns, const struct tnd_batches *batches,
                      uint64_t released);

#endif
