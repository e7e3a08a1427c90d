/* helper_reads.c - see helper_reads.h. */
#include "helpers/helper_reads.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "remote/object.h"

/* Requests to stores that are under way at a time. */
enum { WINDOW = 64 };

static void
add_note(void *context, struct byte_view path, uint64_t version)
{
    const struct helper_read read = { .version = version, .path_bytes = (uint32_t)path.size };

    portable_add(context, &read, sizeof read);
    portable_add(context, path.data, path.size);
}

struct file_notes
helper_reads_notes(struct portable_bytes *reads)
{
    return (struct file_notes){ reads, add_note };
}

/* E_CORRUPT: these are not notes. The caller frees the path. */
static tundish_status
take_read(struct byte_view *from, struct helper_read *ret_read, char **ret_path)
{
    if (!portable_take(from, ret_read, sizeof *ret_read) || ret_read->path_bytes == 0 ||
        ret_read->path_bytes > from->size || memchr(from->data, '\0', ret_read->path_bytes) != NULL)
        return tnd_fail(TUNDISH_E_CORRUPT, "it names files that cannot be");
    *ret_path = tnd_strndup((const char *)from->data, ret_read->path_bytes);
    from->data += ret_read->path_bytes;
    from->size -= ret_read->path_bytes;
    return TUNDISH_OK;
}

/* Objects whose stores are being asked for their version. */
struct looks {
    const struct helper_own *own;
    struct remote *remote;
    struct look {
        struct remote_url url;
        struct reply *reply;
        char *name;
    } list[WINDOW];
    uint32_t count;
};

static tundish_status
finish_look(const struct looks *looks, struct look *look)
{
    struct object_identity identity;
    const struct answer *answer;
    const uint8_t *bytes;
    size_t count;
    tundish_status status = request_wait(look->reply, &bytes, &count, &answer);

    if (status != TUNDISH_OK)
        return status;
    identity = request_identity(answer);
    helper_sums_note(looks->own->sums, look->name, object_version(&identity));
    return TUNDISH_OK;
}

static tundish_status
finish_looks(struct looks *looks)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < looks->count; i++) {
        struct look *look = &looks->list[i];

        if (status == TUNDISH_OK)
            status = finish_look(looks, look);
        request_close(look->reply);
        remote_url_close(&look->url);
        free(look->name);
    }
    looks->count = 0;
    return status;
}

static tundish_status
begin_look(struct looks *looks, const char *name)
{
    struct look *look = &looks->list[looks->count];
    tundish_status status = remote_get(&looks->own->file->remote, &looks->remote);

    if (status == TUNDISH_OK)
        status = remote_url_open(name, strlen(name), &look->url);
    if (status != TUNDISH_OK)
        return status;
    look->name = tnd_strdup(name);
    look->reply = NULL;
    looks->count++;
    return request_ask_look(looks->remote, &look->url, &look->reply);
}

/* Objects of which this side knows no version, or another: it may be out of date. */
static tundish_status
look_at_objects(const struct helper_own *own, struct byte_view reads)
{
    struct looks *looks = tnd_zalloc(1, sizeof *looks);
    tundish_status status = TUNDISH_OK, ended;

    looks->own = own;
    while (reads.size > 0 && status == TUNDISH_OK) {
        struct helper_read read;
        char *path = NULL;

        status = take_read(&reads, &read, &path);
        if (status != TUNDISH_OK)
            break;
        if (spec_is_url(path) && read.version != 0 &&
            helper_sums_known(own->sums, path) != read.version)
            status = begin_look(looks, path);
        free(path);
        if (looks->count == WINDOW && status == TUNDISH_OK)
            status = finish_looks(looks);
    }
    ended = finish_looks(looks);
    free(looks);
    return status != TUNDISH_OK ? status : ended;
}

static tundish_status
compare_one(const struct helper_own *own, const struct helper_read *read, const char *path,
            bool *ret_differs)
{
    uint64_t version = 0;

    if (spec_is_url(path)) {
        version = helper_sums_known(own->sums, path);
        if (read->version == 0 || version == 0)
            return tnd_fail(TUNDISH_E_PLACE,
                            "%s has neither an ETag nor a date, by which a helper's could be "
                            "compared with it",
                            path);
    } else {
        char *full = spec_path(own->file, path);

        version = helper_sums_of_path(own->sums, full);
        free(full);
        if (version == 0)
            return tnd_fail(TUNDISH_E_DATA, "%s cannot be read here, as it was there", path);
    }
    if (version == read->version)
        return TUNDISH_OK;
    *ret_differs = true;
    return tnd_fail(TUNDISH_E_CORRUPT, "%s has other bytes there than at this server", path);
}

tundish_status
helper_reads_compare(const struct helper_own *own, struct byte_view reads, bool *ret_differs)
{
    tundish_status status = look_at_objects(own, reads);

    while (reads.size > 0 && status == TUNDISH_OK) {
        struct helper_read read;
        char *path = NULL;

        status = take_read(&reads, &read, &path);
        if (status != TUNDISH_OK)
            break;
        status = compare_one(own, &read, path, ret_differs);
        free(path);
    }
    return status;
}
