/* ranges.c - requests for pieces of at most a part's size, those that are expected among them.
 *
 * With a cache on disk a piece lies there as a part of an object of its own, whose name has the
 * offset. */
#include "remote/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/read_write.h"
#include "remote/disk.h"
#include "remote/whole.h"

/* Pieces of one read that are under way. */
enum { WINDOW = 16, TAIL_BYTES = 64 << 10 };

struct piece {
    struct piece *next;
    uint64_t offset;
    size_t bytes;
    struct reply *reply; /* NULL: it lay on the disk */
};

struct remote_ranges {
    struct remote *remote;
    struct remote_url url;
    char *address;
    pthread_mutex_t lock; /* of all below */
    struct object_identity identity;
    bool comes_whole; /* its server sends no ranges */
    struct piece *expected;
    uint64_t expected_bytes;
    uint8_t *tail; /* the last bytes; NULL: they are not kept */
    uint64_t tail_bytes;
};

tundish_status
remote_ranges_open(struct remote *remote, const char *name, struct remote_ranges **ret_ranges)
{
    struct remote_ranges *ranges = tnd_zalloc(1, sizeof *ranges);
    struct remote_site site = remote_site_of(remote);
    tundish_status status = remote_url_open(name, strlen(name), &ranges->url);

    if (status != TUNDISH_OK) {
        free(ranges);
        return status;
    }
    ranges->remote = remote;
    ranges->address = remote_url_address(&ranges->url, &site);
    pthread_mutex_init(&ranges->lock, NULL);
    *ret_ranges = ranges;
    return TUNDISH_OK;
}

static void
piece_close(struct piece *piece)
{
    if (piece == NULL)
        return;
    request_close(piece->reply);
    free(piece);
}

void
remote_ranges_close(struct remote_ranges *ranges)
{
    if (ranges == NULL)
        return;
    while (ranges->expected != NULL) {
        struct piece *next = ranges->expected->next;

        piece_close(ranges->expected);
        ranges->expected = next;
    }
    pthread_mutex_destroy(&ranges->lock);
    free(ranges->tail);
    remote_url_close(&ranges->url);
    free(ranges->address);
    free(ranges);
}

static struct object_identity
identity_so_far(struct remote_ranges *ranges)
{
    struct object_identity identity;

    pthread_mutex_lock(&ranges->lock);
    identity = ranges->identity;
    pthread_mutex_unlock(&ranges->lock);
    return identity;
}

/* If several asked at the same time, the first one counts. `tail` is its own. */
static struct object_identity
note_identity(struct remote_ranges *ranges, const struct object_identity *found, uint8_t *tail,
              size_t tail_bytes)
{
    struct object_identity identity;

    pthread_mutex_lock(&ranges->lock);
    if (!ranges->identity.is_known) {
        ranges->identity = *found;
        ranges->tail = tail;
        ranges->tail_bytes = tail_bytes;
        tail = NULL;
    }
    identity = ranges->identity;
    pthread_mutex_unlock(&ranges->lock);
    free(tail);
    return identity;
}

tundish_status
remote_ranges_identify(struct remote_ranges *ranges, struct object_identity *ret_identity)
{
    struct object_identity found = identity_so_far(ranges);
    tundish_status status = TUNDISH_OK;

    if (!found.is_known)
        status = remote_look(ranges->remote, &ranges->url, &found);
    if (status == TUNDISH_OK)
        *ret_identity = note_identity(ranges, &found, NULL, 0);
    return status;
}

static tundish_status
ask_tail(struct remote_ranges *ranges, struct object_identity *ret_identity)
{
    struct object_identity found;
    struct reply *reply = NULL;
    const struct answer *answer;
    const uint8_t *bytes;
    uint8_t *tail;
    size_t count;
    tundish_status status = request_ask_tail(ranges->remote, &ranges->url, TAIL_BYTES, &reply);

    if (status == TUNDISH_OK)
        status = request_wait(reply, &bytes, &count, &answer);
    if (status == TUNDISH_OK) {
        found = request_identity(answer);
        tail = tnd_alloc(count + 1);
        if (count > 0)
            memcpy(tail, bytes, count);
        *ret_identity = note_identity(ranges, &found, tail, count);
    }
    request_close(reply);
    return status;
}

tundish_status
remote_ranges_identify_by_tail(struct remote_ranges *ranges, struct object_identity *ret_identity)
{
    const struct object_identity known = identity_so_far(ranges);
    tundish_status status = TUNDISH_E_DATA;

    /* An object in the disk cache needs no bytes of the store. */
    if (!known.is_known && ranges->remote->disk == NULL)
        status = ask_tail(ranges, ret_identity);
    /* Not every server knows of last bytes. */
    return status == TUNDISH_E_DATA ? remote_ranges_identify(ranges, ret_identity) : status;
}

void
remote_ranges_forget_tail(struct remote_ranges *ranges)
{
    uint8_t *tail;

    pthread_mutex_lock(&ranges->lock);
    tail = ranges->tail;
    ranges->tail = NULL;
    pthread_mutex_unlock(&ranges->lock);
    free(tail);
}

