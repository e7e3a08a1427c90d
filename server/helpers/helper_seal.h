/* helper_seal.h - what shows that a message comes from the other end of a connection, whole, once
 * and in its turn: a MAC (UMAC-128, RFC 4418) of its bytes.
 *
 * Each direction of each connection has a key of its own, made of the job's key and of what both
 * ends drew, and counts its messages: the number is the MAC's nonce. So what was changed, left out,
 * repeated, moved or sent back on the way, or comes from another connection, has another MAC.
 */
#ifndef HELPERS_HELPER_SEAL_H
#define HELPERS_HELPER_SEAL_H

#include <nettle/umac.h>
#include <sys/uio.h>

#include "core/bytes.h"

enum { HELPER_SEAL_BYTES = 16, HELPER_NONCE_BYTES = 32 };

/* A direction. */
struct helper_seal {
    struct umac128_ctx context;
    uint64_t count; /* of messages */
};

struct helper_seals {
    struct helper_seal sent, received;
};

/* The random numbers of the helper and of the server. */
struct helper_nonces {
    uint8_t helper[HELPER_NONCE_BYTES], server[HELPER_NONCE_BYTES];
};

void helper_seals_open(struct helper_seals *seals, struct byte_view key,
                       const struct helper_nonces *nonces, bool is_server);

/* The next message's. */
void helper_seal_next(struct helper_seal *seal, const struct iovec *pieces, int count,
                      uint8_t ret_bytes[HELPER_SEAL_BYTES]);
bool helper_seal_is(const uint8_t *bytes, const uint8_t *told);

#endif
