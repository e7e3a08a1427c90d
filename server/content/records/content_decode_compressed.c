/* content_decode_compressed.c - tf.io.decode_compressed. */
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "content/records/decode_text.h"
#include "core/memory.h"
#include "core/memory_room.h"
#include "core/must.h"
#include "core/status.h"

/* The largest text: a few hostile bytes can inflate to a thousand times as many. */
#define DECOMPRESSED_MAX (UINT64_C(1) << 30)

enum compression { PLAIN, ZLIB, GZIP };

struct decode_compressed {
    struct content_targets targets;
    enum compression compression;
    uint64_t memory_bytes; /* for all texts of a call, decompressed */
};

/* A text up to this size is inflated here and copied. For a larger one the size is found first. */
enum { ROOM_BYTES = 256 << 10 };
/* Small texts ask for memory in blocks of this size. */
enum { ASK_BYTES = 64 << 10 };
/* DEFLATE's greatest ratio: a match of 258 bytes takes two bits. */
enum { RATIO_MAX = 1032 };

struct inflating {
    z_stream stream; /* reset for each string: its window is allocated once */
    enum compression compression;
    struct scratch *scratch;
    uint8_t *room;        /* ROOM_BYTES */
    uint64_t text_max;    /* bytes of one text */
    uint64_t memory_max;  /* bytes of all */
    uint64_t memory_left; /* of them */
    uint64_t asked_left;  /* of what was asked for */
    bool misled;          /* a trailer gave a wrong size */
    int64_t row_count;
    tundish_status status; /* not OK: the batch ran out of memory */
    char problem[160];
};

static const char *
too_large(struct inflating *inflating)
{
    if (inflating->text_max == DECOMPRESSED_MAX)
        return "decode_compressed: the decompressed text is larger than 1 GiB";
    snprintf(inflating->problem, sizeof inflating->problem,
             "decode_compressed: the decompressed text exceeds the %llu bytes that memory_limit "
             "and max_batch_bytes leave",
             (unsigned long long)inflating->text_max);
    return inflating->problem;
}

/* Inflate into `to`, from its start again whenever it is full: if the text is larger, only its size
 * is of use. A gzip text may have several members; bytes after the end of a zlib text are ignored.
 * Both are as in TensorFlow, which however returns the start of a text that is cut short. */
static const char *
inflate_text(struct inflating *inflating, struct byte_view from, uint8_t *to, uint64_t room,
             uint64_t *ret_bytes)
{
    z_stream *stream = &inflating->stream;
    bool is_gzip = inflating->compression == GZIP;

    *ret_bytes = 0;
    must(inflateReset(stream) == Z_OK);
    stream->next_in = (Bytef *)(uintptr_t)from.data;
    stream->avail_in = (uInt)from.size;
    stream->avail_out = 0;
    for (;;) {
        uint64_t before;
        int code;

        if (stream->avail_out == 0) {
            stream->next_out = to;
            stream->avail_out = (uInt)room;
        }
        before = stream->avail_out;
        code = inflate(stream, Z_NO_FLUSH);
        *ret_bytes += before - stream->avail_out;
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
            return is_gzip ? "decode_compressed: the GZIP bytes are truncated"
                           : "decode_compressed: the ZLIB bytes are truncated";
        }
    }
}

/* The size in a gzip trailer (of the last member, modulo 2^32), if it can be true; else ROOM_BYTES.
 * A hostile trailer costs at most memory_left. */
static uint64_t
likely_bytes(const struct inflating *inflating, struct byte_view from)
{
    uint64_t bytes = 0;

    if (inflating->compression != GZIP || inflating->misled || from.size <= ROOM_BYTES / RATIO_MAX)
        return ROOM_BYTES;
    for (size_t i = 0; i < 4; i++)
        bytes |= (uint64_t)from.data[from.size - 4 + i] << (8 * i);
    return bytes <= ROOM_BYTES || bytes > inflating->text_max || bytes > inflating->memory_left ||
                   bytes / RATIO_MAX > from.size
               ? ROOM_BYTES
               : bytes;
}

