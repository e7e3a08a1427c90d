/* named_sessions.c - sessions by name, as trainers ask for them. */
#include "session/named_sessions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/clock.h"
#include "core/hash_farm.h"
#include "core/lock.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "deliver/wakeup.h"

enum { NAMED_SESSIONS_MAX = 64 };

struct named_session {
    struct named_session *next;
    char *name;
    struct session *session;
    struct wakeup *wakeup;
};

struct named_sessions {
    struct named_sessions_options options;
    uint64_t readers;     /* of evaluations, ever */
    struct tnd_lock lock; /* of the rest */
    struct named_session *list;
    bool stopping;
};

struct named_sessions *
named_sessions_open(const struct named_sessions_options *options)
{
    struct named_sessions *sessions = tnd_zalloc(1, sizeof *sessions);

    sessions->options = *options;
    pthread_mutex_init(&sessions->lock.mutex, NULL);
    return sessions;
}

static void
close_named(struct named_session *named)
{
    session_close(named->session);
    wakeup_close(named->wakeup);
    free(named->name);
    free(named);
}

static const struct spec_stream *
find_stream(const struct named_sessions *sessions, const char *name)
{
    const struct spec_file *file = sessions->options.file;
    const char *only = sessions->options.stream;

    if (name[0] == '\0')
        name = only != NULL ? only : file->stream_count == 1 ? file->streams[0].name : "";
    if (only != NULL && strcmp(only, name) != 0)
        return NULL;
    return spec_find_stream(file, name);
}

static tundish_status
open_named(struct named_sessions *sessions, const struct spec_stream *stream,
           struct named_session *named)
{
    struct session_options options = sessions->options.base;
    struct spec_errors errors = { 0 };
    tundish_status status = wakeup_open(&named->wakeup);

    must_hold(&sessions->lock);
    if (options.plan.worker_count > 1 && !stream->distribute.from_function &&
        stream->distribute.evaluation_shards == 0)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "stream '%s' is sharded over %u nodes: a trainer can have its own session "
                        "only with from_function: true",
                        stream->name, options.plan.worker_count);
    options.stream = stream;
    options.name = named->name;
    options.wakeup = named->wakeup;
    options.link = NULL;
    options.plan.worker = 0;
    options.plan.worker_count = 1;
    if (stream->distribute.evaluation_shards != 0)
        options.shards = shard_trackers_find(sessions->options.trackers, stream);
    else
        options.plan.root_seed =
            tnd_hash_farm_chain(options.plan.root_seed, named->name, strlen(named->name));
    options.abandoned = sessions->options.abandoned;
    options.user = sessions->options.user;
    if (getrandom(&options.server_generation, sizeof options.server_generation, 0) < 0)
        options.server_generation = (uint64_t)tnd_clock_ns();
    if (status == TUNDISH_OK)
        status = session_open(&options, &errors, &named->session);
    if (status != TUNDISH_OK && errors.count > 0) {
        char *text = spec_errors_text(&errors);

        status = tnd_fail(TUNDISH_E_PIPELINE, "%s", text);
        free(text);
    }
    spec_errors_close(&errors);
    return status;
}

/* The lock is held, here and below. Sessions that only wait for named_sessions_reap do not
 * count. */
static uint32_t
count_used(const struct named_sessions *sessions)
{
    uint32_t used = 0;

    must_hold(&sessions->lock);
    for (const struct named_session *named = sessions->list; named != NULL; named = named->next)
        used += !session_is_abandoned(named->session);
    return used;
}

/* The sessions that were there when a node was lost have ended, and those of this name on other
 * nodes. */
static tundish_status
check_job(const struct named_sessions *sessions, const struct spec_stream *stream)
{
    struct link *link = sessions->options.base.link;

    must_hold(&sessions->lock);
    return link != NULL && stream->distribute.evaluation_shards == 0 ? link_check(link)
                                                                     : TUNDISH_OK;
}

/* A trainer that closes its reader early seldom comes back for the rest, and a search for the best
 * of many runs opens one session after the other. Sessions that a dead trainer may need stay. */
static bool
abandon_left(struct named_sessions *sessions)
{
    struct session *first = NULL;
    int64_t first_ns = INT64_MAX;

    must_hold(&sessions->lock);
    for (const struct named_session *named = sessions->list; named != NULL; named = named->next) {
        int64_t since_ns = session_left_since_ns(named->session);

        if (since_ns >= 0 && since_ns < first_ns) {
            first = named->session;
            first_ns = since_ns;
        }
    }
    if (first != NULL)
        session_abandon(first);
    return first != NULL;
}

static tundish_status
check_room(struct named_sessions *sessions, bool *ret_abandoned)
{
    must_hold(&sessions->lock);
    if (sessions->stopping)
        return tnd_fail(TUNDISH_E_SERVER_GONE, "the server is stopping");
    if (count_used(sessions) >= NAMED_SESSIONS_MAX)
        *ret_abandoned = abandon_left(sessions);
    if (count_used(sessions) >= NAMED_SESSIONS_MAX)
        return tnd_fail(TUNDISH_E_MEMORY,
                        "trainers have requested %d sessions, the largest number allowed",
                        NAMED_SESSIONS_MAX);
    return TUNDISH_OK;
}

