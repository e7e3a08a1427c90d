/* clock.c - the machine's monotonic clock, or the one that a test has installed. */
#include "core/clock.h"

#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

static _Atomic(const struct tnd_clock *) installed;

/* Acquire pairs with the release store in tnd_clock_install: the clock's members are set. */
static const struct tnd_clock *
installed_clock(void)
{
    return atomic_load_explicit(&installed, memory_order_acquire);
}

static int64_t
read_machine(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t
tnd_clock_ns(void)
{
    const struct tnd_clock *clock = installed_clock();

    if (__builtin_expect(clock != NULL, 0))
        return clock->now_ns(clock->context);
    return read_machine(CLOCK_MONOTONIC);
}

int64_t
tnd_clock_coarse_ns(void)
{
    const struct tnd_clock *clock = installed_clock();

    if (__builtin_expect(clock != NULL, 0))
        return clock->now_ns(clock->context);
    return read_machine(CLOCK_MONOTONIC_COARSE);
}

int64_t
tnd_clock_wall_ns(void)
{
    const struct tnd_clock *clock = installed_clock();

    if (clock != NULL && clock->wall_ns != NULL)
        return clock->wall_ns(clock->context);
    return read_machine(CLOCK_REALTIME);
}

int64_t
tnd_clock_deadline_ns(int64_t timeout_ns)
{
    int64_t deadline_ns;

    if (timeout_ns < 0 || __builtin_add_overflow(tnd_clock_ns(), timeout_ns, &deadline_ns))
        return TND_CLOCK_NEVER;
    return deadline_ns;
}

int64_t
tnd_clock_left_ns(int64_t deadline_ns)
{
    int64_t now_ns;

    if (deadline_ns == TND_CLOCK_NEVER)
        return TND_CLOCK_NEVER;
    now_ns = tnd_clock_ns();
    return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

void
tnd_clock_install(const struct tnd_clock *clock)
{
    atomic_store_explicit(&installed, clock, memory_order_release);
}
