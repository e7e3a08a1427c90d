/* content_decode_base64.c - tf.io.decode_base64: the web-safe alphabet, padding optional. */
#include "content/records/decode_text.h"

struct decode_base64 {
    struct content_targets targets;
};

/* The six bits of a character; 64: it is not in the alphabet. */
static inline uint32_t
sextet(uint8_t byte)
{
    if (byte >= 'A' && byte <= 'Z')
        return (uint32_t)byte - 'A';
    if (byte >= 'a' && byte <= 'z')
        return (uint32_t)byte - 'a' + 26;
    if (byte >= '0' && byte <= '9')
        return (uint32_t)byte - '0' + 52;
    return byte == '-' ? 62 : byte == '_' ? 63 : 64;
}

/* Decode up to four characters to three bytes. Missing characters count as zero bits. */
static bool
decode_quad(const uint8_t *from, uint64_t count, uint8_t to[3])
{
    uint32_t bits = 0;

    for (uint64_t i = 0; i < 4; i++) {
        uint32_t value = i < count ? sextet(from[i]) : 0;

        if (value == 64)
            return false;
        bits = bits << 6 | value;
    }
    to[0] = (uint8_t)(bits >> 16);
    to[1] = (uint8_t)(bits >> 8);
    to[2] = (uint8_t)bits;
    return true;
}

static const char *
decode(void *context, struct byte_view from, struct scratch *scratch, struct byte_view *ret_to)
{
    uint64_t left = from.size;
    uint64_t used = 0;
    uint8_t *to;

    (void)context;
    if (left > 0 && left % 4 == 0 && from.data[left - 1] == '=')
        left -= from.data[left - 2] == '=' ? 2 : 1;
    /* A single character has six bits, which make no byte. */
    if (left % 4 == 1)
        return "decode_base64: no base64 text has so many characters";
    to = scratch_alloc(scratch, left / 4 * 3 + 3);
    for (uint64_t at = 0; at < left; at += 4) {
        uint64_t count = left - at < 4 ? left - at : 4;

        if (!decode_quad(from.data + at, count, to + used))
            return "decode_base64: a character is not of base64's web-safe alphabet";
        used += count - 1;
    }
    *ret_to = (struct byte_view){ to, used };
    return NULL;
}

static tundish_status
decode_base64_open(void *memory, const struct stage_config *config, struct schema *ret_schema,
                   bool *ret_batch_wide)
{
    struct decode_base64 *state = memory;

    (void)ret_batch_wide;
    return decode_text_open(config, ret_schema, &state->targets);
}

static tundish_status
decode_base64_apply(const void *memory, const struct frame *input, struct frame *output)
{
    const struct decode_base64 *state = memory;

    decode_text_apply(&state->targets, input, output, decode, NULL);
    return TUNDISH_OK;
}

static void
decode_base64_close(void *memory)
{
    struct decode_base64 *state = memory;

    content_targets_close(&state->targets);
}

const struct content_ops content_decode_base64 = {
    .name = "decode_base64",
    .takes_missing = true,
    .state_bytes = sizeof(struct decode_base64),
    .open = decode_base64_open,
    .apply = decode_base64_apply,
    .close = decode_base64_close,
};
