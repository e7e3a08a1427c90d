/* hub.c - one thread, one epoll: who comes, who speaks, who has gone. */
#include "deliver/socket/hub.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/status.h"
#include "deliver/ending.h"
#include "deliver/feed_hub.h"
#include "deliver/socket/client.h"
#include "deliver/socket/hub_private.h"
#include "deliver/socket/listen.h"
#include "shm/layout.h"

#define BEAT_NS INT64_C(1000000000)
#define LOOK_NS INT64_C(25000000) /* for trainers that are ending */
#define HELLO_DEFAULT_NS INT64_C(5000000000)

enum { CLIENTS_DEFAULT = 256, EVENTS_AT_A_TIME = 64 };

static bool
watch(struct hub *hub, int operation, int descriptor, uint32_t events, struct watched *watched)
{
    struct epoll_event event = { .events = events, .data.ptr = watched };

    return epoll_ctl(hub->epoll, operation, descriptor, &event) == 0;
}

void
hub_wake(struct hub *hub)
{
    const uint64_t one = 1;

    if (write(hub->wake, &one, sizeof one) < 0)
        must(errno == EAGAIN);
}

tundish_status
hub_open(const struct hub_config *config, struct hub **ret_hub)
{
    char path[TND_SOCKET_PATH_BYTES];
    struct hub *hub;
    tundish_status status = tnd_channel_path(config->socket_path, path);

    if (status != TUNDISH_OK)
        return status;
    hub = tnd_zalloc(1, sizeof *hub);
    hub->config = *config;
    hub->config.socket_path = hub->path = tnd_strdup(path);
    if (hub->config.client_limit == 0)
        hub->config.client_limit = CLIENTS_DEFAULT;
    if (hub->config.hello_ns == 0)
        hub->config.hello_ns = HELLO_DEFAULT_NS;
    hub->listener_watched.kind = WATCHED_LISTENER;
    hub->wake_watched.kind = WATCHED_WAKE;
    pthread_mutex_init(&hub->lock, NULL);
    pthread_cond_init(&hub->removed, NULL);
    hub->listener = -1;
    hub->epoll = epoll_create1(EPOLL_CLOEXEC);
    hub->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    hub->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (hub->epoll < 0 || hub->wake < 0 || hub->spare < 0 ||
        !watch(hub, EPOLL_CTL_ADD, hub->wake, EPOLLIN, &hub->wake_watched))
        status = tnd_fail_errno(errno, "make the server's event loop");
    else
        status = listen_open(path, &hub->listener);
    if (status == TUNDISH_OK &&
        !watch(hub, EPOLL_CTL_ADD, hub->listener, EPOLLIN, &hub->listener_watched))
        status = tnd_fail_errno(errno, "watch the server's socket");
    if (status != TUNDISH_OK) {
        hub_close(hub);
        return status;
    }
    *ret_hub = hub;
    return TUNDISH_OK;
}

/* Letters wait for the socket: ask to be told when it is writable. Any thread. */
static void
on_backed_up(struct client *client)
{
    struct guest *guest =
        (struct guest *)(void *)((char *)client - offsetof(struct guest, visitor.client));

    watch(guest->visitor.hub, EPOLL_CTL_MOD, client->socket, EPOLLIN | EPOLLOUT,
          &guest->socket_watched);
}

void
hub_send_away(struct hub *hub, struct guest *guest, bool died)
{
    if (guest->is_gone)
        return;
    guest->is_gone = true;
    /* Closing would not do: a child that was forked meanwhile may have the descriptors as well. */
    epoll_ctl(hub->epoll, EPOLL_CTL_DEL, guest->visitor.client.socket, NULL);
    if (guest->pidfd >= 0)
        epoll_ctl(hub->epoll, EPOLL_CTL_DEL, guest->pidfd, NULL);
    if (guest->wakeup >= 0)
        epoll_ctl(hub->epoll, EPOLL_CTL_DEL, guest->wakeup, NULL);
    visitor_leave(&guest->visitor, died);
}

static void
drop_guest(struct hub *hub, struct guest *guest)
{
    struct guest **link = &hub->guests;

    hub_send_away(hub, guest, false);
    while (*link != guest)
        link = &(*link)->next;
    *link = guest->next;
    hub->guest_count--;
    if (guest->pidfd >= 0)
        close(guest->pidfd);
    free(guest);
}

/* Only processes of our own user, or root. */
static bool
is_welcome(int socket, int *ret_pid)
{
    struct ucred credentials;
    socklen_t bytes = sizeof credentials;

    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0)
        return false;
    *ret_pid = credentials.pid;
    return credentials.uid == geteuid() || credentials.uid == 0;
}

