/* extras.c - sessions by name, as trainers ask for them. */
#include "session/extras.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/clock.h"
#include "core/hash_farm.h"
#include "core/log.h"
#include "core/memory.h"
#include "deliver/wakeup.h"

enum { EXTRAS_MAX = 64 };

struct extra {
    struct extra *next;
    char *name;
    struct session *session;
    struct wakeup *wakeup;
};

struct extras {
    struct extras_options options;
    uint64_t readers;     /* of evaluations, ever */
    pthread_mutex_t lock; /* of the rest */
    struct extra *list;
    bool stopping;
};

struct extras *
extras_open(const struct extras_options *options)
{
    struct extras *extras = tnd_zalloc(1, sizeof *extras);

    extras->options = *options;
    pthread_mutex_init(&extras->lock, NULL);
    return extras;
}

static void
close_extra(struct extra *extra)
{
    session_close(extra->session);
    wakeup_close(extra->wakeup);
    free(extra->name);
    free(extra);
}

static const struct spec_stream *
find_stream(const struct extras *extras, const char *name)
{
    const struct spec_file *file = extras->options.file;
    const char *only = extras->options.stream;

    if (name[0] == '\0')
        name = only != NULL ? only : file->stream_count == 1 ? file->streams[0].name : "";
    if (only != NULL && strcmp(only, name) != 0)
        return NULL;
    return spec_find_stream(file, name);
}

static tundish_status
open_extra(struct extras *extras, const struct spec_stream *stream, struct extra *extra)
{
    struct session_options options = extras->options.base;
    struct spec_errors errors = { 0 };
    tundish_status status = wakeup_open(&extra->wakeup);

    if (options.plan.worker_count > 1 && !stream->distribute.from_function &&
        stream->distribute.evaluation_shards == 0)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "stream '%s' is dealt over %u nodes: only with from_function: true can a "
                        "trainer have a session of its own",
                        stream->name, options.plan.worker_count);
    options.stream = stream;
    options.name = extra->name;
    options.wakeup = extra->wakeup;
    options.link = NULL;
    options.plan.worker = 0;
    options.plan.worker_count = 1;
    if (stream->distribute.evaluation_shards != 0)
        options.shards = shard_trackers_find(extras->options.trackers, stream);
    else
        options.plan.root_seed =
            tnd_hash_farm_chain(options.plan.root_seed, extra->name, strlen(extra->name));
    options.abandoned = extras->options.abandoned;
    options.user = extras->options.user;
    if (getrandom(&options.server_generation, sizeof options.server_generation, 0) < 0)
        options.server_generation = (uint64_t)tnd_clock_ns();
    if (status == TUNDISH_OK)
        status = session_open(&options, &errors, &extra->session);
    if (status != TUNDISH_OK && errors.count > 0) {
        char *text = spec_errors_text(&errors);

        status = tnd_fail(TUNDISH_E_PIPELINE, "%s", text);
        free(text);
    }
    spec_errors_close(&errors);
    return status;
}

/* The lock is held, here and below. Those that only wait for extras_reap are as good as gone. */
static uint32_t
count_used(const struct extras *extras)
{
    uint32_t used = 0;

    for (const struct extra *extra = extras->list; extra != NULL; extra = extra->next)
        used += !session_is_abandoned(extra->session);
    return used;
}

static tundish_status
check_room(const struct extras *extras)
{
    if (extras->stopping)
        return tnd_fail(TUNDISH_E_SERVER_GONE, "the server is stopping");
    if (count_used(extras) >= EXTRAS_MAX)
        return tnd_fail(TUNDISH_E_MEMORY,
                        "there are %d sessions that trainers asked for, and there may be no more",
                        EXTRAS_MAX);
    return TUNDISH_OK;
}

static tundish_status
make(struct extras *extras, const struct spec_stream *stream, const char *name,
     struct feed **ret_feed)
{
    struct extra *extra = tnd_zalloc(1, sizeof *extra);
    tundish_status status;

