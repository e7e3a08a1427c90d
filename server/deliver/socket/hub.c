/* hub.c - one thread with one epoll set: new connections, their messages and their ends. */
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
#include "deliver/socket/connection.h"
#include "deliver/socket/group.h"
#include "deliver/socket/hub_private.h"
#include "deliver/socket/listen.h"
#include "shm/layout.h"

#define BEAT_NS INT64_C(1000000000)
#define LOOK_NS INT64_C(25000000) /* between looks for dying trainers */
#define HELLO_DEFAULT_NS INT64_C(5000000000)

enum { CLIENTS_DEFAULT = 256, EVENTS_AT_A_TIME = 64 };

static bool
watch_descriptor(struct hub *hub, int operation, int descriptor, uint32_t events,
                 struct watched *watched)
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
        !watch_descriptor(hub, EPOLL_CTL_ADD, hub->wake, EPOLLIN, &hub->wake_watched))
        status = tnd_fail_errno(errno, "cannot make the server's event loop");
    else
        status = listen_open(path, config->group, &hub->listener);
    if (status == TUNDISH_OK &&
        !watch_descriptor(hub, EPOLL_CTL_ADD, hub->listener, EPOLLIN, &hub->listener_watched))
        status = tnd_fail_errno(errno, "cannot watch the server's socket");
    if (status != TUNDISH_OK) {
        hub_close(hub);
        return status;
    }
    *ret_hub = hub;
    return TUNDISH_OK;
}

/* Messages wait for the socket. Ask epoll to say when it is writable. Any thread. */
static void
on_backed_up(struct connection *connection)
{
    struct hub_connection *entry =
        (struct hub_connection *)(void *)((char *)connection -
                                          offsetof(struct hub_connection, protocol.connection));

    watch_descriptor(entry->protocol.hub, EPOLL_CTL_MOD, connection->socket, EPOLLIN | EPOLLOUT,
                     &entry->socket_watched);
}

void
hub_drop(struct hub *hub, struct hub_connection *entry, bool died)
{
    if (entry->is_dropped)
        return;
    entry->is_dropped = true;
    /* Closing the descriptors is not enough: epoll watches open files, and a child forked meanwhile
     * may hold the same ones. */
    epoll_ctl(hub->epoll, EPOLL_CTL_DEL, entry->protocol.connection.socket, NULL);
    if (entry->pidfd >= 0)
        epoll_ctl(hub->epoll, EPOLL_CTL_DEL, entry->pidfd, NULL);
    if (entry->wakeup >= 0)
        epoll_ctl(hub->epoll, EPOLL_CTL_DEL, entry->wakeup, NULL);
    protocol_close(&entry->protocol, died);
}

static void
free_connection(struct hub *hub, struct hub_connection *entry)
{
    struct hub_connection **link = &hub->connections;

    hub_drop(hub, entry, false);
    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    hub->connection_count--;
    if (entry->pidfd >= 0)
        close(entry->pidfd);
    free(entry);
}

static bool
is_owner(const struct ucred *peer)
{
    return peer->uid == geteuid() || peer->uid == 0;
}

/* Accept only processes of the server's own user, or of root, and of the group if there is one. */
static bool
is_accepted(const struct hub *hub, int socket, struct ucred *ret_credentials)
{
    const gid_t *group = hub->config.group;
    socklen_t bytes = sizeof *ret_credentials;

    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, ret_credentials, &bytes) != 0)
        return false;
    return is_owner(ret_credentials) ||
           (group != NULL && group_has_peer(socket, ret_credentials->gid, *group));
}

