/* fuzz_place.c - places that nobody saved: as bytes, as a token, and what the server put into them.
 * A place that is taken is written again as the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "core/must.h"
#include "session/checkpoint/place_contents.h"
#include "shm/place.h"

enum { VERSION_AT = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

static void
try_contents(const uint8_t *bytes, size_t byte_count)
{
    uint8_t again[PLACE_BYTES_MAX];
    struct place place;

    if (place_read(bytes, byte_count, &place) != TUNDISH_OK)
        return;
    place_write(&place, again);
    if (bytes[VERSION_AT] != again[VERSION_AT]) { /* an older one, which is shorter */
        must(place_bytes(&place) > byte_count && place.split.workers == 0);
        return;
    }
    must(place_bytes(&place) == byte_count && memcmp(again, bytes, byte_count) == 0);
}

static void
try_place(const uint8_t *bytes, size_t byte_count)
{
    struct tnd_place place;
    uint8_t *again;

    if (tnd_place_read(bytes, byte_count, &place) != TUNDISH_OK)
        return;
    must(tnd_place_bytes(&place) == byte_count);
    again = malloc(byte_count);
    tnd_place_write(&place, again);
    free(again);
    try_contents(place.header, place.header_bytes);
}

static void
try_token(const uint8_t *data, size_t data_bytes)
{
    char *token = malloc(data_bytes + 1);
    uint8_t *bytes;
    uint64_t byte_count;

    memcpy(token, data, data_bytes);
    token[data_bytes] = '\0';
    bytes = malloc(tnd_place_token_decoded_bytes(token) + 1);
    if (tnd_place_token_read(token, bytes, &byte_count) == TUNDISH_OK)
        try_place(bytes, byte_count);
    free(bytes);
    free(token);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    try_contents(data, data_bytes);
    try_place(data, data_bytes);
    try_token(data, data_bytes);
    return 0;
}
