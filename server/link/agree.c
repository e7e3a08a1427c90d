/* agree.c - every node tells a hash over its parts. If these differ, rank 0 posts its parts, each
 * compares its own with them, and the lowest rank that differs says how, for all. */
#include "link/agree.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/memory.h"

/* A part as posted: 64-bit hash, length of the name including its NUL, name. */
enum { HEAD_BYTES = 12, VERDICT_BYTES = 1020 };

/* Parts of LINK_PART's keys. */
enum { PART_HASH, PART_LIST, PART_VERDICT };

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

/* A node's verdict on a difference: its rank, so that the lowest is heard, and a sentence. All bits
 * set: there is none. */
struct verdict {
    uint32_t rank; /* the highest byte first */
    char text[VERDICT_BYTES];
};

static void
refuse(struct link *link, const char *what, const char *how, struct verdict *ret_verdict)
{
    uint32_t rank = link_rank(link);
    char first[160], other[160];

    link_name(link, 0, first, sizeof first);
    link_name(link, rank, other, sizeof other);
    ret_verdict->rank = htobe32(rank);
    snprintf(ret_verdict->text, sizeof ret_verdict->text,
             "%s %s on %s and %s: all nodes of a job need the same", what, how, first, other);
}

static void
compare(struct link *link, struct list first, struct list own, struct verdict *ret_verdict)
{
    /* Parts are in the same order everywhere, so the first difference is the one to name. */
    for (;;) {
        struct agree_part expected = { 0 }, found = { 0 };
        bool more = next_part(&first, &expected), own_more = next_part(&own, &found);

        if (!more && !own_more)
            return;
        if (!more || !own_more || strcmp(expected.name, found.name) != 0) {
            refuse(link, more ? expected.name : found.name, "is not the same thing", ret_verdict);
            return;
        }
        if (expected.hash != found.hash) {
            refuse(link, expected.name, "differs", ret_verdict);
            return;
        }
    }
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

/* Some node has other parts. Which, and what is it? */
static tundish_status
find_difference(struct link *link, struct list own, int64_t timeout_ns, const _Atomic int *stop)
{
    struct link_key key = { .topic = LINK_PART, .part = PART_LIST };
    struct verdict verdict = { .rank = UINT32_MAX };
    struct link_tally tally = { .merge = LINK_LOWEST, .bytes = (uint8_t *)&verdict };
    struct link_total total;
    struct list first = { 0 };
    tundish_status status;

    if (link_rank(link) == 0)
        link_post(link, &key, own.bytes, own.byte_count);
    status = link_wait(link, first_has_posted, &key, timeout_ns, stop);
    if (status != TUNDISH_OK)
        return status;
    link_find(link, &key, 0, &first.bytes, &first.byte_count);
    compare(link, first, own, &verdict);
    free(first.bytes);
    link_forget(link, &key);
    key.part = PART_VERDICT;
    tally.byte_count = sizeof verdict;
    status = link_tally_all(link, &key, &tally, timeout_ns, stop, &total);
    if (status != TUNDISH_OK)
        return status;
    if (total.byte_count == sizeof verdict)
        memcpy(&verdict, total.bytes, sizeof verdict);
    free(total.bytes);
    verdict.text[sizeof verdict.text - 1] = '\0';
    if (verdict.rank == UINT32_MAX)
        snprintf(verdict.text, sizeof verdict.text, "the nodes' files differ");
    return tnd_fail(TUNDISH_E_ARGUMENT, "%s", verdict.text);
}

tundish_status
agree(struct link *link, const struct agree_part *parts, size_t count, int64_t timeout_ns,
      const _Atomic int *stop)
{
    struct link_key key = { .topic = LINK_PART, .part = PART_HASH };
    struct list own = { 0 };
    struct link_total total;
    tundish_status status;
    uint64_t hash;

    write_parts(parts, count, &own);
    hash = tnd_hash_farm(own.bytes, own.byte_count);
    status = link_tally_all(link, &key,
                            &(struct link_tally){ .merge = LINK_KINDS,
                                                  .bytes = (const uint8_t *)&hash,
                                                  .byte_count = sizeof hash },
                            timeout_ns, stop, &total);
    if (status == TUNDISH_OK) {
        if (!link_are_same(&total))
            status = find_difference(link, own, timeout_ns, stop);
        free(total.bytes);
    }
    free(own.bytes);
    if (status == TUNDISH_E_ARGUMENT)
        return status;
    return status == TUNDISH_OK ? status
                                : tnd_fail_while(status, "comparing this node with the others");
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
