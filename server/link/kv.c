/* kv.c - a table of posts by key and rank. */
#include "link/kv.h"

#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/memory.h"

enum { CHAINS = 256 };

struct kv_value {
    bool posted;
    uint8_t *bytes;
    size_t byte_count;
};

/* A post of each node under one key. Chains are fixed: keys are forgotten after use, so there are
 * hundreds at most. */
struct entry {
    struct entry *next;
    struct link_key key;
    struct kv_value values[]; /* by rank */
};

struct kv {
    uint32_t size;
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
kv_open(uint32_t size)
{
    struct kv *kv = tnd_zalloc(1, sizeof *kv);

    kv->size = size;
    return kv;
}

static void
drop(struct kv *kv, struct entry **at)
{
    struct entry *entry = *at;

    *at = entry->next;
    for (uint32_t i = 0; i < kv->size; i++)
        free(entry->values[i].bytes);
    free(entry);
}

void
kv_close(struct kv *kv)
{
    for (uint32_t i = 0; i < CHAINS; i++)
        while (kv->chains[i] != NULL)
            drop(kv, &kv->chains[i]);
    free(kv);
}

void
kv_put(struct kv *kv, const struct link_key *key, uint32_t rank, const void *bytes,
       size_t byte_count)
{
    struct entry **at = find_entry(kv, key);
    struct kv_value *value;

    if (*at == NULL) {
        *at = tnd_zalloc(1, sizeof **at + kv->size * sizeof(struct kv_value));
        (*at)->key = *key;
    }
    value = &(*at)->values[rank];
    free(value->bytes);
    /* One byte more, so that an empty post has an address, too. */
    value->bytes = tnd_alloc(byte_count + 1);
    if (byte_count > 0)
        memcpy(value->bytes, bytes, byte_count);
    value->byte_count = byte_count;
    value->posted = true;
}

bool
kv_find(const struct kv *kv, const struct link_key *key, uint32_t rank, struct byte_view *ret_bytes)
{
    const struct entry *entry = *find_entry(kv, key);

    if (entry == NULL || !entry->values[rank].posted)
        return false;
    *ret_bytes = (struct byte_view){ entry->values[rank].bytes, entry->values[rank].byte_count };
    return true;
}

void
kv_forget(struct kv *kv, const struct link_key *key)
{
    struct entry **at = find_entry(kv, key);

    if (*at != NULL)
        drop(kv, at);
}
