/* lock.h - a lock that knows its owner where checks are compiled in (TND_CHECKS: debug and
 * sanitized builds), so that a function can say which lock its caller holds. Elsewhere it is a
 * mutex. */
#ifndef TND_CORE_LOCK_H
#define TND_CORE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "core/must.h"

struct tnd_lock {
    pthread_mutex_t mutex;
#ifdef TND_CHECKS
    _Atomic(pthread_t) owner; /* 0: nobody */
#endif
};

#ifdef TND_CHECKS
#define must_hold(lock) must(atomic_load(&(lock)->owner) == pthread_self())
#else
#define must_hold(lock) ((void)0)
#endif

static inline void
tnd_lock_note(struct tnd_lock *lock, pthread_t owner)
{
#ifdef TND_CHECKS
    atomic_store(&lock->owner, owner);
#else
    (void)lock;
    (void)owner;
#endif
}

static inline void
tnd_lock_take(struct tnd_lock *lock)
{
    pthread_mutex_lock(&lock->mutex);
    tnd_lock_note(lock, pthread_self());
}

static inline void
tnd_lock_release(struct tnd_lock *lock)
{
    must_hold(lock);
    tnd_lock_note(lock, 0);
    pthread_mutex_unlock(&lock->mutex);
}

static inline void
tnd_lock_wait(struct tnd_lock *lock, pthread_cond_t *condition)
{
    must_hold(lock);
    tnd_lock_note(lock, 0);
    pthread_cond_wait(condition, &lock->mutex);
    tnd_lock_note(lock, pthread_self());
}

/* `until`: by the condition's clock. */
static inline void
tnd_lock_wait_until(struct tnd_lock *lock, pthread_cond_t *condition, const struct timespec *until)
{
    must_hold(lock);
    tnd_lock_note(lock, 0);
    pthread_cond_timedwait(condition, &lock->mutex, until);
    tnd_lock_note(lock, pthread_self());
}

#endif
