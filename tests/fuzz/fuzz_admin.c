/* fuzz_admin.c - headers that say anything at all: the guard refuses or answers, and knows no path
 * but its own. The input is texts separated by NULs: path, method, then the headers it looks at.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/must.h"
#include "guard.h"
#include "routes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

static const struct guard guard = { .hosts = { "127.0.0.1:1", "localhost:1" },
                                    .host_count = 2,
                                    .token = "0123456789abcdef" };

/* The next text, or NULL when there is no more. */
static const char *
next(char **rest)
{
    char *text = *rest;

    if (text == NULL || *text == '\0')
        return NULL;
    *rest = text + strlen(text) + 1;
    return text;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    char *texts = calloc(1, data_bytes + 2), *rest = texts; /* ends with an empty text */
    struct guard_request request = { 0 };
    const struct route *route;
    const char *path, *sentence = NULL;
    unsigned status;
    int rank;

    must(texts != NULL);
    if (data_bytes > 0)
        memcpy(texts, data, data_bytes);
    path = next(&rest);
    route = path != NULL ? route_find(path, &rank) : NULL;
    request.method = next(&rest);
    request.host = next(&rest);
    request.origin = next(&rest);
    request.fetch_site = next(&rest);
    request.fetch_mode = next(&rest);
    request.authorization = next(&rest);
    request.content_length = next(&rest);
    request.transfer_encoding = next(&rest);
    request.is_public = route != NULL && (route->kind == ROUTE_PAGE || route->kind == ROUTE_NOW);
    request.changes_something = route == NULL || route->kind == ROUTE_CONTROL;
    status = guard_check(&guard, &request, &sentence);
    must(status == 0 || (status >= 400 && sentence != NULL));
    /* Nothing is changed without the whole token and a host of ours. */
    if (status == 0 && request.changes_something) {
        must(request.authorization != NULL && strlen(request.authorization) == 7 + 16 &&
             strcmp(request.authorization + 7, guard.token) == 0);
        must(strcasecmp(request.host, "127.0.0.1:1") == 0 ||
             strcasecmp(request.host, "localhost:1") == 0);
    }
    free(texts);
    return 0;
}
