/* place.c - write and read places: a versioned record with a checksum, and its base64url text. */
#include "shm/place.h"

#include <string.h>

#include "core/crc32c.h"
#include "core/magic.h"
#include "core/must.h"
#include "core/status.h"

#define TOKEN_PREFIX "tnd1."

enum { PLACE_VERSION = 1 };

/* Little-endian, as every machine Tundish runs on. The checksum covers all that follows it. */
struct stored_place {
    uint32_t magic;
    uint32_t checksum;
    uint16_t version;
    uint16_t reserved[3];
    uint64_t epoch, step, header_epoch;
    uint64_t unused, bit_count;
    uint64_t header_bytes;
};

_Static_assert(sizeof(struct stored_place) == 64, "the place's layout moved");

enum { CHECKED_FROM = offsetof(struct stored_place, version) };

uint64_t
tnd_place_bytes(const struct tnd_place *place)
{
    return sizeof(struct stored_place) + (place->bit_count + 7) / 8 + place->header_bytes;
}

void
tnd_place_write(const struct tnd_place *place, uint8_t *bytes)
{
    uint64_t bits_bytes = (place->bit_count + 7) / 8;
    struct stored_place stored = {
        .magic = TND_PLACE_MAGIC,
        .version = PLACE_VERSION,
        .epoch = place->epoch,
        .step = place->step,
        .header_epoch = place->header_epoch,
        .bit_count = place->bit_count,
        .header_bytes = place->header_bytes,
    };

    must_in_debug((place->bit_count == 0 || place->bits != NULL) &&
                  (place->header_bytes == 0 || place->header != NULL));
    /* Twice: the checksum is computed over the bytes as they lie there. */
    memcpy(bytes, &stored, sizeof stored);
    if (bits_bytes != 0)
        memcpy(bytes + sizeof stored, place->bits, bits_bytes);
    if (place->header_bytes != 0)
        memcpy(bytes + sizeof stored + bits_bytes, place->header, place->header_bytes);
    stored.checksum = tnd_crc32c(0, bytes + CHECKED_FROM, tnd_place_bytes(place) - CHECKED_FROM);
    memcpy(bytes, &stored, sizeof stored);
}

tundish_status
tnd_place_read(const uint8_t *bytes, uint64_t byte_count, struct tnd_place *ret_place)
{
    struct stored_place stored;
    uint64_t left, bits_bytes;

    if (byte_count < sizeof stored || byte_count > TND_PLACE_BYTES_MAX)
        return tnd_fail(TUNDISH_E_PLACE, "%llu bytes are not a place",
                        (unsigned long long)byte_count);
    memcpy(&stored, bytes, sizeof stored);
    if (stored.magic != TND_PLACE_MAGIC)
        return tnd_fail(TUNDISH_E_PLACE, "these bytes are not a place");
    if (stored.version != PLACE_VERSION)
        return tnd_fail(TUNDISH_E_PLACE, "the place has version %u, this library knows %d",
                        stored.version, PLACE_VERSION);
    left = byte_count - sizeof stored;
    /* Not (bit_count + 7) / 8, which overflows for a hostile count. */
    bits_bytes = stored.bit_count / 8 + (stored.bit_count % 8 != 0);
    if (bits_bytes > left || stored.header_bytes != left - bits_bytes ||
        stored.header_epoch > stored.epoch ||
        stored.checksum != tnd_crc32c(0, bytes + CHECKED_FROM, byte_count - CHECKED_FROM))
        return tnd_fail(TUNDISH_E_PLACE, "the place is damaged");
    *ret_place = (struct tnd_place){
        .epoch = stored.epoch,
        .step = stored.step,
        .header_epoch = stored.header_epoch,
        .bit_count = stored.bit_count,
        .bits = bytes + sizeof stored,
        .header = bytes + sizeof stored + bits_bytes,
        .header_bytes = stored.header_bytes,
    };
    return TUNDISH_OK;
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

uint64_t
tnd_place_token_bytes(uint64_t byte_count)
{
    return strlen(TOKEN_PREFIX) + (byte_count * 4 + 2) / 3 + 1;
}

void
tnd_place_token_write(const uint8_t *bytes, uint64_t byte_count, char *token)
{
    uint32_t window = 0;
    unsigned bits = 0;

    memcpy(token, TOKEN_PREFIX, strlen(TOKEN_PREFIX));
    token += strlen(TOKEN_PREFIX);
    for (uint64_t i = 0; i < byte_count; i++) {
        window = window << 8 | bytes[i];
        for (bits += 8; bits >= 6; bits -= 6)
            *token++ = digits[window >> (bits - 6) & 63];
    }
    must_in_debug(bits < 6);
    if (bits > 0)
        *token++ = digits[window << (6 - bits) & 63];
    *token = '\0';
}

uint64_t
tnd_place_token_decoded_bytes(const char *token)
{
    return strlen(token) * 3 / 4;
}

tundish_status
tnd_place_token_read(const char *token, uint8_t *bytes, uint64_t *ret_byte_count)
{
    uint32_t window = 0;
    unsigned bits = 0;
    uint64_t count = 0;

    if (strncmp(token, TOKEN_PREFIX, strlen(TOKEN_PREFIX)) != 0)
        return tnd_fail(TUNDISH_E_PLACE, "\"%.40s\" is not a place's token: it begins with \"%s\"",
                        token, TOKEN_PREFIX);
    /* Bits that are left at the end are ignored; the checksum of the bytes finds a cut token. */
    for (token += strlen(TOKEN_PREFIX); *token != '\0'; token++) {
        const char *digit = strchr(digits, *token);

        if (digit == NULL)
            return tnd_fail(TUNDISH_E_PLACE, "the place's token contains '%c'",
                            *token < ' ' ? '?' : *token);
        window = window << 6 | (uint32_t)(digit - digits);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            bytes[count++] = (uint8_t)(window >> bits);
        }
    }
    must_in_debug(bits < 8);
    *ret_byte_count = count;
    return TUNDISH_OK;
}
