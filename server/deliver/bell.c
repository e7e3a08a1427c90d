/* bell.c - an epoll set of the eventfds that trainers write to, and one of our own. */
#include "deliver/bell.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/status.h"
#include "deliver/bell_lanes.h"
#include "shm/ring.h"

/* A lost wake-up (a trainer that lies about the flags) costs this long at most. */
#define SLEEP_MAX_NS INT64_C(1000000000)

/* Looks from one look at the clock to the next. */
enum { LOOKS_PER_CLOCK = 8 };

struct bell {
    int epoll;
    int self; /* written by bell_ring */
    _Atomic bool waits;
    _Atomic bool rung;

    pthread_mutex_t lock; /* of the list; taken before a lane's */
    struct lane **lanes;
    uint32_t lane_count;
};

tundish_status
bell_open(struct bell **ret_bell)
{
    struct bell *bell = tnd_zalloc(1, sizeof *bell);

    pthread_mutex_init(&bell->lock, NULL);
    bell->epoll = epoll_create1(EPOLL_CLOEXEC);
    bell->self = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bell->epoll < 0 || bell->self < 0 || !bell_listen(bell, bell->self)) {
        int error = errno;

        bell_close(bell);
        return tnd_fail_errno(error, "make a bell");
    }
    *ret_bell = bell;
    return TUNDISH_OK;
}

void
bell_close(struct bell *bell)
{
    if (bell == NULL)
        return;
    must(bell->lane_count == 0);
    if (bell->epoll >= 0)
        close(bell->epoll);
    if (bell->self >= 0)
        close(bell->self);
    pthread_mutex_destroy(&bell->lock);
    free(bell->lanes);
    free(bell);
}

/* Edge-triggered: each write is one event, nobody has to read the counter back. */
bool
bell_listen(struct bell *bell, int descriptor)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLET };

    return epoll_ctl(bell->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void
bell_ignore(struct bell *bell, int descriptor)
{
    epoll_ctl(bell->epoll, EPOLL_CTL_DEL, descriptor, NULL);
}

void
bell_add(struct bell *bell, struct lane *lane)
{
    pthread_mutex_lock(&bell->lock);
    bell->lanes = tnd_realloc(bell->lanes, bell->lane_count + 1, sizeof(struct lane *));
    bell->lanes[bell->lane_count++] = lane;
    lane_set_waits(lane, atomic_load(&bell->waits));
    pthread_mutex_unlock(&bell->lock);
}

void
bell_remove(struct bell *bell, struct lane *lane)
{
    pthread_mutex_lock(&bell->lock);
    for (uint32_t i = 0; i < bell->lane_count; i++)
        if (bell->lanes[i] == lane)
            bell->lanes[i--] = bell->lanes[--bell->lane_count];
    pthread_mutex_unlock(&bell->lock);
}

void
bell_ring(struct bell *bell)
{
    const uint64_t one = 1;

    /* In one order with the store and load in bell_wait: either it sees `rung`, or we see `waits`.
     */
    atomic_store(&bell->rung, true);
    if (atomic_load(&bell->waits) && write(bell->self, &one, sizeof one) < 0)
        must(errno == EAGAIN);
}

static bool
something_happened(struct bell *bell)
{
    bool happened = atomic_exchange(&bell->rung, false);

    pthread_mutex_lock(&bell->lock);
    for (uint32_t i = 0; i < bell->lane_count; i++)
        happened |= lane_take_progress(bell->lanes[i]);
    pthread_mutex_unlock(&bell->lock);
    return happened;
}

static void
set_waits(struct bell *bell, bool waits)
{
    pthread_mutex_lock(&bell->lock);
    atomic_store(&bell->waits, waits);
    for (uint32_t i = 0; i < bell->lane_count; i++)
        lane_set_waits(bell->lanes[i], waits);
    pthread_mutex_unlock(&bell->lock);
}

static void
sleep_until_rung(struct bell *bell, int64_t timeout_ns)
{
    struct epoll_event event;
    int64_t milliseconds;

    if (timeout_ns > SLEEP_MAX_NS)
        timeout_ns = SLEEP_MAX_NS;
    milliseconds = (timeout_ns + 999999) / 1000000;
    epoll_wait(bell->epoll, &event, 1, (int)milliseconds);
}

bool
bell_wait(struct bell *bell, int64_t spin_ns, int64_t timeout_ns)
{
    int64_t deadline_ns = tnd_clock_deadline_ns(timeout_ns);
    int64_t spin_until_ns = tnd_clock_deadline_ns(spin_ns > 0 ? spin_ns : 0);
    bool happened;

    do {
        happened = something_happened(bell);
        for (int look = 1; !happened && look < LOOKS_PER_CLOCK; look++) {
            tnd_ring_relax();
            happened = something_happened(bell);
        }
    } while (!happened && tnd_clock_left_ns(spin_until_ns) > 0);
    while (!happened && tnd_clock_left_ns(deadline_ns) > 0) {
        set_waits(bell, true);
        happened = something_happened(bell);
        if (!happened) {
            sleep_until_rung(bell, tnd_clock_left_ns(deadline_ns));
            happened = something_happened(bell);
        }
        set_waits(bell, false);
    }
    return happened;
}