static tundish_status
make_session(struct named_sessions *sessions, const struct spec_stream *stream, const char *name,
             struct feed **ret_feed)
{
    struct named_session *named = tnd_zalloc(1, sizeof *named);
    tundish_status status;

    must_hold(&sessions->lock);
    must_in_debug(!sessions->stopping);
    named->name = tnd_strdup(name);
    status = open_named(sessions, stream, named);
    if (status == TUNDISH_OK)
        status = hub_add(sessions->options.hub, session_feed(named->session));
    if (status == TUNDISH_OK)
        status = session_start(named->session);
    if (status != TUNDISH_OK) {
        close_named(named);
        return status;
    }
    named->next = sessions->list;
    sessions->list = named;
    tnd_log(TND_LOG_NOTICE, "session", "session %s of stream %s", named->name, stream->name);
    *ret_feed = session_feed(named->session);
    return TUNDISH_OK;
}

static tundish_status
make_locked(struct named_sessions *sessions, const struct spec_stream *stream, const char *name,
            struct feed **ret_feed)
{
    bool has_abandoned = false;
    tundish_status status;

    tnd_lock_take(&sessions->lock);
    status = check_room(sessions, &has_abandoned);
    if (status == TUNDISH_OK)
        status = check_job(sessions, stream);
    if (status == TUNDISH_OK)
        status = make_session(sessions, stream, name, ret_feed);
    tnd_lock_release(&sessions->lock);
    if (has_abandoned && sessions->options.abandoned != NULL)
        sessions->options.abandoned(sessions->options.user);
    return status;
}

tundish_status
named_sessions_make(struct named_sessions *sessions, const struct hub_request *request,
                    struct feed **ret_feed)
{
    const struct spec_stream *stream = find_stream(sessions, request->stream);
    bool evaluates = stream != NULL && stream->distribute.evaluation_shards != 0;
    char name[256];

    if (evaluates) {
        snprintf(name, sizeof name, "%s/%s/%u/%llu", stream->name, request->group, request->replica,
                 (unsigned long long)++sessions->readers);
        return make_locked(sessions, stream, name, ret_feed);
    }
    if (stream == NULL || request->session[0] == '\0' ||
        strcmp(request->session, stream->name) == 0)
        return TUNDISH_OK;
    return make_locked(sessions, stream, request->session, ret_feed);
}

void
named_sessions_show(struct named_sessions *sessions)
{
    tnd_lock_take(&sessions->lock);
    for (struct named_session *named = sessions->list; named != NULL; named = named->next)
        session_show(named->session);
    tnd_lock_release(&sessions->lock);
}

void
named_sessions_link_hear(struct named_sessions *sessions, uint32_t from, const struct link_key *key,
                         struct byte_view bytes)
{
    tnd_lock_take(&sessions->lock);
    for (struct named_session *named = sessions->list; named != NULL; named = named->next)
        session_link_hear(named->session, from, key, bytes);
    tnd_lock_release(&sessions->lock);
}

static struct named_session *
take_abandoned(struct named_sessions *sessions)
{
    struct named_session *found = NULL;

    tnd_lock_take(&sessions->lock);
    for (struct named_session **link = &sessions->list; *link != NULL && found == NULL;) {
        if (session_is_abandoned((*link)->session)) {
            found = *link;
            *link = found->next;
        } else {
            link = &(*link)->next;
        }
    }
    tnd_lock_release(&sessions->lock);
    return found;
}

/* The session leaves the list first and is closed without the lock: hub_remove waits for the hub's
 * thread, which takes the lock to make a session. */
void
named_sessions_reap(struct named_sessions *sessions)
{
    struct named_session *named;

    while ((named = take_abandoned(sessions)) != NULL) {
        tnd_log(TND_LOG_NOTICE, "session", "session %s has no readers left and ends", named->name);
        hub_remove(sessions->options.hub, session_feed(named->session));
        close_named(named);
    }
}

void
named_sessions_stop(struct named_sessions *sessions)
{
    if (sessions == NULL)
        return;
    tnd_lock_take(&sessions->lock);
    sessions->stopping = true;
    tnd_lock_release(&sessions->lock);
    /* From here on the list stays as it is: the hub's thread adds nothing. */
    for (struct named_session *named = sessions->list; named != NULL; named = named->next) {
        session_stop(named->session);
        hub_remove(sessions->options.hub, session_feed(named->session));
    }
}

void
named_sessions_close(struct named_sessions *sessions)
{
    if (sessions == NULL)
        return;
    while (sessions->list != NULL) {
        struct named_session *named = sessions->list;

        sessions->list = named->next;
        close_named(named);
    }
    pthread_mutex_destroy(&sessions->lock.mutex);
    free(sessions);
}