static void
accept_one(struct hub *hub, int socket)
{
    struct hub_connection *entry;
    struct ucred peer = { 0 };

    if (hub->connection_count >= hub->config.client_limit || !is_accepted(hub, socket, &peer)) {
        close(socket);
        return;
    }
    entry = tnd_zalloc(1, sizeof *entry);
    entry->socket_watched.kind = WATCHED_SOCKET;
    entry->pid_watched.kind = WATCHED_PID;
    entry->wakeup_watched.kind = WATCHED_WAKEUP;
    entry->wakeup = -1;
    protocol_open(&entry->protocol, hub, socket, tnd_clock_deadline_ns(hub->config.hello_ns),
                  on_backed_up);
    entry->protocol.connection.pid = peer.pid;
    entry->protocol.may_control = is_owner(&peer);
    /* The process may have died and its number may have gone to another since. Then the socket
     * hangs up, which drops the connection. */
    entry->pidfd = peer.pid > 0 ? (int)syscall(SYS_pidfd_open, peer.pid, 0) : -1;
    entry->next = hub->connections;
    hub->connections = entry;
    hub->connection_count++;
    if (entry->pidfd >= 0)
        watch_descriptor(hub, EPOLL_CTL_ADD, entry->pidfd, EPOLLIN, &entry->pid_watched);
    if (!watch_descriptor(hub, EPOLL_CTL_ADD, socket, EPOLLIN, &entry->socket_watched))
        free_connection(hub, entry);
}

/* Without free descriptors a pending connection would wake this thread endlessly. Accept it with
 * the spare descriptor and close it. */
static void
refuse_one(struct hub *hub)
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
            refuse_one(hub);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static void
serve_connection(struct hub *hub, struct hub_connection *entry, uint32_t events)
{
    struct connection *connection = &entry->protocol.connection;

    /* Another thread may have posted between the flush and the change, and asked for EPOLLOUT,
     * which the change then removed. So flush once more after it. */
    if ((events & EPOLLOUT) != 0 && connection_flush(connection)) {
        watch_descriptor(hub, EPOLL_CTL_MOD, connection->socket, EPOLLIN, &entry->socket_watched);
        if (!connection_flush(connection))
            on_backed_up(connection);
    }
    switch (protocol_read(&entry->protocol)) {
    case PROTOCOL_CONTINUES:
        break;
    case PROTOCOL_JOINED:
        entry->wakeup = feed_queue_wakeup(entry->protocol.feed, entry->protocol.member);
        if (entry->wakeup >= 0)
            watch_descriptor(hub, EPOLL_CTL_ADD, entry->wakeup, EPOLLIN | EPOLLET,
                             &entry->wakeup_watched);
        break;
    case PROTOCOL_LEFT:
        hub_drop(hub, entry, false);
        break;
    case PROTOCOL_BROKEN:
        hub_drop(hub, entry, true);
        break;
    }
    if (entry->protocol.connection.broken)
        hub_drop(hub, entry, true);
}

/* Its last messages are still in the socket. A BYE among them counts: then it left in good
 * order. */
static void
drop_dead(struct hub *hub, struct hub_connection *entry)
{
    if (!entry->is_dropped)
        serve_connection(hub, entry, 0);
    hub_drop(hub, entry, true);
}

static struct hub_connection *
connection_of(struct watched *watched)
{
    size_t offset =
        watched->kind == WATCHED_SOCKET ? offsetof(struct hub_connection, socket_watched)
        : watched->kind == WATCHED_PID  ? offsetof(struct hub_connection, pid_watched)
                                        : offsetof(struct hub_connection, wakeup_watched);

    return (struct hub_connection *)(void *)((char *)watched - offset);
}

static void
dispatch_event(struct hub *hub, const struct epoll_event *event)
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
    case WATCHED_SOCKET:
        if (!connection_of(watched)->is_dropped)
            serve_connection(hub, connection_of(watched), event->events);
        break;
    case WATCHED_PID:
        drop_dead(hub, connection_of(watched));
        break;
    case WATCHED_WAKEUP:
        if (!connection_of(watched)->is_dropped)
            feed_queue_signalled(connection_of(watched)->protocol.feed);
        break;
    case WATCHED_OTHER:
        ((struct other *)(void *)watched)->ready(((struct other *)(void *)watched)->user);
        break;
    }
}

/* Never inside the dispatch loop: later events of the same epoll_wait may point to a dropped
 * connection. */
