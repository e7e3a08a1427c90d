/* link.c - the thread that talks to the other nodes, the thread that notifies subscribers, and
 * joining and leaving.
 *
 * States: JOINING -> JOINED -> LEAVING -> LEFT. REFUSED: joining failed. CUT: leaving took too
 * long, so the thread stops without an orderly goodbye.
 */
#include "link/link_private.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "link/job.h"
#include "link/tree.h"

static const int64_t BEAT_NS = 500000000, SILENCE_NS = 5000000000, COUNTERS_NS = 500000000;
static const int64_t PAUSE_MIN_NS = 20000, PAUSE_MAX_NS = 10000000, PAUSE_WANTED_NS = 1000000;
/* Shorter pauses while messages flow: more are likely. */
static const int64_t PAUSE_BUSY_NS = 300000, BUSY_NS = 100000000;
static const int64_t JOIN_NS = 120000000000, FINISH_NS = 10000000000;
static const int64_t LOOK_NS = 20000000;
/* A thread that stays inside MPI for this many watch periods is given up. */
static const int64_t WATCH_NS = 1000000000;
enum { WATCHES_MAX = 5 };

static void
add_event(struct link *link, uint32_t from, const struct link_key *key, struct byte_view bytes)
{
    struct link_event *event = tnd_zalloc(1, sizeof *event + bytes.size + 1);

    event->from = from;
    event->is_failure = key == NULL;
    if (key != NULL)
        event->key = *key;
    event->byte_count = bytes.size;
    if (bytes.size > 0)
        memcpy(event->bytes, bytes.data, bytes.size);
    *link->last_event = event;
    link->last_event = &event->next;
    pthread_cond_signal(&link->has_event);
}

static void
arrived(void *user, uint32_t from, const struct link_key *key, struct byte_view bytes)
{
    add_event(user, from, key, bytes);
}

/* Deliver the first event. The lock is held, but released while the subscriber runs, because it may
 * post. */
static void
tell_first(struct link *link)
{
    struct link_event *event = link->events;
    link_subscriber subscriber = link->subscriber;
    void *user = link->subscriber_user;

    link->events = event->next;
    if (link->events == NULL)
        link->last_event = &link->events;
    link->subscriber_runs = true;
    pthread_mutex_unlock(&link->lock);
    subscriber(user, event->from, event->is_failure ? NULL : &event->key,
               (struct byte_view){ event->bytes, event->byte_count });
    free(event);
    pthread_mutex_lock(&link->lock);
    link->subscriber_runs = false;
    pthread_cond_broadcast(&link->changed);
}

static void
end_telling(struct link *link)
{
    if (!link->notifier_started)
        return;
    pthread_mutex_lock(&link->lock);
    link->notifier_ends = true;
    pthread_cond_signal(&link->has_event);
    pthread_mutex_unlock(&link->lock);
    pthread_join(link->notifier, NULL);
    link->notifier_started = false;
}

void
link_subscribe(struct link *link, link_subscriber subscriber, void *user)
{
    pthread_mutex_lock(&link->lock);
    link->subscriber = subscriber;
    link->subscriber_user = user;
    pthread_cond_signal(&link->has_event);
    /* After unsubscribing, the old subscriber must not run any more: its caller frees `user` next.
     */
    while (subscriber == NULL && link->subscriber_runs)
        pthread_cond_wait(&link->changed, &link->lock);
    pthread_mutex_unlock(&link->lock);
}

void
link_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t pause_ns)
{
    int64_t until_ns = tnd_clock_ns() + pause_ns;
    struct timespec until = { .tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000 };

    pthread_cond_timedwait(condition, lock, &until);
}

static void
note_failure(struct link *link)
{
    const char *text = node_failure(link->node);

    if (text == NULL || link->told_failure)
        return;
    link->told_failure = true;
    link->changes++;
    pthread_cond_broadcast(&link->changed);
    tnd_log(TND_LOG_ERROR, "link", "%s", text);
    add_event(link, link->rank, NULL, bytes_of_text(text));
}

void
link_fail(struct link *link, const char *text)
{
    if (link->size == 1)
        return;
    pthread_mutex_lock(&link->lock);
    node_fail(link->node, text);
    note_failure(link);
    pthread_mutex_unlock(&link->lock);
}

/* Detects that the thread hangs in MPI. Its turns are counted, not timed: if the whole process was
 * stopped, no turn was missed. */
struct watchdog {
    int64_t next_ns;
    uint64_t turns;
    int still;
};

static void
give_up_thread(struct link *link)
{
    char name[NODE_NAME_BYTES], text[NODE_NAME_BYTES + 128];

    if (link->sending_to < link->size)
        snprintf(text, sizeof text,
                 "MPI on this node has not returned from sending to %s: the connection to it has "
                 "broken",
                 node_name(link->node, link->sending_to, name));
    else
        snprintf(text, sizeof text,
                 "an MPI call does not return on this node: the connection to another node has "
                 "broken");
    node_fail(link->node, text);
    note_failure(link);
}

