/* begun.c - see begun.h. */
#include "source/files/begun.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "source/files/files_private.h"

struct begun {
    struct begun *next;
    char *key;
    void *state;
    void (*close)(void *state);
};

void
begun_leave(struct source_files *files, const char *key, void *state, void (*close)(void *state))
{
    struct begun **last = files_begun(files), *begun = tnd_zalloc(1, sizeof *begun);

    while (*last != NULL)
        last = &(*last)->next;
    *begun = (struct begun){ NULL, tnd_strdup(key), state, close };
    *last = begun;
}

/* Take out the first one. */
static void *
take(struct begun **link)
{
    struct begun *begun = *link;
    void *state = begun->state;

    *link = begun->next;
    free(begun->key);
    free(begun);
    return state;
}

void *
begun_take(struct source_files *files, const char *key)
{
    struct begun **link = files_begun(files);

    while (*link != NULL && strcmp((*link)->key, key) != 0)
        link = &(*link)->next;
    return *link != NULL ? take(link) : NULL;
}

void
source_files_end_begun(struct source_files *files)
{
    struct begun **first = files_begun(files);

    while (*first != NULL) {
        void (*close)(void *state) = (*first)->close;

        close(take(first));
    }
}
