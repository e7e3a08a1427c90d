/* fuzz_codec.c - columns that no encoder stored: codec and lengths from the input's first bytes.
 *
 *     codec number | value bytes | width | level | base, 8 bytes | decoded bytes, 4 | stored bytes
 *
 * Decoding must stay within its buffers and end; what it accepts, encoding and decoding must give
 * back.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/codec.h"
#include "core/cpu.h"
#include "core/must.h"

#define HEAD_BYTES 16
#define MAX_BYTES (1U << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static struct tnd_codec_context *context;

static void
encode_again(const struct tnd_codec *codec, const uint8_t *column, uint64_t bytes)
{
    uint64_t bound, stored_bytes;
    uint8_t *stored, *back = malloc(bytes + 1);

    must(tnd_codec_bound(codec, bytes, &bound) == TUNDISH_OK);
    stored = malloc(bound + 1);
    must(tnd_codec_encode(codec, column, bytes, stored, bound, context, &stored_bytes) ==
         TUNDISH_OK);
    must(tnd_codec_decode(codec, stored, stored_bytes, back, bytes, context) == TUNDISH_OK);
    must(bytes == 0 || memcmp(back, column, bytes) == 0);
    free(stored);
    free(back);
}

/* In memory of exactly its size, so that the sanitizer sees a step beyond it. */
static void
decode(const struct tnd_codec *codec, const uint8_t *stored, uint64_t stored_bytes,
       uint64_t out_bytes)
{
    uint8_t *in = malloc(stored_bytes + (stored_bytes == 0));
    uint8_t *out = malloc(out_bytes + (out_bytes == 0));

    memcpy(in, stored, stored_bytes);
    if (tnd_codec_decode(codec, in, stored_bytes, out, out_bytes, context) == TUNDISH_OK)
        encode_again(codec, out, out_bytes);
    free(in);
    free(out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct tnd_codec codec;

    if (context == NULL)
        must(tnd_codec_context_open(1, &context) == TUNDISH_OK);
    if (bytes < HEAD_BYTES)
        return 0;
    codec = (struct tnd_codec){
        .number = data[0],
        .value_bytes = data[1],
        .width = data[2],
        .level = (int8_t)((int8_t)data[3] % 4),
        .base = (int64_t)load_u64(data + 4),
    };
    for (int level = TND_CPU_PORTABLE; level < TND_CPU_LEVELS; level++)
        if (tnd_cpu_use((enum tnd_cpu_level)level))
            decode(&codec, data + HEAD_BYTES, bytes - HEAD_BYTES, load_u32(data + 12) % MAX_BYTES);
    return 0;
}
