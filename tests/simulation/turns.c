/* turns.c - coroutines under the names of threads. */
#include "turns.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "standpoint.h"

enum { TURNS_MAX = 64, STACK_BYTES = 512 << 10, LOCKS_MAX = 64, LOOK_EVERY = 8 };

enum wait {
    WAIT_NOTHING,
    WAIT_LOCK,
    WAIT_CONDITION,
    WAIT_FUTEX,
    WAIT_DESCRIPTOR,
    WAIT_TIME,
    WAIT_END
};

struct turn {
    struct standpoint point;
    void *stack;
    void *(*thread)(void *argument); /* either */
    void (*run)(void *argument);
    void *argument;
    bool used, ended, dead;
    enum wait wait;
    const void *object; /* a lock or condition */
    int descriptor;
    short events;
    int64_t deadline_ns;
    bool timed_out;
    unsigned locks_held;
    int error; /* errno is each thread's own */
    const struct turn *joined;
};

struct held_lock {
    const void *lock;
    const struct turn *holder;
};

static struct {
    uint64_t random;
    int64_t now_ns;
    uint64_t switches;
    struct standpoint main;
    struct turn turns[TURNS_MAX];
    struct turn *present; /* NULL: nobody: not within turns_run */
    struct held_lock locks[LOCKS_MAX];
    unsigned lock_count;
} all;

int __real_epoll_wait(int epoll, struct epoll_event *events, int count, int timeout_ms);
int __real_poll(struct pollfd *descriptors, nfds_t count, int timeout_ms);
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int count, int timeout_ms);
int __wrap_poll(struct pollfd *descriptors, nfds_t count, int timeout_ms);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);
int __wrap_pthread_cond_signal(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*run)(void *argument), void *argument);
int __wrap_pthread_join(pthread_t thread, void **ret_value);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left);
long __wrap_syscall(long number, ...);
long __real_syscall(long number, ...);

uint64_t
turns_draw(uint64_t below)
{
    all.random ^= all.random << 13;
    all.random ^= all.random >> 7;
    all.random ^= all.random << 17;
    return all.random % below;
}

int64_t
turns_now_ns(void)
{
    return all.now_ns;
}

static bool
is_runnable(const struct turn *turn)
{
    return turn->used && !turn->ended && !turn->dead && turn->wait == WAIT_NOTHING;
}

static void
make_ready(struct turn *turn, bool timed_out)
{
    turn->wait = WAIT_NOTHING;
    turn->timed_out = timed_out;
}

static void
look_at_descriptors(void)
{
    struct pollfd waited[TURNS_MAX];
    struct turn *turns[TURNS_MAX];
    nfds_t count = 0;

    for (unsigned i = 0; i < TURNS_MAX; i++)
        if (all.turns[i].used && !all.turns[i].dead && all.turns[i].wait == WAIT_DESCRIPTOR) {
            turns[count] = &all.turns[i];
            waited[count++] =
                (struct pollfd){ .fd = all.turns[i].descriptor, .events = all.turns[i].events };
        }
    if (count == 0 || __real_poll(waited, count, 0) <= 0)
        return;
    for (nfds_t i = 0; i < count; i++)
        if (waited[i].revents != 0)
            make_ready(turns[i], false);
}

/* The time goes on to the next moment that somebody waits for. False: nobody does. */
static bool
jump(void)
{
    int64_t next_ns = TND_CLOCK_NEVER;

    for (unsigned i = 0; i < TURNS_MAX; i++)
        if (all.turns[i].used && !all.turns[i].dead && all.turns[i].wait != WAIT_NOTHING &&
            all.turns[i].deadline_ns < next_ns)
            next_ns = all.turns[i].deadline_ns;
    if (next_ns == TND_CLOCK_NEVER)
        return false;
    if (next_ns > all.now_ns)
        all.now_ns = next_ns;
    return true;
}

static void
end_waits_in_time(void)
{
    for (unsigned i = 0; i < TURNS_MAX; i++)
        if (all.turns[i].used && !all.turns[i].dead && all.turns[i].wait != WAIT_NOTHING &&
            all.turns[i].deadline_ns <= all.now_ns)
            make_ready(&all.turns[i], true);
}

static struct turn *
choose(void)
{
    struct turn *ready[TURNS_MAX];
    unsigned count = 0;

    for (unsigned i = 0; i < TURNS_MAX; i++)
        if (is_runnable(&all.turns[i]))
            ready[count++] = &all.turns[i];
    return count > 0 ? ready[turns_draw(count)] : NULL;
}

