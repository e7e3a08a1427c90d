/* hash_farm.h - FarmHash's Fingerprint64, the hash of TensorFlow's fast buckets and crosses.
 * The same value on every machine and in every version. */
#ifndef TND_CORE_HASH_FARM_H
#define TND_CORE_HASH_FARM_H

#include <stddef.h>
#include <stdint.h>

uint64_t tnd_hash_farm(const void *data, size_t bytes);

/* Fold the bytes into `hash`, after the bytes that it was made of. */
uint64_t tnd_hash_farm_chain(uint64_t hash, const void *data, size_t bytes);

/* Fingerprint64 of the number's decimal text: how TensorFlow hashes an integer as a term. */
uint64_t tnd_hash_farm_decimal(int64_t number);

/* Fold the next column into a cross (FingerprintCat64). A cross starts at the key; a string
 * column is folded as its Fingerprint64, an integer column as itself. */
#define TND_HASH_CROSS_KEY UINT64_C(0xDECAFCAFFE)
uint64_t tnd_hash_farm_cat(uint64_t cross, uint64_t column);

#endif
