/* wakeup.c - an epoll set of the eventfds that trainers write to, and one of our own. */
#include "deliver/wakeup.h"

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
#include "deliver/wakeup_lanes.h"
#include "shm/ring.h"

/* A trainer that lies about the flags can suppress a wake-up. Then the wait takes this long at
 * most. */
#define SLEEP_MAX_NS INT64_C(1000000000)

/* A trainer that gives back within SOON_NS after a thread looked in vain may have waited for that
 * thread's processor. Then the next BRIEF_WAITS waits look only briefly, until one of them finds
 * something by that. */
static const int64_t SOON_NS = 10000, BRIEF_SPIN_NS = 1000;
enum { BRIEF_WAITS = 256 };

/* Reading the clock costs more than a look, so read it once in this many looks. */
enum { LOOKS_PER_CLOCK = 8 };

struct wakeup {
    int epoll;
    int self; /* written by wakeup_signal */
    _Atomic bool waits;
    _Atomic bool signalled;
    uint32_t brief_waits; /* that are left; only one thread waits at a time */

    pthread_mutex_t lock; /* of the list; taken before a lane's */
    struct lane **lanes;
    uint32_t lane_count;
};

tundish_status
wakeup_open(struct wakeup **ret_wakeup)
{
    struct wakeup *wakeup = tnd_zalloc(1, sizeof *wakeup);

    pthread_mutex_init(&wakeup->lock, NULL);
    wakeup->epoll = epoll_create1(EPOLL_CLOEXEC);
    wakeup->self = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wakeup->epoll < 0 || wakeup->self < 0 || !wakeup_listen(wakeup, wakeup->self)) {
        int error = errno;

        wakeup_close(wakeup);
        return tnd_fail_errno(error, "cannot make a wakeup");
    }
    *ret_wakeup = wakeup;
    return TUNDISH_OK;
}

void
wakeup_close(struct wakeup *wakeup)
{
    if (wakeup == NULL)
        return;
    must(wakeup->lane_count == 0);
    if (wakeup->epoll >= 0)
        close(wakeup->epoll);
    if (wakeup->self >= 0)
        close(wakeup->self);
    pthread_mutex_destroy(&wakeup->lock);
    free(wakeup->lanes);
    free(wakeup);
}

/* Edge-triggered: each write is one event, and no thread has to read the counter back. A trainer
 * could also reset the counter of its own eventfd, so its value must not matter. */