static struct turn *
next_turn(void)
{
    for (;;) {
        struct turn *next;

        end_waits_in_time();
        if (all.switches++ % LOOK_EVERY == 0)
            look_at_descriptors();
        next = choose();
        if (next != NULL)
            return next;
        look_at_descriptors();
        next = choose();
        if (next != NULL)
            return next;
        if (!jump()) {
            fprintf(stderr, "simulation: everybody waits, and for nothing that will come\n");
            abort();
        }
    }
}

static void
give_turn(void)
{
    struct turn *self = all.present, *next;

    self->error = errno;
    next = next_turn();
    if (next != self) {
        all.present = next;
        standpoint_change(&self->point, &next->point);
        all.present = self;
    }
    errno = self->error;
}

/* Wait for something, or until a moment. True: that moment came. */
static bool
wait_for(enum wait wait, const void *object, int64_t deadline_ns)
{
    struct turn *self = all.present;

    self->wait = wait;
    self->object = object;
    self->deadline_ns = deadline_ns;
    self->timed_out = false;
    give_turn();
    return self->timed_out;
}

static void
wake(enum wait wait, const void *object, bool only_one)
{
    struct turn *found[TURNS_MAX];
    unsigned count = 0;

    for (unsigned i = 0; i < TURNS_MAX; i++)
        if (all.turns[i].used && !all.turns[i].dead && all.turns[i].wait == wait &&
            (object == NULL || all.turns[i].object == object))
            found[count++] = &all.turns[i];
    if (only_one && count > 0)
        make_ready(found[turns_draw(count)], false);
    for (unsigned i = 0; i < count && !only_one; i++)
        make_ready(found[i], false);
}

static void
perhaps_give_turn(uint64_t one_in)
{
    if (turns_draw(one_in) == 0)
        give_turn();
}

static void
begin(void)
{
    struct turn *self = all.present;

    if (self->thread != NULL)
        self->thread(self->argument);
    else
        self->run(self->argument);
    self->ended = true;
    wake(WAIT_END, self, false);
    if (self == &all.turns[0])
        standpoint_change(&self->point, &all.main);
    all.present = next_turn();
    standpoint_change(&self->point, &all.present->point);
}

static struct turn *
make_turn(void)
{
    for (unsigned i = 0; i < TURNS_MAX; i++) {
        struct turn *turn = &all.turns[i];
        void *stack = turn->stack;

        if (turn->used)
            continue;
        if (stack == NULL)
            stack = malloc(STACK_BYTES);
        memset(turn, 0, sizeof *turn);
        turn->stack = stack;
        turn->used = true;
        turn->deadline_ns = TND_CLOCK_NEVER;
        standpoint_begin(&turn->point, stack, STACK_BYTES, begin);
        return turn;
    }
    fprintf(stderr, "simulation: more than %d threads\n", TURNS_MAX);
    abort();
}

struct turn *
turns_start(void (*run)(void *argument), void *argument)
{
    struct turn *turn = make_turn();

    turn->run = run;
    turn->argument = argument;
    return turn;
}

bool
turns_has_ended(const struct turn *turn)
{
    return turn->ended;
}

bool
turns_kill(struct turn *turn)
{
    if (turn->locks_held > 0)
        return false;
    turn->dead = true;
    turn->used = false; /* its place is for another */
    return true;
}

static bool
is_thread(const struct turn *turn)
{
    return turn->used && !turn->ended && turn->thread != NULL;
}

static void
drop_locks_of_dead(void)
{
    for (unsigned i = all.lock_count; i > 0; i--)
        if (all.locks[i - 1].holder->dead)
            all.locks[i - 1] = all.locks[--all.lock_count];
}

bool
turns_kill_threads(void)
{
    for (unsigned i = 0; i < TURNS_MAX; i++)
        if (is_thread(&all.turns[i]) && all.turns[i].locks_held > 0 &&
            all.turns[i].wait != WAIT_TIME)
            return false;
    for (unsigned i = 0; i < TURNS_MAX; i++) {
        struct turn *turn = &all.turns[i];

        if (!is_thread(turn))
            continue;
        turn->dead = turn->ended = true;
        wake(WAIT_END, turn, false);
    }
    drop_locks_of_dead();
    return true;
}

static int64_t
now_of_clock(void *context)
{
    (void)context;
    all.now_ns += 200 + (int64_t)turns_draw(2000);
    perhaps_give_turn(16);
    return all.now_ns;
}

void
turns_run(uint64_t seed, void (*director)(void *argument), void *argument)
{
    static const struct tnd_clock clock = { .now_ns = now_of_clock };

    all.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    all.now_ns = INT64_C(1000000000000);
    all.switches = all.lock_count = 0;
    for (unsigned i = 0; i < TURNS_MAX; i++)
        all.turns[i].used = false;
    all.present = turns_start(director, argument);
    tnd_clock_install(&clock);
    standpoint_change(&all.main, &all.present->point);
    tnd_clock_install(NULL);
    all.present = NULL;
}