/* Take memory for a text. NULL: the batch has none left. */
static uint8_t *
take(struct inflating *inflating, uint64_t bytes)
{
    if (bytes > inflating->memory_left) {
        inflating->status =
            tnd_fail(TUNDISH_E_MEMORY,
                     "decode_compressed: the decompressed texts of %lld rows exceed %llu bytes: "
                     "use a smaller batch_size, or raise memory_limit and max_batch_bytes",
                     (long long)inflating->row_count, (unsigned long long)inflating->memory_max);
        return NULL;
    }
    if (bytes > inflating->asked_left) {
        uint64_t needed = bytes - inflating->asked_left;
        uint64_t asked = needed > ASK_BYTES ? needed : ASK_BYTES;
        tundish_status status = scratch_ask(inflating->scratch, asked);

        if (status != TUNDISH_OK && asked > needed)
            status = scratch_ask(inflating->scratch, asked = needed);
        if (status != TUNDISH_OK) {
            inflating->status = tnd_fail_while(status, "decode_compressed");
            return NULL;
        }
        inflating->asked_left += asked;
    }
    inflating->asked_left -= bytes;
    inflating->memory_left -= bytes;
    return scratch_alloc(inflating->scratch, bytes);
}

/* Inflate into room of the trailer's size, or else a second time, when the size is known. */
static const char *
make_text(struct inflating *inflating, struct byte_view from, uint8_t *made, uint64_t room,
          struct byte_view *ret_to)
{
    uint64_t bytes;
    const char *problem = inflate_text(inflating, from, made, room, &bytes);
    bool has_room = made != inflating->room;
    uint8_t *to = made;

    if (has_room && (problem != NULL || bytes != room)) {
        inflating->misled = true;
        inflating->memory_left += room;
        has_room = false;
    }
    if (problem == NULL && !has_room)
        to = take(inflating, bytes);
    if (problem != NULL || to == NULL)
        return problem;
    if (bytes > room)
        problem = inflate_text(inflating, from, to, bytes, &bytes);
    else if (to != made)
        memcpy(to, made, bytes);
    *ret_to = (struct byte_view){ to, bytes };
    return problem;
}

static const char *
decode(void *context, struct byte_view from, struct scratch *scratch, struct byte_view *ret_to)
{
    struct inflating *inflating = context;
    uint8_t *made = inflating->room;
    uint64_t room;

    (void)scratch;
    *ret_to = from;
    if (from.size == 0 || inflating->compression == PLAIN || inflating->status != TUNDISH_OK)
        return NULL;
    if (from.size > DECOMPRESSED_MAX)
        return "decode_compressed: the compressed text is larger than 1 GiB";
    room = likely_bytes(inflating, from);
    if (room > ROOM_BYTES)
        made = take(inflating, room);
    return made != NULL ? make_text(inflating, from, made, room, ret_to) : NULL;
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

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static tundish_status
decode_compressed_apply(const void *memory, const struct frame *input, struct frame *output)
{
    const struct decode_compressed *state = memory;
    uint64_t memory_max = least(state->memory_bytes, scratch_ask_most(output->scratch));
    struct inflating inflating = {
        .compression = state->compression,
        .scratch = output->scratch,
        .room = scratch_alloc(output->scratch, ROOM_BYTES),
        .text_max = least(memory_max, DECOMPRESSED_MAX),
        .memory_max = memory_max,
        .memory_left = memory_max,
        .row_count = input->count,
    };
    int window = state->compression == GZIP ? 16 + MAX_WBITS : MAX_WBITS;

    must(inflateInit2(&inflating.stream, window) == Z_OK);
    decode_text_apply(&state->targets, input, output, decode, &inflating);
    inflateEnd(&inflating.stream);
    return inflating.status;
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