static void
watch_thread(struct link *link, struct watchdog *watchdog)
{
    int64_t now_ns = tnd_clock_ns();

    if (now_ns < watchdog->next_ns)
        return;
    watchdog->next_ns = now_ns + WATCH_NS;
    watchdog->still =
        link->turns == watchdog->turns && link->state == LINK_JOINED ? watchdog->still + 1 : 0;
    watchdog->turns = link->turns;
    if (watchdog->still >= WATCHES_MAX)
        give_up_thread(link);
}

/* Notify subscribers from a separate thread: a slow one must not delay heartbeats, or other nodes
 * would take this one for lost. */
static void *
run_notifier(void *argument)
{
    struct link *link = argument;
    struct watchdog watchdog = { 0 };

    pthread_mutex_lock(&link->lock);
    while (!link->notifier_ends) {
        if (link->subscriber != NULL && link->events != NULL)
            tell_first(link);
        else
            link_wait_until(&link->has_event, &link->lock, WATCH_NS);
        watch_thread(link, &watchdog);
    }
    pthread_mutex_unlock(&link->lock);
    return NULL;
}

static bool
is_over(const struct link *link)
{
    return link->state == LINK_CUT ||
           (link->state == LINK_LEAVING &&
            (node_is_done(link->node) ||
             (node_failure(link->node) != NULL && !node_is_unheard(link->node))));
}

static int64_t
longest_pause(const struct link *link)
{
    if (tnd_clock_ns() - link->message_ns < BUSY_NS)
        return PAUSE_BUSY_NS;
    return link->waiting > 0 ? PAUSE_WANTED_NS : PAUSE_MAX_NS;
}

/* Exchange messages until the job is over. MPI has no wait that sleeps, so this polls: pauses
 * double while nothing moves, and end when another thread posts. */
static void
talk(struct link *link)
{
    int64_t pause_ns = PAUSE_MIN_NS;

    pthread_mutex_lock(&link->lock);
    while (!is_over(link)) {
        int64_t longest_ns = longest_pause(link);

        link->has_posted = false;
        link->turns++;
        if (link->state == LINK_LEAVING)
            node_leave(link->node);
        if (node_step(link->node)) {
            pause_ns = PAUSE_MIN_NS;
            link->changes++;
            pthread_cond_broadcast(&link->changed);
        } else if (pause_ns < longest_ns) {
            pause_ns *= 2;
        }
        note_failure(link);
        link_hand_out(link);
        if (!link->has_posted)
            link_wait_until(&link->posted, &link->lock,
                            pause_ns < longest_ns ? pause_ns : longest_ns);
    }
    pthread_mutex_unlock(&link->lock);
}

static void
set_state(struct link *link, enum link_state state)
{
    pthread_mutex_lock(&link->lock);
    link->state = state;
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->lock);
}

/* All come over rank 0's children, the first of which has the most nodes below. */
int64_t
link_counters_ns(const struct link *link, uint32_t nodes)
{
    uint32_t size = nodes < link->size ? nodes : link->size;

    return COUNTERS_NS / tree_levels(link->size) * tree_nodes_below(size, 1);
}

/* Release the lock around MPI calls, which may take long or never return. Meanwhile other threads
 * only append to the node's queues. */
static bool
send_unlocked(void *state, uint32_t to, const void *bytes, size_t byte_count)
{
    struct link *link = state;
    bool is_sent;

    link->sending_to = to;
    pthread_mutex_unlock(&link->lock);
    is_sent = link->channel->send(link->channel_state, to, bytes, byte_count);
    pthread_mutex_lock(&link->lock);
    link->sending_to = link->size;
    return is_sent;
}

static size_t
receive_unlocked(void *state, uint32_t *ret_from, const void **ret_bytes)
{
    struct link *link = state;
    size_t byte_count;

    pthread_mutex_unlock(&link->lock);
    byte_count = link->channel->receive(link->channel_state, ret_from, ret_bytes);
    pthread_mutex_lock(&link->lock);
    return byte_count;
}

static const struct channel_ops unlocked = { .send = send_unlocked, .receive = receive_unlocked };

static void
open_node(struct link *link)
{
    struct node_config config = {
        .channel = &unlocked,
        .channel_state = link,
        .rank = link->rank,
        .size = link->size,
        .host = link->host,
        .beat_ns = BEAT_NS,
        .silence_ns = SILENCE_NS,
        .counters_ns = COUNTERS_NS,
        .arrived = arrived,
        .message_came = link_message_came,
        .user = link,
    };

    link->sending_to = link->size;
    node_open(&config, &link->node);
}

/* The only thread that calls MPI, from joining to leaving: MPI is initialized with
 * THREAD_SERIALIZED. */
static void *
run(void *argument)
{
    struct link *link = argument;
    bool in_order;

    link->channel_state = link->channel->open(&link->rank, &link->size, link->refusal);
    if (link->channel_state == NULL) {
        set_state(link, LINK_REFUSED);
        return NULL;
    }
    open_node(link);
    set_state(link, LINK_JOINED);
    talk(link);
    pthread_mutex_lock(&link->lock);
    in_order = node_is_done(link->node);
    pthread_mutex_unlock(&link->lock);
    link->channel->close(link->channel_state, in_order);
    set_state(link, LINK_LEFT);
    return NULL;
}

