/* listed.c - see listed.h. */
#include "source/files/listed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

struct found {
    struct found *next;
    char *pattern;
    struct matching_files list;
};

struct listed {
    pthread_mutex_t lock;
    struct found *found; /* a stream has few patterns */
    atomic_bool has_ended;
};

struct listed *
listed_open(void)
{
    struct listed *listed = tnd_zalloc(1, sizeof *listed);

    pthread_mutex_init(&listed->lock, NULL);
    return listed;
}

static void
forget_all(struct listed *listed)
{
    while (listed->found != NULL) {
        struct found *found = listed->found;

        listed->found = found->next;
        matching_files_close(&found->list);
        free(found->pattern);
        free(found);
    }
}

void
listed_close(struct listed *listed)
{
    if (listed == NULL)
        return;
    forget_all(listed);
    pthread_mutex_destroy(&listed->lock);
    free(listed);
}

static struct matching_files
copy_list(const struct matching_files *list)
{
    struct matching_files copy = { .paths = tnd_alloc((list->count + 1) * sizeof *copy.paths) };
    size_t bytes = 0;
    char *text;

    for (size_t i = 0; i < list->count; i++)
        bytes += strlen(list->paths[i]) + 1;
    text = copy.texts = tnd_alloc(bytes + 1);
    for (; copy.count < list->count; copy.count++) {
        copy.paths[copy.count] = text;
        text = stpcpy(text, list->paths[copy.count]) + 1;
    }
    return copy;
}

static const struct found *
recall(const struct listed *listed, const char *pattern)
{
    for (const struct found *found = listed->found; found != NULL; found = found->next)
        if (strcmp(found->pattern, pattern) == 0)
            return found;
    return NULL;
}

static void
remember(struct listed *listed, const char *pattern, const struct matching_files *list)
{
    struct found *found = tnd_zalloc(1, sizeof *found);

    *found = (struct found){ listed->found, tnd_strdup(pattern), copy_list(list) };
    listed->found = found;
}

/* The lock is held while the folder is looked at: two that ask at a time must see the same. */
tundish_status
listed_find(struct listed *listed, const char *root, const char *pattern,
            struct matching_files *ret_list)
{
    tundish_status status = TUNDISH_OK;
    const struct found *found;

    pthread_mutex_lock(&listed->lock);
    found = recall(listed, pattern);
    if (found != NULL) {
        *ret_list = copy_list(&found->list);
    } else {
        status = matching_files_find(&(struct path_base){ .root = root }, &pattern, 1, ret_list);
        if (status == TUNDISH_OK && !listed->has_ended)
            remember(listed, pattern, ret_list);
    }
    pthread_mutex_unlock(&listed->lock);
    return status;
}

void
listed_end(struct listed *listed)
{
    /* Each step ends what the first one has ended. */
    if (listed == NULL || atomic_load_explicit(&listed->has_ended, memory_order_relaxed))
        return;
    pthread_mutex_lock(&listed->lock);
    listed->has_ended = true;
    forget_all(listed);
    pthread_mutex_unlock(&listed->lock);
}
