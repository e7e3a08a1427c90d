/* clock.h - the one source of time.
 *
 * Every timeout, heartbeat and back-off reads tnd_clock_ns, so that a test can put its own clock
 * underneath and drive a state machine through hours in milliseconds, without sleeping.
 */
#ifndef TND_CORE_CLOCK_H
#define TND_CORE_CLOCK_H

#include <pthread.h>
#include <stdint.h>

#define TND_CLOCK_NEVER INT64_MAX /* a deadline that does not come */

struct tnd_clock {
    int64_t (*now_ns)(void *context);
    int64_t (*wall_ns)(void *context); /* NULL: the machine's */
    void *context;
};

/* Nanoseconds since some moment in the past; never goes back (CLOCK_MONOTONIC, the clock of
 * futex waits). Any thread. */
int64_t tnd_clock_ns(void);

/* tnd_clock_ns as of the kernel's last tick, a few milliseconds ago at most: for hot paths. */
int64_t tnd_clock_coarse_ns(void);

/* The moment `timeout_ns` from now. A negative timeout, or one beyond the end of time, is
 * TND_CLOCK_NEVER. */
int64_t tnd_clock_deadline_ns(int64_t timeout_ns);

/* Nanoseconds until a deadline, 0 when it has passed. */
int64_t tnd_clock_left_ns(int64_t deadline_ns);

/* Nanoseconds since 1970, which may jump: only for comparing with the times of files. */
int64_t tnd_clock_wall_ns(void);

/* For tests: read `clock` from now on, in all threads; NULL goes back to the machine's. The clock
 * stays the caller's and must outlive its use. */
void tnd_clock_install(const struct tnd_clock *clock);

/* Initialise a condition whose timed waits end at a time of tnd_clock_ns, which a change of the
 * wall clock does not move. */
static inline void
tnd_condition_open(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

#endif
