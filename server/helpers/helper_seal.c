/* helper_seal.c - see helper_seal.h. */
#include "helpers/helper_seal.h"

#include <nettle/hmac.h>
#include <nettle/memops.h>

#include "core/must.h"

_Static_assert(HELPER_SEAL_BYTES == UMAC128_DIGEST_SIZE, "a whole MAC");
_Static_assert(2 * UMAC_KEY_SIZE == SHA256_DIGEST_SIZE, "a key for each direction");

void
helper_seals_open(struct helper_seals *seals, struct byte_view key,
                  const struct helper_nonces *nonces, bool is_server)
{
    static const char purpose[] = "messages";
    struct hmac_sha256_ctx context;
    uint8_t keys[2][UMAC_KEY_SIZE];

    hmac_sha256_set_key(&context, key.size, key.data);
    hmac_sha256_update(&context, sizeof purpose, (const uint8_t *)purpose);
    hmac_sha256_update(&context, sizeof nonces->helper, nonces->helper);
    hmac_sha256_update(&context, sizeof nonces->server, nonces->server);
    hmac_sha256_digest(&context, sizeof keys, keys[0]);
    umac128_set_key(&seals->sent.context, keys[is_server]);
    umac128_set_key(&seals->received.context, keys[!is_server]);
    seals->sent.count = seals->received.count = 0;
}

void
helper_seal_next(struct helper_seal *seal, const struct iovec *pieces, int count,
                 uint8_t ret_bytes[HELPER_SEAL_BYTES])
{
    uint64_t number = seal->count++;

    must(seal->count != 0);
    umac128_set_nonce(&seal->context, sizeof number, (const uint8_t *)&number);
    for (int i = 0; i < count; i++)
        if (pieces[i].iov_len > 0)
            umac128_update(&seal->context, pieces[i].iov_len, pieces[i].iov_base);
    umac128_digest(&seal->context, HELPER_SEAL_BYTES, ret_bytes);
}

bool
helper_seal_is(const uint8_t *bytes, const uint8_t *told)
{
    return memeql_sec(bytes, told, HELPER_SEAL_BYTES) != 0;
}
