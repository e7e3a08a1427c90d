/* seen.c - a tree of names and patterns. */
#include "remote/seen.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "remote/object.h"
#include "remote/request.h"

/* Objects of all lists together: they stay in memory as long as the server. */
enum { OBJECTS_MAX = 100000 };

struct sighting {
    const struct remote *remote;
    bool is_list;          /* of a pattern; else of a name */
    struct remote_url url; /* its name is what was asked for */
    struct reply *reply;   /* under way */
    bool is_known;
    struct remote_matches matches; /* of a name, one */
};

struct remote_seen {
    pthread_mutex_t lock;
    void *tree;
    size_t object_count;
};

struct remote_seen *
remote_seen_open(void)
{
    struct remote_seen *seen = tnd_zalloc(1, sizeof *seen);

    pthread_mutex_init(&seen->lock, NULL);
    return seen;
}

static void
close_sighting(void *node)
{
    struct sighting *sighting = node;

    request_close(sighting->reply);
    remote_matches_close(&sighting->matches);
    remote_url_close(&sighting->url);
    free(sighting);
}

void
remote_seen_close(struct remote_seen *seen)
{
    if (seen == NULL)
        return;
    tdestroy(seen->tree, close_sighting);
    pthread_mutex_destroy(&seen->lock);
    free(seen);
}

static int
compare_sightings(const void *a, const void *b)
{
    const struct sighting *x = a, *y = b;

    if (x->remote != y->remote)
        return x->remote < y->remote ? -1 : 1;
    if (x->is_list != y->is_list)
        return x->is_list ? 1 : -1;
    return strcmp(x->url.name, y->url.name);
}

/* Found, or entered. */
static tundish_status
have_sighting(struct remote_seen *seen, const struct sighting *key, struct sighting **ret_sighting)
{
    struct sighting **found = tfind(key, &seen->tree, compare_sightings);
    struct sighting *made;
    tundish_status status;

    if (found != NULL) {
        *ret_sighting = *found;
        return TUNDISH_OK;
    }
    made = tnd_zalloc(1, sizeof *made);
    made->remote = key->remote;
    made->is_list = key->is_list;
    status = remote_url_open(key->url.name, strlen(key->url.name), &made->url);
    if (status != TUNDISH_OK) {
        free(made);
        return status;
    }
    tnd_must_have(tsearch(made, &seen->tree, compare_sightings) != NULL);
    *ret_sighting = made;
    return TUNDISH_OK;
}

static struct remote_match
copy_match(const struct remote_match *match)
{
    return (struct remote_match){ tnd_strdup(match->name), match->bytes, match->hash };
}

static struct remote_matches
copy_matches(const struct remote_matches *matches)
{
    struct remote_matches copy = { tnd_zalloc(matches->count + 1, sizeof *copy.list),
                                   matches->count };

    for (size_t i = 0; i < copy.count; i++)
        copy.list[i] = copy_match(&matches->list[i]);
    return copy;
}

/* With the lock held: of two who ask at the same time, one asks the store. */
static tundish_status
list_with_lock(struct remote_seen *seen, struct remote *remote, const char *pattern,
               struct remote_matches *ret_matches)
{
    const struct sighting key = { .remote = remote,
                                  .is_list = true,
                                  .url.name = (char *)(uintptr_t)pattern };
    struct sighting *sighting = NULL;
    tundish_status status = have_sighting(seen, &key, &sighting);

    if (status == TUNDISH_OK && sighting->is_known) {
        *ret_matches = copy_matches(&sighting->matches);
        return TUNDISH_OK;
    }
    if (status == TUNDISH_OK)
        status = remote_list(remote, pattern, ret_matches);
    if (status == TUNDISH_OK && seen->object_count + ret_matches->count <= OBJECTS_MAX) {
        sighting->matches = copy_matches(ret_matches);
        sighting->is_known = true;
        seen->object_count += ret_matches->count;
    }
    return status;
}

tundish_status
remote_seen_list(struct remote_seen *seen, struct remote *remote, const char *pattern,
                 struct remote_matches *ret_matches)
{
    tundish_status status;

    if (seen == NULL)
        return remote_list(remote, pattern, ret_matches);
    pthread_mutex_lock(&seen->lock);
    status = list_with_lock(seen, remote, pattern, ret_matches);
    pthread_mutex_unlock(&seen->lock);
    return status;
}

static tundish_status
take_reply(struct sighting *sighting)
{
    const struct answer *answer;
    const uint8_t *bytes;
    size_t count;
    tundish_status status = request_wait(sighting->reply, &bytes, &count, &answer);

    if (status == TUNDISH_OK) {
        struct object_identity identity = request_identity(answer);

        sighting->matches =
            (struct remote_matches){ tnd_zalloc(1, sizeof *sighting->matches.list), 1 };
        sighting->matches.list[0] =
            (struct remote_match){ tnd_strdup(sighting->url.name), identity.bytes,
                                   object_identity_hash(&identity) };
        sighting->is_known = true;
    }
    request_close(sighting->reply);
    sighting->reply = NULL;
    return status;
}

static tundish_status
look_without(struct remote *remote, const char *name, struct remote_match *ret_match)
{
    struct object_identity identity;
    tundish_status status = remote_identify(remote, name, &identity);

    if (status == TUNDISH_OK)
        *ret_match = (struct remote_match){ tnd_strdup(name), identity.bytes,
                                            object_identity_hash(&identity) };
    return status;
}

/* With the lock held. */
static tundish_status
ask_for(struct remote_seen *seen, struct remote *remote, const char *name,
        struct sighting **ret_sighting)
{
    const struct sighting key = { .remote = remote, .url.name = (char *)(uintptr_t)name };
    tundish_status status = have_sighting(seen, &key, ret_sighting);

    if (status == TUNDISH_OK && !(*ret_sighting)->is_known && (*ret_sighting)->reply == NULL)
        status = request_ask_look(remote, &(*ret_sighting)->url, &(*ret_sighting)->reply);
    return status;
}

tundish_status
remote_seen_look(struct remote_seen *seen, struct remote *remote, const char *name,
                 struct remote_match *ret_match)
{
    struct sighting *sighting = NULL;
    tundish_status status;

    if (seen == NULL)
        return look_without(remote, name, ret_match);
    pthread_mutex_lock(&seen->lock);
    status = ask_for(seen, remote, name, &sighting);
    if (status == TUNDISH_OK && !sighting->is_known)
        status = take_reply(sighting);
    if (status == TUNDISH_OK)
        *ret_match = copy_match(&sighting->matches.list[0]);
    pthread_mutex_unlock(&seen->lock);
    return status;
}

void
remote_seen_expect(struct remote_seen *seen, struct remote *remote, const char *name)
{
    struct sighting *sighting = NULL;

    pthread_mutex_lock(&seen->lock);
    /* A failure is reported to the caller that looks later. */
    (void)ask_for(seen, remote, name, &sighting);
    pthread_mutex_unlock(&seen->lock);
}
