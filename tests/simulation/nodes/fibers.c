/* fibers.c - coroutines under the names of threads, in the order of their moments. */
#include "fibers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "standpoint.h"

enum { STACK_BYTES = 256 << 10, BUCKETS = 1 << 15 };

/* A fiber that is woken runs after a pause of up to this, as threads do. */
static const uint64_t WAKE_NS = 5000;

enum wait { WAIT_TIME, WAIT_CONDITION, WAIT_END };

struct fiber {
    struct standpoint point;
    void *stack;
    void *(*thread)(void *argument); /* either */
    void (*run)(void *argument);
    void *argument;
    uint32_t node, number;
    bool used, ended, timed_out;
    enum wait wait;
    const void *object;         /* the condition, or the fiber whose end is awaited */
    struct fiber *next, **link; /* in the bucket of the object */
    uint64_t moment;            /* the entry of the heap that counts */
};

struct entry {
    int64_t at_ns;
    uint64_t moment; /* in the order in which they were made */
    struct fiber *fiber;
};

struct host {
    bool is_stopped;
    struct entry *parked; /* what would have run */
    size_t parked_count, parked_room;
};

static struct {
    uint64_t random, moments;
    int64_t now_ns;
    struct standpoint main;
    struct fiber **fibers; /* by number; `used` false: its place is for another */
    uint32_t fiber_count, fiber_room, *free_numbers, free_count;
    struct fiber *present, *buried;
    struct entry *heap;
    size_t heap_count, heap_room;
    struct fiber *buckets[BUCKETS];
    struct host *hosts; /* by node */
    uint32_t node_count;
    uint32_t charged;
    int64_t first_cpu_ns, clock_ns; /* what the meter itself costs */
} all;

static bool has_meter; /* a call of the kernel at each turn of node 0 */

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*run)(void *argument), void *argument);
int __wrap_pthread_join(pthread_t thread, void **ret_value);
int __wrap_pthread_detach(pthread_t thread);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left);

uint64_t
fibers_draw(uint64_t below)
{
    all.random ^= all.random << 13;
    all.random ^= all.random >> 7;
    all.random ^= all.random << 17;
    return all.random % below;
}

int64_t
fibers_now_ns(void)
{
    return all.now_ns;
}

static int64_t
cpu_now_ns(void)
{
    struct timespec now;

    if (!has_meter)
        return 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* What passes, at least, between two looks at the clock. */
static int64_t
cost_of_clock(void)
{
    int64_t least_ns = INT64_MAX;

    for (int i = 0; i < 1000; i++) {
        int64_t before_ns = cpu_now_ns(), ns = cpu_now_ns() - before_ns;

        least_ns = ns < least_ns ? ns : least_ns;
    }
    return least_ns;
}

uint32_t
fibers_charge(uint32_t node)
{
    uint32_t before = all.charged;

    if (before == 0 && node != 0)
        all.first_cpu_ns += cpu_now_ns() - all.clock_ns;
    all.charged = node;
    if (before != 0 && node == 0)
        all.first_cpu_ns -= cpu_now_ns();
    return before;
}

uint32_t
fibers_charged(void)
{
    return all.present != NULL ? all.charged : FIBERS_NOBODY;
}

static bool
comes_before(const struct entry *a, const struct entry *b)
{
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->moment < b->moment);
}

static void
push(struct entry entry)
{
    size_t at = all.heap_count++;

    if (all.heap_count > all.heap_room) {
        all.heap_room = all.heap_room * 2 + 64;
        all.heap = realloc(all.heap, all.heap_room * sizeof *all.heap);
    }
    for (; at > 0 && comes_before(&entry, &all.heap[(at - 1) / 2]); at = (at - 1) / 2)
        all.heap[at] = all.heap[(at - 1) / 2];
    all.heap[at] = entry;
}

static struct entry
pop(void)
{
    struct entry first = all.heap[0], last = all.heap[--all.heap_count];
    size_t at = 0;

    for (size_t child = 1; child < all.heap_count; child = 2 * at + 1) {
        if (child + 1 < all.heap_count && comes_before(&all.heap[child + 1], &all.heap[child]))
            child++;
        if (!comes_before(&all.heap[child], &last))
            break;
        all.heap[at] = all.heap[child];
        at = child;
    }
    if (all.heap_count > 0)
        all.heap[at] = last;
    return first;
}

