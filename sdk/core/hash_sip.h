/* hash_sip.h - SipHash-2-4, the hash of TensorFlow's strong buckets and Keras' salts. */
#ifndef TND_CORE_HASH_SIP_H
#define TND_CORE_HASH_SIP_H

#include <stddef.h>
#include <stdint.h>

/* `key` as TensorFlow's `key: [k0, k1]`; a single salt s is the key {s, s}. */
uint64_t tnd_hash_sip(const uint64_t key[2], const void *data, size_t bytes);

/* The hash of the number's decimal text. */
uint64_t tnd_hash_sip_decimal(const uint64_t key[2], int64_t number);

#endif
