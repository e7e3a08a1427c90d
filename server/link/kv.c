/* kv.c - a table of posts by key and rank. */
#include "link/kv.h"

#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/memory.h"

enum { CHAINS = 256 };

struct kv_value {
    uint32_t rank;
    uint8_t *bytes;
    size_t byte_count;
};

/* The posts under one key, mostly of one node. Chains are fixed: keys are forgotten after use, so
 * there are hundreds at most. */
struct entry {
    struct entry *next;
    struct link_key key;
    uint32_t count;
    struct kv_value *values;
};

struct kv {
    struct entry *chains[CHAINS];
};

static struct entry **
find_entry(const struct kv *kv, const struct link_key *key)
{
    uint64_t hash = tnd_hash_farm(key, sizeof *key);
    struct entry *const *at = &kv->chains[hash % CHAINS];

    while (*at != NULL && memcmp(&(*at)->key, key, sizeof *key) != 0)
        at = &(*at)->next;
    return (struct entry **)at;
}

struct kv *
kv_open(void)
{
    return tnd_zalloc(1, sizeof(struct kv));
}

static void
drop(struct entry **at)
{
    struct entry *entry = *at;

    *at = entry->next;
    for (uint32_t i = 0; i < entry->count; i++)
        free(entry->values[i].bytes);
    free(entry->values);
    free(entry);
}

void
kv_close(struct kv *kv)
{
    for (uint32_t i = 0; i < CHAINS; i++)
        while (kv->chains[i] != NULL)
            drop(&kv->chains[i]);
    free(kv);
}

static struct kv_value *
find_value(const struct entry *entry, uint32_t rank)
{
    for (uint32_t i = 0; i < entry->count; i++)
        if (entry->values[i].rank == rank)
            return &entry->values[i];
    return NULL;
}

static struct kv_value *
add_value(struct entry *entry, uint32_t rank)
{
    entry->values = tnd_grow(entry->values, entry->count, sizeof *entry->values);
    entry->values[entry->count] = (struct kv_value){ .rank = rank };
    return &entry->values[entry->count++];
}

void
kv_put(struct kv *kv, const struct link_key *key, uint32_t rank, const void *bytes,
       size_t byte_count)
{
    struct entry **at = find_entry(kv, key);
    struct kv_value *value;

    if (*at == NULL) {
        *at = tnd_zalloc(1, sizeof **at);
        (*at)->key = *key;
    }
    value = find_value(*at, rank);
    if (value == NULL)
        value = add_value(*at, rank);
    free(value->bytes);
    /* One byte more, so that an empty post has an address, too. */
    value->bytes = tnd_alloc(byte_count + 1);
    if (byte_count > 0)
        memcpy(value->bytes, bytes, byte_count);
    value->byte_count = byte_count;
}

bool
kv_find(const struct kv *kv, const struct link_key *key, uint32_t rank, struct byte_view *ret_bytes)
{
    const struct entry *entry = *find_entry(kv, key);
    const struct kv_value *value = entry != NULL ? find_value(entry, rank) : NULL;

    if (value == NULL)
        return false;
    *ret_bytes = (struct byte_view){ value->bytes, value->byte_count };
    return true;
}

void
kv_forget(struct kv *kv, const struct link_key *key)
{
    struct entry **at = find_entry(kv, key);

    if (*at != NULL)
        drop(at);
}