static void
prepare(struct link *link)
{
    pthread_mutex_init(&link->lock, NULL);
    tnd_condition_open(&link->changed);
    tnd_condition_open(&link->posted);
    tnd_condition_open(&link->has_event);
    link->last_event = &link->events;
    link->last_message = &link->messages;
    link->message_ns = INT64_MIN / 2;
    if (gethostname(link->host, sizeof link->host - 1) != 0)
        snprintf(link->host, sizeof link->host, "?");
}

static tundish_status
join_alone(struct link *link)
{
    link->channel = &link_none;
    link->channel_state = link->channel->open(&link->rank, &link->size, link->refusal);
    open_node(link);
    link->state = LINK_JOINED;
    return TUNDISH_OK;
}

static tundish_status
join_mpi(struct link *link)
{
    int64_t deadline_ns = tnd_clock_deadline_ns(JOIN_NS);
    tundish_status status = job_load_mpi(&link->module, &link->channel);
    int error;

    if (status != TUNDISH_OK)
        return status;
    error = pthread_create(&link->thread, NULL, run, link);
    if (error != 0)
        return tnd_fail_errno(error, "cannot start a thread");
    link->thread_started = true;
    error = pthread_create(&link->notifier, NULL, run_notifier, link);
    if (error != 0)
        return tnd_fail_errno(error, "cannot start a thread");
    link->notifier_started = true;
    pthread_mutex_lock(&link->lock);
    while (link->state == LINK_JOINING && tnd_clock_left_ns(deadline_ns) > 0)
        link_wait_until(&link->changed, &link->lock, LOOK_NS);
    if (link->state == LINK_JOINING)
        status =
            tnd_fail(TUNDISH_E_PEER_LOST, "the other nodes of the MPI job did not join within %d s",
                     (int)(JOIN_NS / 1000000000));
    else if (link->state == LINK_REFUSED)
        status = tnd_fail(TUNDISH_E_SYSTEM, "cannot join the MPI job: %s", link->refusal);
    pthread_mutex_unlock(&link->lock);
    return status;
}

tundish_status
link_open(const struct link_options *options, struct link **ret_link)
{
    struct link *link = tnd_zalloc(1, sizeof *link);
    tundish_status status;

    prepare(link);
    status = job_is_of_mpi() ? join_mpi(link) : join_alone(link);
    if (status == TUNDISH_OK)
        status = job_check_size(options->expected_nodes, link->size);
    if (status != TUNDISH_OK) {
        link_close(link);
        return status;
    }
    *ret_link = link;
    return TUNDISH_OK;
}

/* Wait until the thread has left, or until waiting longer is useless: first for the others to leave
 * too (linger), then for MPI to finish. */
static void
wait_for_leaving(struct link *link, int64_t linger_ns)
{
    int64_t linger_until_ns = tnd_clock_deadline_ns(linger_ns), finish_until_ns = TND_CLOCK_NEVER;

    pthread_mutex_lock(&link->lock);
    link->state = link->state == LINK_JOINED ? LINK_LEAVING : link->state;
    link->has_posted = true;
    pthread_cond_signal(&link->posted);
    while ((link->state == LINK_LEAVING || link->state == LINK_CUT) &&
           tnd_clock_left_ns(finish_until_ns) > 0) {
        if (tnd_clock_left_ns(linger_until_ns) == 0)
            link->state = LINK_CUT;
        if (finish_until_ns == TND_CLOCK_NEVER && is_over(link))
            finish_until_ns = tnd_clock_deadline_ns(FINISH_NS);
        link_wait_until(&link->changed, &link->lock, LOOK_NS);
    }
    pthread_mutex_unlock(&link->lock);
}

/* A thread that hangs inside MPI is abandoned together with its link: the process is about to exit.
 */
void
link_leave(struct link *link, int64_t linger_ns)
{
    if (link == NULL || !link->thread_started)
        return;
    end_telling(link);
    wait_for_leaving(link, linger_ns);
    pthread_mutex_lock(&link->lock);
    link->hangs = link->state != LINK_LEFT && link->state != LINK_REFUSED;
    pthread_mutex_unlock(&link->lock);
    if (link->hangs)
        pthread_detach(link->thread);
    else
        pthread_join(link->thread, NULL);
    link->thread_started = false;
}

void
link_close(struct link *link)
{
    if (link == NULL)
        return;
    link_leave(link, 0);
    if (link->hangs)
        return;
    while (link->events != NULL) {
        struct link_event *event = link->events;

        link->events = event->next;
        free(event);
    }
    link_drop_messages(link);
    node_close(link->node);
    pthread_cond_destroy(&link->has_event);
    pthread_cond_destroy(&link->posted);
    pthread_cond_destroy(&link->changed);
    pthread_mutex_destroy(&link->lock);
    free(link);
}