void
turns_sleep(int64_t ns)
{
    wait_for(WAIT_TIME, NULL, all.now_ns + ns);
}

static unsigned
find_lock(const void *lock)
{
    unsigned i = 0;

    while (i < all.lock_count && all.locks[i].lock != lock)
        i++;
    return i;
}

static void
take_lock(const void *lock)
{
    while (find_lock(lock) < all.lock_count)
        wait_for(WAIT_LOCK, lock, TND_CLOCK_NEVER);
    if (all.lock_count == LOCKS_MAX)
        abort();
    all.locks[all.lock_count++] = (struct held_lock){ lock, all.present };
    all.present->locks_held++;
}

static void
drop_lock(const void *lock)
{
    unsigned at = find_lock(lock);

    if (at == all.lock_count) {
        fprintf(stderr, "simulation: a lock is released that nobody holds\n");
        abort();
    }
    all.locks[at] = all.locks[--all.lock_count];
    all.present->locks_held--;
    wake(WAIT_LOCK, lock, false);
}

int
__wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    if (all.present == NULL)
        return __real_pthread_mutex_lock(lock);
    perhaps_give_turn(8);
    take_lock(lock);
    return 0;
}

int
__wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
    if (all.present == NULL)
        return __real_pthread_mutex_unlock(lock);
    drop_lock(lock);
    perhaps_give_turn(8);
    return 0;
}

int
__wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    drop_lock(lock);
    wait_for(WAIT_CONDITION, condition, TND_CLOCK_NEVER);
    take_lock(lock);
    return 0;
}

int
__wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    wake(WAIT_CONDITION, condition, true);
    return 0;
}

int
__wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    wake(WAIT_CONDITION, condition, false);
    return 0;
}

int
__wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                      void *(*run)(void *argument), void *argument)
{
    struct turn *turn = make_turn();

    (void)attributes;
    turn->thread = run;
    turn->argument = argument;
    *ret_thread = (pthread_t)(turn - all.turns);
    return 0;
}

int
__wrap_pthread_join(pthread_t thread, void **ret_value)
{
    struct turn *turn = &all.turns[thread];

    (void)ret_value;
    while (!turn->ended)
        wait_for(WAIT_END, turn, TND_CLOCK_NEVER);
    turn->used = false;
    return 0;
}

int
__wrap_nanosleep(const struct timespec *pause, struct timespec *left)
{
    (void)left;
    turns_sleep(pause->tv_sec * INT64_C(1000000000) + pause->tv_nsec);
    return 0;
}

static int64_t
deadline_of(int timeout_ms)
{
    return timeout_ms < 0 ? TND_CLOCK_NEVER : all.now_ns + timeout_ms * INT64_C(1000000);
}

/* Until the descriptor has one of the events. True: the time is up. */
static bool
wait_for_descriptor(int descriptor, short events, int64_t deadline_ns)
{
    all.present->descriptor = descriptor;
    all.present->events = events;
    return wait_for(WAIT_DESCRIPTOR, NULL, deadline_ns);
}

int
__wrap_epoll_wait(int epoll, struct epoll_event *events, int count, int timeout_ms)
{
    int64_t deadline_ns = deadline_of(timeout_ms);

    perhaps_give_turn(2);
    for (;;) {
        int found = __real_epoll_wait(epoll, events, count, 0);

        if (found != 0 || all.now_ns >= deadline_ns)
            return found;
        wait_for_descriptor(epoll, POLLIN, deadline_ns);
    }
}

int
__wrap_poll(struct pollfd *descriptors, nfds_t count, int timeout_ms)
{
    int64_t deadline_ns = deadline_of(timeout_ms);

    for (;;) {
        int found = __real_poll(descriptors, count, 0);

        if (found != 0 || all.now_ns >= deadline_ns || count != 1)
            return found;
        wait_for_descriptor(descriptors->fd, descriptors->events, deadline_ns);
    }
}

/* A futex has an address in every process; here all who sleep are told of every wake-up. */
static long
futex(const _Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
    if (operation == FUTEX_WAKE) {
        wake(WAIT_FUTEX, NULL, false);
    } else if (*word == value) {
        int64_t ns = timeout->tv_sec * INT64_C(1000000000) + timeout->tv_nsec;

        wait_for(WAIT_FUTEX, word, all.now_ns + ns);
    }
    return 0;
}

long
__wrap_syscall(long number, ...)
{
    va_list list;
    long words[6];

    va_start(list, number);
    for (unsigned i = 0; i < 6; i++)
        words[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_futex && all.present != NULL)
        return futex((const _Atomic uint32_t *)words[0], (int)words[1], (uint32_t)words[2],
                     (const struct timespec *)words[3]);
    return __real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
