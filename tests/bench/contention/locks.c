/* locks.c - stands before libc's mutexes: how often each is taken where, and how long it is held.
 *
 * Loaded with LD_PRELOAD, so that the program measured is the one that is released. What a mutex
 * costs besides is the clock, read twice. A wait for a condition ends a hold and begins another.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "sites.h"

/* libc's own, by names that need no look-up: an allocator takes locks before dlsym works. */
int __pthread_mutex_lock(pthread_mutex_t *mutex);
int __pthread_mutex_trylock(pthread_mutex_t *mutex);
int __pthread_mutex_unlock(pthread_mutex_t *mutex);

enum { HELD = 32 };

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
    uint32_t count;
    struct held {
        pthread_mutex_t *mutex;
        struct lock_site *site;
        uint64_t since_ns;
    } held[HELD];
} mine;

static uint64_t
now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void
begin(pthread_mutex_t *mutex, const void *place, bool found_taken)
{
    struct lock_site *site;

    if (sites_all() == NULL || mine.count == HELD)
        return;
    site = sites_lock(mutex, place);
    if (site == NULL)
        return;
    sites_add(&site->taken, 1);
    sites_add(&site->found_taken, found_taken);
    mine.held[mine.count++] = (struct held){ mutex, site, now_ns() };
}

static void
end(pthread_mutex_t *mutex)
{
    for (uint32_t i = mine.count; i-- > 0;) {
        struct held held = mine.held[i];
        uint64_t ns;

        if (held.mutex != mutex)
            continue;
        ns = now_ns() - held.since_ns;
        sites_add(&held.site->held_ns, ns);
        sites_add(&held.site->buckets[sites_bucket(ns)], 1);
        mine.held[i] = mine.held[--mine.count];
        return;
    }
}

__attribute__((visibility("default"))) int
pthread_mutex_lock(pthread_mutex_t *mutex)
{
    int error = __pthread_mutex_trylock(mutex);
    bool found_taken = error == EBUSY;

    if (found_taken)
        error = __pthread_mutex_lock(mutex);
    if (error == 0)
        begin(mutex, __builtin_return_address(0), found_taken);
    return error;
}

__attribute__((visibility("default"))) int
pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    int error = __pthread_mutex_trylock(mutex);

    if (error == 0)
        begin(mutex, __builtin_return_address(0), false);
    return error;
}

__attribute__((visibility("default"))) int
pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    end(mutex);
    return __pthread_mutex_unlock(mutex);
}

__attribute__((visibility("default"))) int
pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    static int (*own)(pthread_cond_t *, pthread_mutex_t *);
    int error;

    if (own == NULL)
        *(void **)&own = dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
    end(mutex);
    error = own(condition, mutex);
    begin(mutex, __builtin_return_address(0), false);
    return error;
}

__attribute__((visibility("default"))) int
pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                       const struct timespec *until)
{
    static int (*own)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    int error;

    if (own == NULL)
        *(void **)&own = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    end(mutex);
    error = own(condition, mutex, until);
    begin(mutex, __builtin_return_address(0), false);
    return error;
}