static bool
take_from_tail(struct remote_ranges *ranges, void *to, size_t bytes, uint64_t offset)
{
    bool is_there;
    uint64_t begin;

    pthread_mutex_lock(&ranges->lock);
    begin = ranges->identity.bytes - ranges->tail_bytes;
    is_there = ranges->tail != NULL && offset >= begin && offset <= ranges->identity.bytes &&
               bytes <= ranges->identity.bytes - offset;
    if (is_there && bytes > 0)
        memcpy(to, ranges->tail + (offset - begin), bytes);
    pthread_mutex_unlock(&ranges->lock);
    return is_there;
}

static char *
disk_name(const struct remote_ranges *ranges, uint64_t offset, size_t bytes)
{
    return tnd_sprintf("%s#bytes=%llu+%zu", ranges->address, (unsigned long long)offset, bytes);
}

static bool
is_on_disk(const struct remote_ranges *ranges, uint64_t offset, size_t bytes)
{
    struct disk *disk = ranges->remote->disk;
    char *name = disk != NULL ? disk_name(ranges, offset, bytes) : NULL;
    bool is_there = disk != NULL && disk_has(disk, name, 0);

    free(name);
    return is_there;
}

static tundish_status
ask(const struct remote_ranges *ranges, uint64_t offset, size_t bytes, bool is_urgent,
    struct piece **ret_piece)
{
    struct piece *piece = tnd_zalloc(1, sizeof *piece);
    const struct reply_range range = { &ranges->identity, offset, bytes, is_urgent };
    tundish_status status = request_ask(ranges->remote, &ranges->url, &range, &piece->reply);

    piece->offset = offset;
    piece->bytes = bytes;
    if (status == TUNDISH_OK)
        *ret_piece = piece;
    else
        free(piece);
    return status;
}

static struct piece **
find_expected(struct remote_ranges *ranges, uint64_t offset, size_t bytes)
{
    struct piece **link = &ranges->expected;

    while (*link != NULL && ((*link)->offset != offset || (*link)->bytes != bytes))
        link = &(*link)->next;
    return link;
}

void
remote_ranges_expect(struct remote_ranges *ranges, size_t bytes, uint64_t offset)
{
    const struct spec_remote *options = &ranges->remote->options;
    uint64_t most = (uint64_t)options->connections * options->part_bytes;

    for (size_t at = 0; at < bytes; at += options->part_bytes) {
        size_t count = bytes - at < options->part_bytes ? bytes - at : options->part_bytes;
        struct piece *piece = NULL;

        if (is_on_disk(ranges, offset + at, count))
            continue;
        pthread_mutex_lock(&ranges->lock);
        if (ranges->identity.is_known && !ranges->comes_whole &&
            ranges->expected_bytes + count <= most &&
            *find_expected(ranges, offset + at, count) == NULL &&
            ask(ranges, offset + at, count, false, &piece) == TUNDISH_OK) {
            piece->next = ranges->expected;
            ranges->expected = piece;
            ranges->expected_bytes += count;
        }
        pthread_mutex_unlock(&ranges->lock);
    }
}

/* Read it from the disk. False: it is not there. */
static bool
read_disk(const struct remote_ranges *ranges, uint8_t *to, size_t bytes, uint64_t offset)
{
    struct disk *disk = ranges->remote->disk;
    char *name = disk_name(ranges, offset, bytes);
    const struct disk_wanted wanted = { .address = name, .identity = &ranges->identity };
    int descriptor = -1;
    size_t got = 0;
    bool is_there = disk_take(disk, &wanted, &descriptor) &&
                    tnd_read_at(descriptor, to, bytes, 0, &got) == 0 && got == bytes;

    if (descriptor >= 0)
        close(descriptor);
    free(name);
    if (is_there)
        store_count(&stores_find(&ranges->url)->cached_bytes, bytes);
    return is_there;
}

static tundish_status
read_whole(struct remote_ranges *ranges, uint8_t *to, size_t bytes, uint64_t offset)
{
    struct object_identity identity = identity_so_far(ranges);

    pthread_mutex_lock(&ranges->lock);
    ranges->comes_whole = true;
    pthread_mutex_unlock(&ranges->lock);
    return whole_read(ranges->remote, &ranges->url, (struct whole_span){ offset, bytes }, &identity,
                      to);
}

/* One that was expected, or ask for it now. A piece without a reply was read from the disk. */
static tundish_status
begin_piece(struct remote_ranges *ranges, uint8_t *to, size_t bytes, uint64_t offset,
            struct piece **ret_piece)
{
    struct piece **link, *piece;
    bool comes_whole;
    tundish_status status = TUNDISH_OK;