bool
wakeup_listen(struct wakeup *wakeup, int descriptor)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLET };

    return epoll_ctl(wakeup->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void
wakeup_ignore(struct wakeup *wakeup, int descriptor)
{
    epoll_ctl(wakeup->epoll, EPOLL_CTL_DEL, descriptor, NULL);
}

void
wakeup_add(struct wakeup *wakeup, struct lane *lane)
{
    pthread_mutex_lock(&wakeup->lock);
    wakeup->lanes = tnd_realloc(wakeup->lanes, wakeup->lane_count + 1, sizeof(struct lane *));
    wakeup->lanes[wakeup->lane_count++] = lane;
    /* A thread may be asleep already. Then the trainers of this lane have to signal from the
     * start. */
    lane_set_waits(lane, atomic_load(&wakeup->waits));
    pthread_mutex_unlock(&wakeup->lock);
}

void
wakeup_remove(struct wakeup *wakeup, struct lane *lane)
{
    pthread_mutex_lock(&wakeup->lock);
    for (uint32_t i = 0; i < wakeup->lane_count; i++)
        if (wakeup->lanes[i] == lane)
            wakeup->lanes[i--] = wakeup->lanes[--wakeup->lane_count];
    pthread_mutex_unlock(&wakeup->lock);
}

void
wakeup_signal(struct wakeup *wakeup)
{
    const uint64_t one = 1;

    /* Sequentially consistent, as the stores and loads in wakeup_wait: either wakeup_wait sees
     * `signalled` before it sleeps, or this thread sees `waits` and writes. */
    atomic_store(&wakeup->signalled, true);
    if (atomic_load(&wakeup->waits) && write(wakeup->self, &one, sizeof one) < 0)
        must(errno == EAGAIN);
}

static bool
was_signalled(struct wakeup *wakeup)
{
    /* Partner: the store in wakeup_signal. */
    return atomic_load(&wakeup->signalled) && atomic_exchange(&wakeup->signalled, false);
}

/* Look at most `looks` times. */
static bool
something_happened(struct wakeup *wakeup, int looks)
{
    bool happened = false;

    pthread_mutex_lock(&wakeup->lock);
    for (int look = 0; look < looks && !happened; look++) {
        if (look > 0)
            tnd_ring_relax();
        happened = was_signalled(wakeup);
        for (uint32_t i = 0; i < wakeup->lane_count; i++)
            happened |= lane_take_progress(wakeup->lanes[i]);
    }
    pthread_mutex_unlock(&wakeup->lock);
    return happened;
}

/* Each store is sequentially consistent. Its partner is the load of `server_waits` in
 * tnd_ring_release, which follows the trainer's store of `released`. */
static void
set_waits(struct wakeup *wakeup, bool waits)
{
    pthread_mutex_lock(&wakeup->lock);
    atomic_store(&wakeup->waits, waits);
    for (uint32_t i = 0; i < wakeup->lane_count; i++)
        lane_set_waits(wakeup->lanes[i], waits);
    pthread_mutex_unlock(&wakeup->lock);
}

static void
sleep_until_notified(struct wakeup *wakeup, int64_t timeout_ns)
{
    struct epoll_event event;
    int64_t milliseconds;

    /* A wait without limit has a deadline far in the future, so this bounds it, too. */
    if (timeout_ns > SLEEP_MAX_NS)
        timeout_ns = SLEEP_MAX_NS;
    milliseconds = (timeout_ns + 999999) / 1000000;
    epoll_wait(wakeup->epoll, &event, 1, (int)milliseconds);
}

/* Is time left to look again? The first looks take no reading of the clock. */
static bool
spins_on(int64_t spin_ns, int64_t *until_ns)
{
    if (*until_ns != 0)
        return tnd_clock_left_ns(*until_ns) > 0;
    *until_ns = tnd_clock_deadline_ns(spin_ns > 0 ? spin_ns : 0);
    return spin_ns > 0;
}

bool
wakeup_wait(struct wakeup *wakeup, int64_t spin_ns, int64_t timeout_ns)
{
    int64_t deadline_ns = tnd_clock_deadline_ns(timeout_ns);
    bool is_brief = wakeup->brief_waits > 0 && spin_ns > BRIEF_SPIN_NS;
    int64_t asleep_ns, spin_until_ns = 0; /* 0: not read yet */
    bool happened;

    if (is_brief)
        spin_ns = BRIEF_SPIN_NS;
    do
        happened = something_happened(wakeup, LOOKS_PER_CLOCK);
    while (!happened && spins_on(spin_ns, &spin_until_ns));
    if (happened) {
        wakeup->brief_waits = 0;
        return true;
    }
    asleep_ns = tnd_clock_ns();
    while (!happened && tnd_clock_left_ns(deadline_ns) > 0) {
        /* Raise the flags first and look again after. A release before that look is found by it.
         * A release after it finds the flag raised and writes to the eventfd, which ends the
         * sleep. */
        set_waits(wakeup, true);
        happened = something_happened(wakeup, 1);
        if (!happened) {
            sleep_until_notified(wakeup, tnd_clock_left_ns(deadline_ns));
            happened = something_happened(wakeup, 1);
        }
        set_waits(wakeup, false);
    }
    if (is_brief)
        wakeup->brief_waits--;
    else if (happened && tnd_clock_ns() - asleep_ns < SOON_NS)
        wakeup->brief_waits = BRIEF_WAITS;
    return happened;
}
