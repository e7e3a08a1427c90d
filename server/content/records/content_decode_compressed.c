/* content_decode_compressed.c - tf.io.decode_compressed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "content/records/decode_text.h"
#include "core/memory.h"
#include "core/memory_room.h"
#include "core/must.h"
#include "core/status.h"

/* The most that one string may become: a few bytes can stand for a thousand times as many. */
#define DECOMPRESSED_MAX (UINT64_C(1) << 30)

enum compression { PLAIN, ZLIB, GZIP };

struct decode_compressed {
    struct content_targets targets;
    enum compression compression;
    uint64_t memory_bytes; /* for what the texts that are made together become */
};

struct inflating {
    z_stream stream; /* reset for each string: its window is allocated once */
    enum compression compression;
    uint8_t *text; /* the one being made; the next uses it again */
    uint64_t text_room;
    uint64_t text_max;    /* bytes of one text */
    uint64_t memory_left; /* bytes of all */
    bool is_over;         /* there was too little */
    char problem[160];
};

/* Twice as much room, up to a byte too many, which tells that the text is too large. */
static void
grow(struct inflating *inflating)
{
    z_stream *stream = &inflating->stream;
    uint64_t used = inflating->text_room, room = 2 * used;

    inflating->text_room = room > inflating->text_max ? inflating->text_max + 1 : room;
    inflating->text = tnd_realloc(inflating->text, inflating->text_room, 1);
    stream->next_out = inflating->text + used;
    stream->avail_out = (uInt)(inflating->text_room - used);
}

static void
start(struct inflating *inflating, struct byte_view from)
{
    z_stream *stream = &inflating->stream;
    uint64_t room = 4 * from.size + 256;

    if (room > inflating->text_max)
        room = inflating->text_max + 1;
    if (room > inflating->text_room) {
        free(inflating->text);
        inflating->text = tnd_alloc(room);
        inflating->text_room = room;
    }
    must(inflateReset(stream) == Z_OK);
    stream->next_in = (Bytef *)(uintptr_t)from.data;
    stream->avail_in = (uInt)from.size;
    stream->next_out = inflating->text;
    stream->avail_out = (uInt)inflating->text_room;
}

static const char *
too_large(struct inflating *inflating)
{
    if (inflating->text_max == DECOMPRESSED_MAX)
        return "decode_compressed: the text becomes larger than 1 GiB";
    snprintf(inflating->problem, sizeof inflating->problem,
             "decode_compressed: the text becomes larger than the %llu bytes that memory_limit and "
             "max_batch_bytes leave it",
             (unsigned long long)inflating->text_max);
    return inflating->problem;
}

/* A gzip text may have several members, one behind the other; what stands behind the end of a
 * zlib one is not looked at. Both as in TensorFlow, which however hands on what it could read of a
 * text that is cut short. */
static const char *
inflate_text(struct inflating *inflating, uint64_t *ret_bytes)
{
    z_stream *stream = &inflating->stream;
    bool is_gzip = inflating->compression == GZIP;

    for (;;) {
        int code = inflate(stream, Z_NO_FLUSH);

        *ret_bytes = (uint64_t)(stream->next_out - inflating->text);
        if (*ret_bytes > inflating->text_max)
            return too_large(inflating);
        if (code == Z_STREAM_END) {
            if (!is_gzip || stream->avail_in == 0)
                return NULL;
            must(inflateReset(stream) == Z_OK);
        } else if (code != Z_OK && code != Z_BUF_ERROR) {
            return is_gzip ? "decode_compressed: the bytes are not GZIP"
                           : "decode_compressed: the bytes are not ZLIB";
        } else if (stream->avail_out > 0) {
            return is_gzip ? "decode_compressed: the GZIP bytes are cut short"
                           : "decode_compressed: the ZLIB bytes are cut short";
        }
        if (stream->avail_out == 0)
            grow(inflating);
    }
}

static const char *
decode(void *context, struct byte_view from, struct scratch *scratch, struct byte_view *ret_to)
{
    struct inflating *inflating = context;
    const char *problem;
    uint64_t bytes;
    uint8_t *to;

    if (from.size == 0 || inflating->compression == PLAIN || inflating->is_over) {
        *ret_to = from;
        return NULL;
    }
    if (from.size > DECOMPRESSED_MAX)
        return "decode_compressed: the compressed text is larger than 1 GiB";
    start(inflating, from);
    problem = inflate_text(inflating, &bytes);
    if (problem != NULL)
        return problem;
    inflating->is_over = bytes > inflating->memory_left;
    if (inflating->is_over) { /* of the batch, not of this text alone */
        *ret_to = from;
        return NULL;
    }
    inflating->memory_left -= bytes;
    to = scratch_alloc(scratch, bytes);
    memcpy(to, inflating->text, bytes);
    *ret_to = (struct byte_view){ to, bytes };
    return NULL;
}

static tundish_status
decode_compressed_open(void *memory, const struct stage_config *config, struct schema *ret_schema,
                       bool *ret_batch_wide)
{
    struct decode_compressed *state = memory;
    const char *type = spec_text(config->stage, "compression_type");
    struct tnd_memory_room room;

    (void)ret_batch_wide;
    tnd_memory_room(&room);
    state->memory_bytes = config->memory_bytes != 0 ? config->memory_bytes : room.bytes / 2;
    state->compression = strcmp(type, "GZIP") == 0   ? GZIP
                         : strcmp(type, "ZLIB") == 0 ? ZLIB
                                                     : PLAIN;
    return decode_text_open(config, ret_schema, &state->targets);
}

static tundish_status
decode_compressed_apply(const void *memory, const struct frame *input, struct frame *output)
{
    const struct decode_compressed *state = memory;
    struct inflating inflating = {
        .compression = state->compression,
        .text_max = state->memory_bytes < DECOMPRESSED_MAX ? state->memory_bytes : DECOMPRESSED_MAX,
        .memory_left = state->memory_bytes,
    };
    int window = state->compression == GZIP ? 16 + MAX_WBITS : MAX_WBITS;

    must(inflateInit2(&inflating.stream, window) == Z_OK);
    decode_text_apply(&state->targets, input, output, decode, &inflating);
    inflateEnd(&inflating.stream);
    free(inflating.text);
    if (inflating.is_over)
        return tnd_fail(TUNDISH_E_MEMORY,
                        "decode_compressed: the texts of %lld rows become larger than the %llu "
                        "bytes that there is room for: give a smaller batch_size, or raise "
                        "memory_limit and max_batch_bytes",
                        (long long)input->count, (unsigned long long)state->memory_bytes);
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
    .takes_missing = true,
    .state_bytes = sizeof(struct decode_compressed),
    .open = decode_compressed_open,
    .apply = decode_compressed_apply,
    .close = decode_compressed_close,
};