    pthread_mutex_lock(&ranges->lock);
    comes_whole = ranges->comes_whole;
    link = find_expected(ranges, offset, bytes);
    piece = *link;
    if (piece != NULL) {
        *link = piece->next;
        ranges->expected_bytes -= bytes;
    }
    pthread_mutex_unlock(&ranges->lock);
    if (piece == NULL && comes_whole) {
        status = read_whole(ranges, to, bytes, offset);
        piece = status == TUNDISH_OK ? tnd_zalloc(1, sizeof *piece) : NULL;
    } else if (piece == NULL && is_on_disk(ranges, offset, bytes) &&
               read_disk(ranges, to, bytes, offset))
        piece = tnd_zalloc(1, sizeof *piece);
    else if (piece == NULL)
        status = ask(ranges, offset, bytes, true, &piece);
    if (status == TUNDISH_OK)
        *ret_piece = piece;
    return status;
}

static tundish_status
end_piece(struct remote_ranges *ranges, const struct piece *piece, uint8_t *to)
{
    const struct answer *answer;
    const uint8_t *bytes;
    struct object_identity told;
    struct disk_kept kept;
    size_t count;
    char *name;
    tundish_status status;

    if (piece->reply == NULL)
        return TUNDISH_OK;
    status = request_wait(piece->reply, &bytes, &count, &answer);
    if (status == TUNDISH_E_DATA && ranges->remote->disk != NULL &&
        request_is_too_large(piece->reply, &told))
        return read_whole(ranges, to, piece->bytes, piece->offset);
    if (status == TUNDISH_OK && count != piece->bytes)
        status = tnd_fail(TUNDISH_E_DATA, "%s: the object became shorter while it was read",
                          ranges->url.name);
    if (status != TUNDISH_OK)
        return status;
    memcpy(to, bytes, count);
    if (ranges->remote->disk == NULL)
        return TUNDISH_OK;
    name = disk_name(ranges, piece->offset, piece->bytes);
    kept = (struct disk_kept){ .address = name, .identity = ranges->identity, .bytes = count };
    disk_put(ranges->remote->disk, &kept, to);
    free(name);
    return TUNDISH_OK;
}

tundish_status
remote_ranges_read(struct remote_ranges *ranges, void *to, size_t bytes, uint64_t offset)
{
    uint32_t part_bytes = ranges->remote->options.part_bytes;
    size_t piece_count = (bytes + part_bytes - 1) / part_bytes, begun = 0, ended = 0;
    struct piece *window[WINDOW] = { NULL };
    tundish_status status = TUNDISH_OK;

    if (take_from_tail(ranges, to, bytes, offset))
        return TUNDISH_OK;
    while (ended < piece_count && status == TUNDISH_OK) {
        struct piece **first = &window[ended % WINDOW];

        for (; begun < piece_count && begun < ended + WINDOW && status == TUNDISH_OK; begun++) {
            size_t at = begun * part_bytes;
            size_t count = bytes - at < part_bytes ? bytes - at : part_bytes;

            status = begin_piece(ranges, (uint8_t *)to + at, count, offset + at,
                                 &window[begun % WINDOW]);
        }
        if (status == TUNDISH_OK)
            status = end_piece(ranges, *first, (uint8_t *)to + ended++ * part_bytes);
        if (status == TUNDISH_OK) {
            piece_close(*first);
            *first = NULL;
        }
    }
    for (size_t i = 0; i < WINDOW; i++)
        piece_close(window[i]);
    return status;
}

static tundish_status
copy_all(struct remote_ranges *ranges, const struct object_identity *identity, int descriptor)
{
    uint64_t piece_bytes = (uint64_t)WINDOW * ranges->remote->options.part_bytes;
    size_t room = (size_t)(identity->bytes < piece_bytes ? identity->bytes : piece_bytes);
    uint8_t *buffer = tnd_alloc(room + 1);
    tundish_status status = TUNDISH_OK;

    for (uint64_t at = 0; at < identity->bytes && status == TUNDISH_OK;) {
        uint64_t left = identity->bytes - at;
        size_t count = left < room ? (size_t)left : room;
        int error = 0;

        status = remote_ranges_read(ranges, buffer, count, at);
        if (status == TUNDISH_OK)
            error = tnd_write(descriptor, buffer, count);
        if (error != 0)
            status = tnd_fail_errno(error, "%s", ranges->url.name);
        at += count;
    }
    free(buffer);
    return status;
}

tundish_status
remote_copy(struct remote *remote, const char *name, int *ret_descriptor)
{
    struct remote_ranges *ranges = NULL;
    struct object_identity identity;
    int descriptor = memfd_create("tundish copy", MFD_CLOEXEC);
    tundish_status status = descriptor < 0 ? tnd_fail_errno(errno, "no memory for %s", name)
                                           : remote_ranges_open(remote, name, &ranges);

    if (status == TUNDISH_OK)
        status = remote_ranges_identify(ranges, &identity);
    if (status == TUNDISH_OK)
        status = copy_all(ranges, &identity, descriptor);
    remote_ranges_close(ranges);
    if (status == TUNDISH_OK)
        *ret_descriptor = descriptor;
    else if (descriptor >= 0)
        close(descriptor);
    return status;
}
