/* agree.c - every node posts its parts and compares all posts with that of rank 0. All nodes see
 * the same posts, so all reach the same conclusion. */
#include "link/agree.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

/* A part as posted: 64-bit hash, length of the name including its NUL, name. */
enum { HEAD_BYTES = 12 };

struct list {
    uint8_t *bytes;
    size_t byte_count, at;
};

static void
write_parts(const struct agree_part *parts, size_t count, struct list *list)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t name_bytes = (uint32_t)strlen(parts[i].name) + 1;
        uint8_t *to;

        list->bytes = tnd_realloc(list->bytes, list->byte_count + HEAD_BYTES + name_bytes, 1);
        to = list->bytes + list->byte_count;
        memcpy(to, &parts[i].hash, 8);
        memcpy(to + 8, &name_bytes, 4);
        memcpy(to + HEAD_BYTES, parts[i].name, name_bytes);
        list->byte_count += HEAD_BYTES + name_bytes;
    }
}

/* Read the next part of a list. The bytes come from another node, so every length is checked. */
static bool
next_part(struct list *list, struct agree_part *ret_part)
{
    size_t left = list->byte_count - list->at;
    uint32_t name_bytes;

    if (left < HEAD_BYTES)
        return false;
    ret_part->hash = load_u64(list->bytes + list->at);
    name_bytes = load_u32(list->bytes + list->at + 8);
    if (name_bytes == 0 || name_bytes > left - HEAD_BYTES ||
        list->bytes[list->at + HEAD_BYTES + name_bytes - 1] != '\0')
        return false;
    ret_part->name = (const char *)list->bytes + list->at + HEAD_BYTES;
    list->at += HEAD_BYTES + name_bytes;
    return true;
}

static tundish_status
refuse(struct link *link, uint32_t rank, const char *what, const char *how)
{
    char first[160], other[160];

    link_name(link, 0, first, sizeof first);
    link_name(link, rank, other, sizeof other);
    return tnd_fail(TUNDISH_E_ARGUMENT, "%s %s on %s and %s: all nodes of a job need the same",
                    what, how, first, other);
}

static tundish_status
compare(struct link *link, uint32_t rank, struct list first, struct list other)
{
    /* Parts are in the same order everywhere, so the first difference is the one to name. */
    for (;;) {
        struct agree_part expected = { 0 }, found = { 0 };
        bool more = next_part(&first, &expected), other_more = next_part(&other, &found);

        if (!more && !other_more)
            return TUNDISH_OK;
        if (!more || !other_more || strcmp(expected.name, found.name) != 0)
            return refuse(link, rank, more ? expected.name : found.name, "is not the same thing");
        if (expected.hash != found.hash)
            return refuse(link, rank, expected.name, "differs");
    }
}

tundish_status
agree(struct link *link, const struct agree_part *parts, size_t count, int64_t timeout_ns,
      const _Atomic int *stop)
{
    struct link_key key = { .topic = LINK_PART };
    struct list own = { 0 }, first = { 0 };
    tundish_status status;

    write_parts(parts, count, &own);
    link_post(link, &key, own.bytes, own.byte_count);
    free(own.bytes);
    status = link_wait_for_all(link, &key, timeout_ns, stop);
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "comparing this node with the others");
    link_find(link, &key, 0, &first.bytes, &first.byte_count);
    for (uint32_t rank = 1; status == TUNDISH_OK && rank < link_size(link); rank++) {
        struct list other = { 0 };

        link_find(link, &key, rank, &other.bytes, &other.byte_count);
        status = compare(link, rank, first, other);
        free(other.bytes);
    }
    free(first.bytes);
    return status;
}

static bool
first_has_posted(struct link *link, void *context)
{
    uint8_t *bytes;
    size_t byte_count;

    if (!link_find(link, context, 0, &bytes, &byte_count))
        return false;
    free(bytes);
    return true;
}

tundish_status
agree_on_number(struct link *link, uint64_t *number, int64_t timeout_ns, const _Atomic int *stop)
{
    struct link_key key = { .topic = LINK_SEED };
    uint8_t *bytes;
    size_t byte_count;
    tundish_status status;

    if (link_rank(link) == 0)
        link_post(link, &key, number, sizeof *number);
    status = link_wait(link, first_has_posted, &key, timeout_ns, stop);
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "waiting for the seed of the job");
    link_find(link, &key, 0, &bytes, &byte_count);
    /* Another length can only come from a damaged message; the number then stays this node's own.
     */
    if (byte_count == sizeof *number)
        memcpy(number, bytes, sizeof *number);
    free(bytes);
    return TUNDISH_OK;
}