void
hub_free_dropped(struct hub *hub)
{
    struct hub_connection *entry = hub->connections;

    while (entry != NULL) {
        struct hub_connection *next = entry->next;

        if (entry->is_dropped)
            free_connection(hub, entry);
        entry = next;
    }
}

/* Drop connections that have not sent HELLO in time. Returns when to look again. */
static int64_t
check_hellos(struct hub *hub, int64_t now_ns)
{
    int64_t next_ns = TND_CLOCK_NEVER;

    for (struct hub_connection *entry = hub->connections; entry != NULL; entry = entry->next) {
        if (entry->protocol.member != NULL || entry->is_dropped)
            continue;
        if (entry->protocol.hello_deadline_ns <= now_ns)
            hub_drop(hub, entry, true);
        else if (entry->protocol.hello_deadline_ns < next_ns)
            next_ns = entry->protocol.hello_deadline_ns;
    }
    return next_ns;
}

/* Drop trainers that are dying before the kernel has freed their memory and signals the pidfd.
 * Returns when to look again. */
static int64_t
check_endings(struct hub *hub, int64_t now_ns)
{
    bool somebody = false;

    if (now_ns < hub->next_look_ns)
        return hub->next_look_ns;
    for (struct hub_connection *entry = hub->connections; entry != NULL; entry = entry->next) {
        if (entry->protocol.member == NULL || entry->protocol.connection.pid <= 0)
            continue;
        somebody = true;
        if (ending_has_begun(entry->protocol.connection.pid))
            drop_dead(hub, entry);
    }
    if (!somebody)
        return TND_CLOCK_NEVER;
    return hub->next_look_ns = now_ns + LOOK_NS;
}

/* Only this thread removes feeds (hub_finish_removal). So the list may grow meanwhile, but its
 * entries stay valid without the lock. */
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
    /* Rounded up: rounding down would wake just before the deadline, again and again. */
    return left_ns > INT64_C(60000000000) ? 60000 : (int)((left_ns + 999999) / 1000000);
}

static void *
run_hub(void *argument)
{
    struct hub *hub = argument;
    struct epoll_event events[EVENTS_AT_A_TIME];

    while (!atomic_load(&hub->stop)) {
        int64_t now_ns = tnd_clock_ns();
        int64_t next_ns = tick_feeds(hub, now_ns);
        int64_t hello_ns = check_hellos(hub, now_ns);
        int64_t look_ns = check_endings(hub, now_ns);
        int count;

        hub_free_dropped(hub);
        hub_finish_removal(hub);
        if (hello_ns < next_ns)
            next_ns = hello_ns;
        if (look_ns < next_ns)
            next_ns = look_ns;
        count = epoll_wait(hub->epoll, events, EVENTS_AT_A_TIME, milliseconds_until(next_ns));
        for (int i = 0; i < count; i++)
            dispatch_event(hub, &events[i]);
        hub_free_dropped(hub);
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
    error = pthread_create(&hub->thread, NULL, run_hub, hub);
    if (error != 0)
        return tnd_fail_errno(error, "cannot start the server's event loop");
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
        /* Before any trainer is detached: survivors read the group counts of this moment. */
        feed_note_ending(hub->feeds[i]);
    while (hub->connections != NULL)
        free_connection(hub, hub->connections);
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
hub_add_descriptor(struct hub *hub, int descriptor, void (*ready)(void *user), void *user)
{
    struct other *other = tnd_zalloc(1, sizeof *other);

    other->watched.kind = WATCHED_OTHER;
    other->descriptor = descriptor;
    other->ready = ready;
    other->user = user;
    if (!watch_descriptor(hub, EPOLL_CTL_ADD, descriptor, EPOLLIN, &other->watched)) {
        free(other);
        return tnd_fail_errno(errno, "cannot watch a descriptor");
    }
    pthread_mutex_lock(&hub->lock);
    other->next = hub->others;
    hub->others = other;
    pthread_mutex_unlock(&hub->lock);
    return TUNDISH_OK;
}
