/* hash_decimals.h - the hashes of many integers' decimal texts: those of tnd_hash_farm_decimal and
 * tnd_hash_sip_decimal, several at once. */
#ifndef TND_CORE_HASH_DECIMALS_H
#define TND_CORE_HASH_DECIMALS_H

#include <stddef.h>
#include <stdint.h>

void tnd_hash_farm_decimals(const int64_t *numbers, size_t count, uint64_t *ret_hashes);

void tnd_hash_sip_decimals(const uint64_t key[2], const int64_t *numbers, size_t count,
                           uint64_t *ret_hashes);

#endif
