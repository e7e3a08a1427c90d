/* content_decode_compressed.c - tf.io.decode_compressed. */
#include <string.h>
#include <zlib.h>

#include "content/decode_text.h"
#include "core/must.h"

/* The most that one string may become: a few bytes can stand for a thousand times as many. */
#define DECOMPRESSED_MAX (UINT64_C(1) << 30)

enum compression { PLAIN, ZLIB, GZIP };

struct decode_compressed {
    struct content_targets targets;
    enum compression compression;
};

struct inflating {
    z_stream stream; /* reset for each string: its window is allocated once */
    enum compression compression;
};

/* Twice as much room for what has come out so far. */
static uint8_t *
grow(struct scratch *scratch, const uint8_t *old, uint64_t used, uint64_t *capacity)
{
    uint8_t *more;

    *capacity *= 2;
    more = scratch_alloc(scratch, *capacity);
    if (used > 0)
        memcpy(more, old, used);
    return more;
}

/* A gzip text may have several members, one behind the other; what stands behind the end of a
 * zlib one is not looked at. Both as in TensorFlow, which however hands on what it could read of a
 * text that is cut short. */
static const char *
decode(void *context, struct byte_view from, struct scratch *scratch, struct byte_view *ret_to)
{
    struct inflating *inflating = context;
    z_stream *stream = &inflating->stream;
    bool is_gzip = inflating->compression == GZIP;
    uint64_t capacity = from.size < DECOMPRESSED_MAX / 8 ? 4 * from.size + 256 : DECOMPRESSED_MAX;
    uint8_t *to;

    if (from.size == 0 || inflating->compression == PLAIN) {
        *ret_to = from;
        return NULL;
    }
    if (from.size > DECOMPRESSED_MAX)
        return "decode_compressed: the compressed text is larger than 1 GiB";
    must(inflateReset(stream) == Z_OK);
    to = scratch_alloc(scratch, capacity);
    stream->next_in = (Bytef *)(uintptr_t)from.data;
    stream->avail_in = (uInt)from.size;
    stream->next_out = to;
    stream->avail_out = (uInt)capacity;
    for (;;) {
        int code = inflate(stream, Z_NO_FLUSH);
        uint64_t used = (uint64_t)(stream->next_out - to);

        if (code == Z_STREAM_END) {
            if (!is_gzip || stream->avail_in == 0) {
                *ret_to = (struct byte_view){ to, used };
                return NULL;
            }
            must(inflateReset(stream) == Z_OK);
        } else if (code != Z_OK && code != Z_BUF_ERROR) {
            return is_gzip ? "decode_compressed: the bytes are not GZIP"
                           : "decode_compressed: the bytes are not ZLIB";
        } else if (stream->avail_out > 0) {
            return is_gzip ? "decode_compressed: the GZIP bytes are cut short"
                           : "decode_compressed: the ZLIB bytes are cut short";
        }
        if (stream->avail_out == 0) {
            if (capacity >= DECOMPRESSED_MAX)
                return "decode_compressed: the text becomes larger than 1 GiB";
            to = grow(scratch, to, used, &capacity);
            stream->next_out = to + used;
            stream->avail_out = (uInt)(capacity - used);
        }
    }
}

static tundish_status
decode_compressed_open(void *memory, const struct content_config *config, struct schema *ret_schema,
                       bool *ret_batch_wide)
{
    struct decode_compressed *state = memory;
    const char *type = spec_text(config->stage, "compression_type");

    (void)ret_batch_wide;
    state->compression = strcmp(type, "GZIP") == 0   ? GZIP
                         : strcmp(type, "ZLIB") == 0 ? ZLIB
                                                     : PLAIN;
    return decode_text_open(config, ret_schema, &state->targets);
}

static tundish_status
decode_compressed_apply(const void *memory, const struct frame *input, struct frame *output)
{
    const struct decode_compressed *state = memory;
    struct inflating inflating = { .compression = state->compression };
    int window = state->compression == GZIP ? 16 + MAX_WBITS : MAX_WBITS;

    must(inflateInit2(&inflating.stream, window) == Z_OK);
    decode_text_apply(&state->targets, input, output, decode, &inflating);
    inflateEnd(&inflating.stream);
    return TUNDISH_OK;
}

static void
decode_compressed_close(void *memory)
{
    struct decode_compressed *state = memory;

    content_targets_close(&state->targets);
}

const struct content_ops content_decode_compressed = {
    .name = "decode_compressed",
    .state_bytes = sizeof(struct decode_compressed),
    .open = decode_compressed_open,
    .apply = decode_compressed_apply,
    .close = decode_compressed_close,
};
