/* place.h - the place where a trainer stands, as bytes to save and as text to pass on.
 *
 * The library knows epoch and step. The server needs more to get there again. It sends that once an
 * epoch as a header, which means nothing here and goes back to the server with the place.
 */
#ifndef TND_SHM_PLACE_H
#define TND_SHM_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "tundish/tundish.h"

#define TND_PLACE_BYTES_MAX ((uint64_t)16 << 20)

struct tnd_place {
    uint64_t epoch, step;  /* the next batch wanted */
    uint64_t header_epoch; /* the epoch at whose start `header` was true: `epoch` or before */
    uint64_t bit_count;    /* queue: of this number from there on, those with a bit are done; an
                              epoch's end has a bit of its own, after its last batch */
    const uint8_t *bits;   /* (bit_count + 7) / 8 bytes */
    const uint8_t *header;
    uint64_t header_bytes;
};

uint64_t tnd_place_bytes(const struct tnd_place *place);
void tnd_place_write(const struct tnd_place *place, uint8_t *bytes);

/* `header` and `bits` then point into `bytes`. E_PLACE says why the bytes are not a place. */
tundish_status tnd_place_read(const uint8_t *bytes, uint64_t byte_count,
                              struct tnd_place *ret_place);

/* A token is "tnd1." followed by A-Z a-z 0-9 - _. Its bytes include the NUL. */
uint64_t tnd_place_token_bytes(uint64_t byte_count);
void tnd_place_token_write(const uint8_t *bytes, uint64_t byte_count, char *token);

/* The number of bytes a token stands for, at most; then those bytes. E_PLACE: not a token. */
uint64_t tnd_place_token_decoded_bytes(const char *token);
tundish_status tnd_place_token_read(const char *token, uint8_t *bytes, uint64_t *ret_byte_count);

#endif