/* Of a fiber's entries only the latest counts. */
static void
run_at(struct fiber *fiber, int64_t at_ns)
{
    fiber->moment = ++all.moments;
    if (at_ns != TND_CLOCK_NEVER)
        push((struct entry){ at_ns, fiber->moment, fiber });
}

static struct fiber **
bucket_of(const void *object)
{
    uint64_t hash = (uint64_t)(uintptr_t)object * UINT64_C(0x9e3779b97f4a7c15);

    return &all.buckets[hash >> 49];
}

static void
line_up(struct fiber *fiber, const void *object)
{
    struct fiber **bucket = bucket_of(object);

    fiber->object = object;
    fiber->next = *bucket;
    fiber->link = bucket;
    if (*bucket != NULL)
        (*bucket)->link = &fiber->next;
    *bucket = fiber;
}

static void
step_out(struct fiber *fiber)
{
    if (fiber->link == NULL)
        return;
    *fiber->link = fiber->next;
    if (fiber->next != NULL)
        fiber->next->link = fiber->link;
    fiber->link = NULL;
}

static void
wake(enum wait wait, const void *object, bool only_one)
{
    struct fiber *next;

    for (struct fiber *at = *bucket_of(object); at != NULL; at = next) {
        next = at->next;
        if (at->wait != wait || at->object != object)
            continue;
        step_out(at);
        at->timed_out = false;
        run_at(at, all.now_ns + (int64_t)fibers_draw(WAKE_NS));
        if (only_one)
            return;
    }
}

static void
park(struct host *host, struct entry entry)
{
    if (host->parked_count == host->parked_room) {
        host->parked_room = host->parked_room * 2 + 4;
        host->parked = realloc(host->parked, host->parked_room * sizeof *host->parked);
    }
    host->parked[host->parked_count++] = entry;
}

static struct fiber *
next_fiber(void)
{
    while (all.heap_count > 0) {
        struct entry entry = pop();
        struct fiber *fiber = entry.fiber;
        struct host *host = fiber->node != FIBERS_NOBODY ? &all.hosts[fiber->node] : NULL;

        if (!fiber->used || fiber->moment != entry.moment)
            continue;
        if (host != NULL && host->is_stopped) {
            park(host, entry);
            continue;
        }
        all.now_ns = entry.at_ns > all.now_ns ? entry.at_ns : all.now_ns;
        step_out(fiber);
        return fiber;
    }
    fprintf(stderr, "simulation: everybody waits, and for nothing that will come\n");
    abort();
}

/* Give the processor to the fiber whose moment is next. */
static void
give_way(void)
{
    struct fiber *self = all.present, *next;

    fibers_charge(FIBERS_NOBODY);
    next = next_fiber();
    all.present = next;
    if (next != self)
        standpoint_change(&self->point, &next->point);
    fibers_charge(self->node);
}

static bool
wait_for(enum wait wait, const void *object, int64_t until_ns)
{
    struct fiber *self = all.present;

    self->wait = wait;
    self->timed_out = true;
    if (wait != WAIT_TIME)
        line_up(self, object);
    run_at(self, until_ns);
    give_way();
    return self->timed_out;
}

static void
begin(void)
{
    struct fiber *self = all.present;

    fibers_charge(self->node);
    if (self->thread != NULL)
        self->thread(self->argument);
    else
        self->run(self->argument);
    self->ended = true;
    if (self->number == 0)
        standpoint_change(&self->point, &all.main);
    wake(WAIT_END, self, false);
    if (self->thread == NULL) { /* nobody asks for its end */
        self->used = false;
        all.free_numbers[all.free_count++] = self->number;
    }
    give_way();
}

static struct fiber *
make_fiber(uint32_t node)
{
    uint32_t charged = fibers_charge(FIBERS_NOBODY);
    struct fiber *fiber;
    void *stack;

    if (all.free_count > 0) {
        fiber = all.fibers[all.free_numbers[--all.free_count]];
    } else {
        if (all.fiber_count == all.fiber_room) {
            all.fiber_room = all.fiber_room * 2 + 64;
            all.fibers = realloc(all.fibers, all.fiber_room * sizeof(struct fiber *));
            all.free_numbers = realloc(all.free_numbers, all.fiber_room * sizeof(uint32_t));
        }
        fiber = all.fibers[all.fiber_count] = calloc(1, sizeof *fiber);
        fiber->stack = malloc(STACK_BYTES);
        fiber->number = all.fiber_count++;
    }
    stack = fiber->stack;
    *fiber = (struct fiber){ .stack = stack, .node = node, .number = fiber->number, .used = true };
    standpoint_begin(&fiber->point, stack, STACK_BYTES, begin);
    run_at(fiber, all.now_ns + (int64_t)fibers_draw(WAKE_NS));
    fibers_charge(charged);
    return fiber;
}

