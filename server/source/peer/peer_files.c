/* peer_files.c - one request for each file, all of a batch at once. */
#include "source/peer/peer_files.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "source/peer/peer_private.h"

struct asked_files {
    struct peers *peers;
    const struct byte_view *paths;
    size_t count;
    struct peer_request **requests; /* by path; NULL: none was sent */
};

/* NULL: no node's list has it. */
static const struct catalogue_file *
find_file(const struct peers *peers, struct byte_view path)
{
    char *name = tnd_strndup((const char *)path.data, path.size);
    const struct catalogue_file *known =
        strlen(name) == path.size ? catalogue_find(peers->options.catalogue, name) : NULL;

    free(name);
    return known;
}

static struct asked_files *
ask_files(void *context, const struct byte_view *paths, size_t count)
{
    struct asked_files *asked = tnd_zalloc(1, sizeof *asked);

    asked->peers = context;
    asked->paths = paths;
    asked->count = count;
    asked->requests = tnd_zalloc(count + 1, sizeof(struct peer_request *));
    for (size_t i = 0; i < count; i++) {
        const struct catalogue_file *known = find_file(asked->peers, paths[i]);

        if (known != NULL && !known->is_here)
            asked->requests[i] =
                peer_request_send(asked->peers, known->owner, PEER_ASK_FILE, paths[i]);
    }
    return asked;
}

/* A file that no list has is bad on all nodes, also where it happens to be: others could not read
 * it, and two nodes could have two files of that name. */
static tundish_status
check_listed(const struct peers *peers, struct byte_view path)
{
    if (find_file(peers, path) != NULL)
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_DATA,
                    "%.*s: with distribute.files: local only files that list_files or directory "
                    "names are read, because each is read where it is",
                    (int)path.size, (const char *)path.data);
}

static tundish_status
take_file(struct asked_files *asked, size_t index, struct scratch *scratch,
          struct byte_view *ret_bytes)
{
    struct peer_request *request = asked->requests[index];
    uint8_t *bytes;
    tundish_status status;

    *ret_bytes = (struct byte_view){ 0 };
    if (request == NULL)
        return check_listed(asked->peers, asked->paths[index]);
    status = peer_request_wait(request);
    if (status != TUNDISH_OK)
        return status;
    bytes = scratch_alloc(scratch, request->raw_bytes);
    if (request->raw_bytes > 0)
        memcpy(bytes, request->raw, request->raw_bytes);
    *ret_bytes = (struct byte_view){ bytes, request->raw_bytes };
    /* Its memory is another batch's now. */
    peer_request_close(request);
    asked->requests[index] = NULL;
    return TUNDISH_OK;
}

static void
close_files(struct asked_files *asked)
{
    if (asked == NULL)
        return;
    for (size_t i = 0; i < asked->count; i++)
        peer_request_close(asked->requests[i]);
    free(asked->requests);
    free(asked);
}

struct other_files
peer_other_files(struct peers *peers)
{
    return (struct other_files){
        .context = peers, .ask = ask_files, .take = take_file, .close = close_files
    };
}