static void
accept_one(struct hub *hub, int socket)
{
    struct guest *guest;
    int pid = 0;

    if (hub->guest_count >= hub->config.client_limit || !is_welcome(socket, &pid)) {
        close(socket);
        return;
    }
    guest = tnd_zalloc(1, sizeof *guest);
    guest->socket_watched.kind = WATCHED_VISITOR;
    guest->pid_watched.kind = WATCHED_PID;
    guest->wakeup_watched.kind = WATCHED_WAKEUP;
    guest->wakeup = -1;
    visitor_open(&guest->visitor, hub, socket, tnd_clock_deadline_ns(hub->config.hello_ns),
                 on_backed_up);
    guest->visitor.client.pid = pid;
    /* A number may have been given to another process by now, but then our socket hangs up. */
    guest->pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    guest->next = hub->guests;
    hub->guests = guest;
    hub->guest_count++;
    if (guest->pidfd >= 0)
        watch(hub, EPOLL_CTL_ADD, guest->pidfd, EPOLLIN, &guest->pid_watched);
    if (!watch(hub, EPOLL_CTL_ADD, socket, EPOLLIN, &guest->socket_watched))
        drop_guest(hub, guest);
}

/* With no descriptors left a visitor would knock for ever and keep us awake: let him in by the
 * spare one, and out again. */
