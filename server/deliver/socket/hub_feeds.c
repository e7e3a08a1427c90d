/* hub_feeds.c - the feeds that the hub serves, found by name. */
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"
#include "core/status.h"
#include "deliver/feed_hub.h"
#include "deliver/socket/hub_private.h"

/* Find by session; or by stream where no session was named. */
struct feed *
hub_find(struct hub *hub, const char *stream, const char *session)
{
    struct feed *found = NULL;
    uint32_t streams = 0;

    pthread_mutex_lock(&hub->lock);
    for (uint32_t i = 0; i < hub->feed_count; i++) {
        struct feed *feed = hub->feeds[i];
        bool of_stream = stream[0] == '\0' || strcmp(feed_stream(feed), stream) == 0;
        const char *wanted = session[0] != '\0' ? session : feed_stream(feed);

        if (of_stream && strcmp(feed_session(feed), wanted) == 0 && feed != hub->removing) {
            found = feed;
            streams++;
        }
    }
    pthread_mutex_unlock(&hub->lock);
    /* Without names several streams may match. Then the trainer has to name one. */
    return streams == 1 ? found : NULL;
}

tundish_status
hub_make(struct hub *hub, const struct hub_request *request, struct feed **ret_feed)
{
    *ret_feed = NULL;
    if (atomic_load(&hub->is_shut))
        return tnd_fail(TUNDISH_E_SERVER_GONE,
                        "the server is stopping: open again after its restart");
    return hub->config.make == NULL ? TUNDISH_OK
                                    : hub->config.make(hub->config.user, request, ret_feed);
}

tundish_status
hub_control(struct hub *hub, enum tnd_control what, char *text, size_t text_bytes)
{
    if (hub->config.control == NULL) {
        snprintf(text, text_bytes, "this server accepts no control requests");
        return TUNDISH_E_ARGUMENT;
    }
    return hub->config.control(hub->config.user, what, text, text_bytes);
}

void
hub_describe(struct hub *hub, char *text, size_t text_bytes)
{
    size_t used = 0;

    text[0] = '\0';
    pthread_mutex_lock(&hub->lock);
    for (uint32_t i = 0; i < hub->feed_count && used + 2 < text_bytes; i++) {
        int wrote = snprintf(text + used, text_bytes - used, "%s%s", used > 0 ? ", " : "",
                             feed_session(hub->feeds[i]));

        used += wrote > 0 ? (size_t)wrote : 0;
    }
    pthread_mutex_unlock(&hub->lock);
}

/* The hub's thread, or the caller if that thread does not run. Detaching calls back into the
 * session, so the lock is not held meanwhile. `removing` keeps new trainers away from the feed. */
void
hub_finish_removal(struct hub *hub)
{
    struct feed *removing;

    pthread_mutex_lock(&hub->lock);
    removing = hub->removing;
    pthread_mutex_unlock(&hub->lock);
    if (removing == NULL)
        return;
    feed_note_ending(removing); /* before any trainer is detached, as in hub_close */
    for (struct hub_connection *entry = hub->connections; entry != NULL; entry = entry->next)
        if (entry->protocol.feed == removing)
            hub_drop(hub, entry, false);
    hub_free_dropped(hub);
    pthread_mutex_lock(&hub->lock);
    for (uint32_t i = 0; i < hub->feed_count; i++)
        if (hub->feeds[i] == removing)
            hub->feeds[i--] = hub->feeds[--hub->feed_count];
    hub->removing = NULL;
    pthread_cond_broadcast(&hub->removed);
    pthread_mutex_unlock(&hub->lock);
}

tundish_status
hub_add(struct hub *hub, struct feed *feed)
{
    tundish_status status = TUNDISH_OK;

    pthread_mutex_lock(&hub->lock);
    for (uint32_t i = 0; i < hub->feed_count; i++)
        if (strcmp(feed_session(hub->feeds[i]), feed_session(feed)) == 0 &&
            strcmp(feed_stream(hub->feeds[i]), feed_stream(feed)) == 0)
            status = tnd_fail(TUNDISH_E_ARGUMENT, "session %s of stream %s is already being served",
                              feed_session(feed), feed_stream(feed));
    if (status == TUNDISH_OK) {
        hub->feeds = tnd_realloc(hub->feeds, hub->feed_count + 1, sizeof(struct feed *));
        hub->feeds[hub->feed_count++] = feed;
    }
    pthread_mutex_unlock(&hub->lock);
    hub_wake(hub);
    return status;
}

void
hub_shut(struct hub *hub)
{
    atomic_store(&hub->is_shut, true);
}

/* Never from the hub's own thread, which would wait for itself. */
void
hub_remove(struct hub *hub, struct feed *feed)
{
    must(!hub->is_running || !pthread_equal(pthread_self(), hub->thread));
    pthread_mutex_lock(&hub->lock);
    while (hub->removing != NULL)
        pthread_cond_wait(&hub->removed, &hub->lock);
    hub->removing = feed;
    pthread_mutex_unlock(&hub->lock);
    if (!hub->is_running) {
        hub_finish_removal(hub);
        return;
    }
    hub_wake(hub);
    pthread_mutex_lock(&hub->lock);
    while (hub->removing == feed)
        pthread_cond_wait(&hub->removed, &hub->lock);
    pthread_mutex_unlock(&hub->lock);
}