void
fibers_start(uint32_t node, void (*run)(void *argument), void *argument)
{
    struct fiber *fiber = make_fiber(node);

    fiber->run = run;
    fiber->argument = argument;
}

static int64_t
now_of_clock(void *context)
{
    (void)context;
    return all.now_ns;
}

static void
forget_fibers(void)
{
    for (uint32_t i = 0; i < all.fiber_count; i++) {
        free(all.fibers[i]->stack);
        free(all.fibers[i]);
    }
    free(all.fibers);
    free(all.free_numbers);
    free(all.heap);
    for (uint32_t i = 0; i < all.node_count; i++)
        free(all.hosts[i].parked);
    free(all.hosts);
    memset(&all, 0, sizeof all);
}

void
fibers_run(uint64_t seed, uint32_t nodes, void (*director)(void *argument), void *argument)
{
    static const struct tnd_clock clock = { .now_ns = now_of_clock };

    all.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    all.now_ns = INT64_C(1000000000000);
    all.charged = FIBERS_NOBODY;
    all.clock_ns = cost_of_clock();
    all.hosts = calloc(nodes, sizeof *all.hosts);
    all.node_count = nodes;
    tnd_clock_install(&clock);
    fibers_start(FIBERS_NOBODY, director, argument);
    all.present = next_fiber();
    standpoint_change(&all.main, &all.present->point);
    tnd_clock_install(NULL);
    forget_fibers();
}

void
fibers_sleep(int64_t ns)
{
    wait_for(WAIT_TIME, NULL, all.now_ns + ns);
}

void
fibers_meter(void)
{
    has_meter = true;
}

void
fibers_stop(uint32_t node)
{
    all.hosts[node].is_stopped = true;
}

void
fibers_go_on(uint32_t node)
{
    struct host *host = &all.hosts[node];

    host->is_stopped = false;
    for (size_t i = 0; i < host->parked_count; i++)
        push(host->parked[i]);
    host->parked_count = 0;
}

int64_t
fibers_first_cpu_ns(void)
{
    return all.first_cpu_ns + (fibers_charged() == 0 ? cpu_now_ns() : 0);
}

int
__wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    if (all.present == NULL)
        return __real_pthread_mutex_lock(lock);
    if (pthread_mutex_trylock(lock) != 0) {
        fprintf(stderr, "simulation: a lock is held across a wait\n");
        abort();
    }
    return 0;
}

static void
relock(pthread_mutex_t *lock)
{
    (void)__wrap_pthread_mutex_lock(lock);
}

int
__wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    if (all.present == NULL)
        return __real_pthread_cond_wait(condition, lock);
    pthread_mutex_unlock(lock);
    wait_for(WAIT_CONDITION, condition, TND_CLOCK_NEVER);
    relock(lock);
    return 0;
}

int
__wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                              const struct timespec *until)
{
    pthread_mutex_unlock(lock);
    wait_for(WAIT_CONDITION, condition, until->tv_sec * INT64_C(1000000000) + until->tv_nsec);
    relock(lock);
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
    struct fiber *fiber = make_fiber(all.present->node);

    (void)attributes;
    fiber->thread = run;
    fiber->argument = argument;
    *ret_thread = (pthread_t)fiber->number;
    return 0;
}

int
__wrap_pthread_join(pthread_t thread, void **ret_value)
{
    struct fiber *fiber = all.fibers[thread];

    (void)ret_value;
    while (!fiber->ended)
        wait_for(WAIT_END, fiber, TND_CLOCK_NEVER);
    fiber->used = false;
    all.free_numbers[all.free_count++] = fiber->number;
    return 0;
}

int
__wrap_pthread_detach(pthread_t thread)
{
    (void)thread; /* it stays until all are forgotten */
    return 0;
}

int
__wrap_nanosleep(const struct timespec *pause, struct timespec *left)
{
    (void)left;
    fibers_sleep(pause->tv_sec * INT64_C(1000000000) + pause->tv_nsec);
    return 0;
}