static void
turn_away(struct hub *hub)
{
    close(hub->spare);
    close(accept4(hub->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
    hub->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void
accept_all(struct hub *hub)
{
    for (;;) {
        int socket = accept4(hub->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (socket >= 0) {
            accept_one(hub, socket);
        } else if (errno == EMFILE || errno == ENFILE) {
            turn_away(hub);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static void
serve_guest(struct hub *hub, struct guest *guest, uint32_t events)
{
    struct client *client = &guest->visitor.client;

    /* Flushed once more after the change: another thread may have posted in between. */
    if ((events & EPOLLOUT) != 0 && client_flush(client)) {
        watch(hub, EPOLL_CTL_MOD, client->socket, EPOLLIN, &guest->socket_watched);
        if (!client_flush(client))
            on_backed_up(client);
    }
    switch (visitor_read(&guest->visitor)) {
    case VISITOR_STAYS:
        break;
    case VISITOR_SAT_DOWN:
        guest->wakeup = feed_queue_wakeup(guest->visitor.feed, guest->visitor.seat);
        if (guest->wakeup >= 0)
            watch(hub, EPOLL_CTL_ADD, guest->wakeup, EPOLLIN | EPOLLET, &guest->wakeup_watched);
        break;
    case VISITOR_LEFT:
        hub_send_away(hub, guest, false);
        break;
    case VISITOR_DIED:
        hub_send_away(hub, guest, true);
        break;
    }
    if (guest->visitor.client.broken)
        hub_send_away(hub, guest, true);
}

/* What it said before it died is still in the socket: a farewell counts. */
static void
bury_guest(struct hub *hub, struct guest *guest)
{
    if (!guest->is_gone)
        serve_guest(hub, guest, 0);
    hub_send_away(hub, guest, true);
}

static struct guest *
guest_of(struct watched *watched)
{
    size_t offset = watched->kind == WATCHED_VISITOR ? offsetof(struct guest, socket_watched)
                    : watched->kind == WATCHED_PID   ? offsetof(struct guest, pid_watched)
                                                     : offsetof(struct guest, wakeup_watched);

    return (struct guest *)(void *)((char *)watched - offset);
}

static void
dispatch(struct hub *hub, const struct epoll_event *event)
{
    struct watched *watched = event->data.ptr;
    uint64_t count;

    switch (watched->kind) {
    case WATCHED_LISTENER:
        accept_all(hub);
        break;
    case WATCHED_WAKE:
        if (read(hub->wake, &count, sizeof count) < 0)
            must(errno == EAGAIN);
        break;
    case WATCHED_VISITOR:
        if (!guest_of(watched)->is_gone)
            serve_guest(hub, guest_of(watched), event->events);
        break;
    case WATCHED_PID:
        bury_guest(hub, guest_of(watched));
        break;
    case WATCHED_WAKEUP:
        if (!guest_of(watched)->is_gone)
            feed_queue_signalled(guest_of(watched)->visitor.feed);
        break;
    case WATCHED_OTHER:
        ((struct other *)(void *)watched)->ready(((struct other *)(void *)watched)->user);
        break;
    }
}

void
hub_drop_gone_guests(struct hub *hub)
{
    struct guest *guest = hub->guests;

    while (guest != NULL) {
        struct guest *next = guest->next;

        if (guest->is_gone)
            drop_guest(hub, guest);
        guest = next;
    }
}

/* Whoever has not introduced himself in time. Returns when to look again. */
static int64_t
check_hellos(struct hub *hub, int64_t now_ns)
{
    int64_t next_ns = TND_CLOCK_NEVER;

    for (struct guest *guest = hub->guests; guest != NULL; guest = guest->next) {
        if (guest->visitor.seat != NULL || guest->is_gone)
            continue;
        if (guest->visitor.hello_deadline_ns <= now_ns)
            hub_send_away(hub, guest, true);
        else if (guest->visitor.hello_deadline_ns < next_ns)
            next_ns = guest->visitor.hello_deadline_ns;
    }
    return next_ns;
}

/* Whoever is ending, before the kernel has cleared it away and says so. Returns when to look again.
 */
static int64_t
check_endings(struct hub *hub, int64_t now_ns)
{
    bool somebody = false;

    if (now_ns < hub->next_look_ns)
        return hub->next_look_ns;
    for (struct guest *guest = hub->guests; guest != NULL; guest = guest->next) {
        if (guest->visitor.seat == NULL || guest->visitor.client.pid <= 0)
            continue;
        somebody = true;
        if (process_is_ending(guest->visitor.client.pid))
            bury_guest(hub, guest);
    }
    if (!somebody)
        return TND_CLOCK_NEVER;
    return hub->next_look_ns = now_ns + LOOK_NS;
}

/* Feeds are only removed by this thread (finish_removal), so the list may grow meanwhile, but what
 * was in it stays valid. */
static int64_t
tick_feeds(struct hub *hub, int64_t now_ns)
{
    int64_t next_ns = TND_CLOCK_NEVER;

    for (uint32_t i = 0;; i++) {
        struct feed *feed;
        int64_t at_ns;

        pthread_mutex_lock(&hub->lock);
        feed = i < hub->feed_count ? hub->feeds[i] : NULL;
        pthread_mutex_unlock(&hub->lock);
        if (feed == NULL)
            return next_ns;
        at_ns = feed_tick(feed, now_ns);
        next_ns = at_ns < next_ns ? at_ns : next_ns;
        if (feed_beat(feed, now_ns) && now_ns + BEAT_NS < next_ns)
            next_ns = now_ns + BEAT_NS;
    }
}

static int
milliseconds_until(int64_t deadline_ns)
{
    int64_t left_ns = tnd_clock_left_ns(deadline_ns);

    if (deadline_ns == TND_CLOCK_NEVER)
        return -1;
    return left_ns > INT64_C(60000000000) ? 60000 : (int)((left_ns + 999999) / 1000000);
}

static void *
run(void *argument)
{
    struct hub *hub = argument;
    struct epoll_event events[EVENTS_AT_A_TIME];

    while (!atomic_load(&hub->stop)) {
        int64_t now_ns = tnd_clock_ns();
        int64_t next_ns = tick_feeds(hub, now_ns);
        int64_t hello_ns = check_hellos(hub, now_ns);
        int64_t look_ns = check_endings(hub, now_ns);
        int count;

        hub_drop_gone_guests(hub);
        hub_finish_removal(hub);
        if (hello_ns < next_ns)
            next_ns = hello_ns;
        if (look_ns < next_ns)
            next_ns = look_ns;
        count = epoll_wait(hub->epoll, events, EVENTS_AT_A_TIME, milliseconds_until(next_ns));
        for (int i = 0; i < count; i++)
            dispatch(hub, &events[i]);
        hub_drop_gone_guests(hub);
    }
    return NULL;
}

tundish_status
hub_start(struct hub *hub)
{
    tundish_status status = tnd_memory_for_threads(1);
    int error;

    must(!hub->is_running);
    if (status != TUNDISH_OK)
        return status;
    atomic_store(&hub->stop, false);
    error = pthread_create(&hub->thread, NULL, run, hub);
    if (error != 0)
        return tnd_fail_errno(error, "start the server's event loop");
    hub->is_running = true;
    return TUNDISH_OK;
}

void
hub_stop(struct hub *hub)
{
    if (!hub->is_running)
        return;
    atomic_store(&hub->stop, true);
    hub_wake(hub);
    pthread_join(hub->thread, NULL);
    hub->is_running = false;
}

void
hub_close(struct hub *hub)
{
    if (hub == NULL)
        return;
    hub_stop(hub);
    for (uint32_t i = 0; i < hub->feed_count; i++)
        feed_note_ending(hub->feeds[i]);
    while (hub->guests != NULL)
        drop_guest(hub, hub->guests);
    listen_close(hub->listener, hub->path);
    if (hub->epoll >= 0)
        close(hub->epoll);
    if (hub->wake >= 0)
        close(hub->wake);
    if (hub->spare >= 0)
        close(hub->spare);
    while (hub->others != NULL) {
        struct other *next = hub->others->next;

        free(hub->others);
        hub->others = next;
    }
    pthread_mutex_destroy(&hub->lock);
    pthread_cond_destroy(&hub->removed);
    free(hub->feeds);
    free(hub->path);
    free(hub);
}

tundish_status
hub_watch(struct hub *hub, int descriptor, void (*ready)(void *user), void *user)
{
    struct other *other = tnd_zalloc(1, sizeof *other);

    other->watched.kind = WATCHED_OTHER;
    other->descriptor = descriptor;
    other->ready = ready;
    other->user = user;
    if (!watch(hub, EPOLL_CTL_ADD, descriptor, EPOLLIN, &other->watched)) {
        free(other);
        return tnd_fail_errno(errno, "watch a descriptor");
    }
    pthread_mutex_lock(&hub->lock);
    other->next = hub->others;
    hub->others = other;
    pthread_mutex_unlock(&hub->lock);
    return TUNDISH_OK;
}

void
hub_unwatch(struct hub *hub, int descriptor)
{
    epoll_ctl(hub->epoll, EPOLL_CTL_DEL, descriptor, NULL);
}
