/* ring.c - the counters of a lane, and the memory orders between the two sides (ring.h). */
#include "shm/ring.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/must.h"

/* A spinning consumer reads the clock once in LOOKS_PER_CLOCK looks at the counter, because reading
 * the clock costs far more than a look. */
enum { LOOKS_PER_CLOCK = 32 };

/* Not PRIVATE: the word is shared between processes. Works on a read-only mapping. */
static void
futex_wait(const _Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
    struct timespec timeout = { .tv_sec = timeout_ns / 1000000000,
                                .tv_nsec = timeout_ns % 1000000000 };

    must_in_debug(0 <= timeout_ns && timeout_ns <= TND_RING_SLEEP_MAX_NS);
    /* Returns at once if the word has changed. All other outcomes are alike: the caller looks
     * again. */
    syscall(SYS_futex, word, FUTEX_WAIT, expected, &timeout, NULL, 0);
}

void
tnd_ring_publish(struct tnd_batches *batches, uint64_t published)
{
    must_in_debug(published > atomic_load(&batches->published));
    /* Pairs with the acquire load in tnd_ring_ready: a consumer that sees the count sees whole
     * slots. seq_cst orders the store before the load in tnd_ring_is_asleep (ring.h). */
    atomic_store(&batches->published, published);
}

void
tnd_ring_notify(struct tnd_batches *batches)
{
    atomic_fetch_add(&batches->notice, 1);
    atomic_fetch_add(&batches->signal, 1);
}

int
tnd_ring_event_open(void)
{
    return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

void
tnd_ring_event_raise(int event)
{
    must_in_debug(event >= 0);
    /* An absolute time in the past makes the timer expire at once. 0 would disarm it. */
    const struct itimerspec long_ago = { .it_value.tv_nsec = 1 };

    timerfd_settime(event, TFD_TIMER_ABSTIME, &long_ago, NULL);
}

bool
tnd_ring_is_asleep(const struct tnd_returns *returns)
{
    return atomic_load(&returns->sleeping) != 0;
}

void
tnd_ring_wake(struct tnd_batches *batches)
{
    /* After the counter that the consumer waits for: if it read `signal` before this addition it
     * finds another value in futex_wait and does not sleep, else it sees the counter. */
    atomic_fetch_add(&batches->signal, 1);
    /* All of them: consumers of one lane share the word, and each takes the same batch. */
    syscall(SYS_futex, &batches->signal, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool
tnd_ring_spin(const struct tnd_ring_wait *wait, int64_t spin_ns)
{
    int64_t deadline_ns;

    if (tnd_ring_ready(wait))
        return true;
    if (spin_ns <= 0)
        return false;
    deadline_ns = tnd_clock_deadline_ns(spin_ns);
    do {
        for (int look = 0; look < LOOKS_PER_CLOCK; look++) {
            if (tnd_ring_ready(wait))
                return true;
            tnd_ring_relax();
        }
    } while (tnd_clock_left_ns(deadline_ns) > 0);
    return false;
}

bool
tnd_ring_sleep(const struct tnd_ring_wait *wait, int64_t timeout_ns)
{
    uint32_t signal;
    bool ready;

    if (timeout_ns < 0 || timeout_ns > TND_RING_SLEEP_MAX_NS)
        timeout_ns = TND_RING_SLEEP_MAX_NS;
    /* The order matters: raise the flag, read `signal`, look at the counters once more, sleep. A
     * server that published before the last look is seen by it. One that publishes later sees the
     * flag and wakes, which changes `signal`, so that the sleep does not begin or is ended. */
    atomic_store(&wait->returns->sleeping, 1);
    signal = atomic_load(&wait->batches->signal);
    ready = atomic_load(wait->counter) > wait->position ||
            atomic_load(&wait->batches->notice) != wait->notice;
    if (!ready) {
        futex_wait(&wait->batches->signal, signal, timeout_ns);
        ready = tnd_ring_ready(wait);
    }
    /* Relaxed: a server that still sees 1 makes one needless system call. */
    atomic_store_explicit(&wait->returns->sleeping, 0, memory_order_relaxed);
    return ready;
}

bool
tnd_ring_release(struct tnd_returns *returns, const struct tnd_batches *batches, uint64_t released)
{
    /* As release: the server writes into a slot only after our last read of it. As seq_cst: the
     * load below comes after the store, so either the server sees `released` or we see that it
     * waits. */
    atomic_store(&returns->released, released);
    return atomic_load(&batches->server_waits) != 0;
}
