/* remote_files.c - a window of requests that goes along the list of URLs. */
#include "content/records/remote_files.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/must.h"
#include "remote/object.h"
#include "remote/request.h"
#include "remote/small.h"
#include "remote/whole.h"

/* Enough to fill the way to a server far away, and little enough to hold. */
enum { WINDOW = 64 };

struct asked {
    struct remote_url url;
    struct disk_small here; /* if it was in the cache on disk; its bytes are in scratch */
    struct reply *reply;    /* else */
    tundish_status status;  /* of asking */
    char *text;
};

struct remote_files {
    struct remote *remote;
    struct reply_range range; /* the first part of each */
    const struct byte_view *urls;
    size_t count, next, asked_count;
    uint64_t version;           /* of the last that came */
    struct asked asked[WINDOW]; /* by number, modulo the window */
};

bool
remote_files_is_url(struct byte_view path)
{
    char begin[9] = "";

    memcpy(begin, path.data, path.size < 8 ? path.size : 8);
    return spec_is_url(begin);
}

static void
asked_close(struct asked *asked)
{
    request_close(asked->reply);
    remote_url_close(&asked->url);
    free(asked->text);
    *asked = (struct asked){ 0 };
}

static void *
take_scratch(void *scratch, size_t bytes)
{
    return scratch_alloc(scratch, bytes);
}

static void
ask_next(struct remote_files *files, struct scratch *scratch)
{
    const struct disk_room room = { take_scratch, scratch };
    struct byte_view url = files->urls[files->asked_count];
    struct asked *asked = &files->asked[files->asked_count++ % WINDOW];

    asked->status = remote_url_open((const char *)url.data, url.size, &asked->url);
    if (asked->status == TUNDISH_OK && !small_read(files->remote, &asked->url, &room, &asked->here))
        asked->status = request_ask(files->remote, &asked->url, &files->range, &asked->reply);
    if (asked->status != TUNDISH_OK)
        asked->text = tnd_strdup(tnd_error_text());
}

tundish_status
remote_files_open(const struct spec_remote *options, const struct byte_view *urls, size_t count,
                  struct remote_files **ret_files)
{
    struct remote_files *files;
    struct remote *remote = NULL;
    tundish_status status = remote_get(options, &remote);

    if (status != TUNDISH_OK)
        return status;
    files = tnd_zalloc(1, sizeof *files);
    files->remote = remote;
    files->range = (struct reply_range){ .bytes = remote_part_bytes(remote), .is_urgent = true };
    files->urls = urls;
    files->count = count;
    *ret_files = files;
    return TUNDISH_OK;
}

void
remote_files_close(struct remote_files *files)
{
    for (size_t i = 0; files != NULL && i < WINDOW; i++)
        asked_close(&files->asked[i]);
    free(files);
}

/* The bytes after the first part, all in one request: such files are few. */
static tundish_status
read_rest(struct remote_files *files, const struct asked *asked,
          const struct object_identity *identity, uint8_t *to, size_t from)
{
    struct reply *reply = NULL;
    const struct answer *answer;
    const uint8_t *bytes;
    size_t count = 0;
    const struct reply_range range = { identity, from, identity->bytes - from, true };
    tundish_status status = request_ask(files->remote, &asked->url, &range, &reply);

    if (status == TUNDISH_OK)
        status = request_wait(reply, &bytes, &count, &answer);
    if (status == TUNDISH_OK)
        memcpy(to + from, bytes, count);
    request_close(reply);
    return status;
}

static tundish_status
check_size(const struct asked *asked, const struct object_identity *identity)
{
    if (identity->bytes <= INT32_MAX)
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_DATA, "%s: it has 2 GiB or more, and would not fit a batch",
                    asked->url.name);
}

/* All of it came where a part was asked for, and it is larger: it goes by way of the disk. */
static tundish_status
read_from_disk(struct remote_files *files, const struct asked *asked,
               struct object_identity *identity, struct scratch *scratch,
               struct byte_view *ret_bytes)
{
    int descriptor = -1;
    uint8_t *to;
    tundish_status status = whole_have_part(files->remote, &asked->url, 0, identity, &descriptor);

    if (descriptor >= 0)
        close(descriptor);
    if (status == TUNDISH_OK)
        status = check_size(asked, identity);
    if (status != TUNDISH_OK)
        return status;
    files->version = object_version(identity);
    to = scratch_alloc(scratch, (size_t)identity->bytes);
    *ret_bytes = (struct byte_view){ to, identity->bytes };
    return whole_read(files->remote, &asked->url, (struct whole_span){ 0, (size_t)identity->bytes },
                      identity, to);
}

static tundish_status
read_reply(struct remote_files *files, const struct asked *asked, struct scratch *scratch,
           struct byte_view *ret_bytes)
{
    const struct answer *answer;
    const uint8_t *bytes;
    struct object_identity identity;
    size_t count;
    uint8_t *to;
    tundish_status status;

    status = request_wait(asked->reply, &bytes, &count, &answer);
    if (status == TUNDISH_E_DATA && files->remote->disk != NULL &&
        request_is_too_large(asked->reply, &identity))
        return read_from_disk(files, asked, &identity, scratch, ret_bytes);
    if (status != TUNDISH_OK)
        return status;
    identity = request_identity(answer);
    files->version = object_version(&identity);
    status = check_size(asked, &identity);
    if (status != TUNDISH_OK)
        return status;
    to = scratch_alloc(scratch, (size_t)identity.bytes);
    if (count > 0)
        memcpy(to, bytes, count);
    if (identity.bytes > count)
        status = read_rest(files, asked, &identity, to, count);
    else
        small_keep(files->remote, &asked->url, answer, to);
    if (status == TUNDISH_OK)
        *ret_bytes = (struct byte_view){ to, identity.bytes };
    return status;
}

static tundish_status
read_asked(struct remote_files *files, const struct asked *asked, struct scratch *scratch,
           struct byte_view *ret_bytes)
{
    if (asked->status != TUNDISH_OK)
        return tnd_fail(asked->status, "%s", asked->text);
    if (asked->reply != NULL)
        return read_reply(files, asked, scratch, ret_bytes);
    files->version = object_version(&asked->here.identity);
    *ret_bytes = asked->here.bytes;
    return TUNDISH_OK;
}

tundish_status
remote_files_next(struct remote_files *files, struct scratch *scratch, struct byte_view *ret_bytes)
{
    struct asked *asked = &files->asked[files->next % WINDOW];
    tundish_status status;

    must(files->next < files->count);
    while (files->asked_count < files->count && files->asked_count < files->next + WINDOW)
        ask_next(files, scratch);
    files->next++;
    status = read_asked(files, asked, scratch, ret_bytes);
    asked_close(asked);
    return status;
}

uint64_t
remote_files_version(const struct remote_files *files)
{
    return files->version;
}
