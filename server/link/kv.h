/* kv.h - what nodes have posted: bytes by key and node. */
#ifndef LINK_KV_H
#define LINK_KV_H

#include "link/link.h"

struct kv;

struct kv *kv_open(void);
void kv_close(struct kv *kv);

/* Copied; replaces what that node had there. */
void kv_put(struct kv *kv, const struct link_key *key, uint32_t rank, const void *bytes,
            size_t byte_count);
bool kv_find(const struct kv *kv, const struct link_key *key, uint32_t rank,
             struct byte_view *ret_bytes);
void kv_forget(struct kv *kv, const struct link_key *key);

#endif