    extra->name = tnd_strdup(name);
    status = open_extra(extras, stream, extra);
    if (status == TUNDISH_OK)
        status = hub_add(extras->options.hub, session_feed(extra->session));
    if (status == TUNDISH_OK)
        status = session_start(extra->session);
    if (status != TUNDISH_OK) {
        close_extra(extra);
        return status;
    }
    extra->next = extras->list;
    extras->list = extra;
    tnd_log(TND_LOG_NOTICE, "session", "session %s of stream %s", extra->name, stream->name);
    *ret_feed = session_feed(extra->session);
    return TUNDISH_OK;
}

static tundish_status
make_locked(struct extras *extras, const struct spec_stream *stream, const char *name,
            struct feed **ret_feed)
{
    tundish_status status;

    pthread_mutex_lock(&extras->lock);
    status = check_room(extras);
    if (status == TUNDISH_OK)
        status = make(extras, stream, name, ret_feed);
    pthread_mutex_unlock(&extras->lock);
    return status;
}

tundish_status
extras_make(struct extras *extras, const struct hub_request *request, struct feed **ret_feed)
{
    const struct spec_stream *stream = find_stream(extras, request->stream);
    bool evaluates = stream != NULL && stream->distribute.evaluation_shards != 0;
    char name[256];

    if (evaluates) {
        snprintf(name, sizeof name, "%s/%s/%u/%llu", stream->name, request->group, request->replica,
                 (unsigned long long)++extras->readers);
        return make_locked(extras, stream, name, ret_feed);
    }
    if (stream == NULL || request->session[0] == '\0' ||
        strcmp(request->session, stream->name) == 0)
        return TUNDISH_OK;
    return make_locked(extras, stream, request->session, ret_feed);
}

void
extras_show(struct extras *extras)
{
    pthread_mutex_lock(&extras->lock);
    for (struct extra *extra = extras->list; extra != NULL; extra = extra->next)
        session_show(extra->session);
    pthread_mutex_unlock(&extras->lock);
}

void
extras_link_hear(struct extras *extras, uint32_t from, const struct link_key *key,
                 struct byte_view bytes)
{
    pthread_mutex_lock(&extras->lock);
    for (struct extra *extra = extras->list; extra != NULL; extra = extra->next)
        session_link_hear(extra->session, from, key, bytes);
    pthread_mutex_unlock(&extras->lock);
}

static struct extra *
take_abandoned(struct extras *extras)
{
    struct extra *found = NULL;

    pthread_mutex_lock(&extras->lock);
    for (struct extra **link = &extras->list; *link != NULL && found == NULL;) {
        if (session_is_abandoned((*link)->session)) {
            found = *link;
            *link = found->next;
        } else {
            link = &(*link)->next;
        }
    }
    pthread_mutex_unlock(&extras->lock);
    return found;
}

void
extras_reap(struct extras *extras)
{
    struct extra *extra;

    while ((extra = take_abandoned(extras)) != NULL) {
        tnd_log(TND_LOG_NOTICE, "session", "session %s has no readers left and ends", extra->name);
        hub_remove(extras->options.hub, session_feed(extra->session));
        close_extra(extra);
    }
}

void
extras_stop(struct extras *extras)
{
    if (extras == NULL)
        return;
    pthread_mutex_lock(&extras->lock);
    extras->stopping = true;
    pthread_mutex_unlock(&extras->lock);
    /* From here on the list stays as it is: the hub's thread adds nothing. */
    for (struct extra *extra = extras->list; extra != NULL; extra = extra->next) {
        session_stop(extra->session);
        hub_remove(extras->options.hub, session_feed(extra->session));
    }
}

void
extras_close(struct extras *extras)
{
    if (extras == NULL)
        return;
    while (extras->list != NULL) {
        struct extra *extra = extras->list;

        extras->list = extra->next;
        close_extra(extra);
    }
    pthread_mutex_destroy(&extras->lock);
    free(extras);
}
