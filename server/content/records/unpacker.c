/* unpacker.c - inflate a file, member by member. */
#include "content/records/unpacker.h"

#include <stdlib.h>
#include <zlib.h>

#include "content/records/unpack_any.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/read_write.h"

enum { INPUT_BYTES = 256 << 10, GZIP_WINDOW = 15 + 16, ZLIB_WINDOW = 15, MARK_BYTES = 2 };

struct unpacker {
    int descriptor;
    enum packing packing;
    uint64_t position;      /* of the next read */
    bool in_member;         /* a member has begun and has not ended */
    struct unpack_any *any; /* PACKING_ANY: does all of the work */
    z_stream stream;
    uint8_t input[INPUT_BYTES];
};

static const char *
packing_name(enum packing packing)
{
    return packing == PACKING_GZIP ? "GZIP" : "ZLIB";
}

struct unpacker *
unpacker_open(int descriptor, enum packing packing)
{
    struct unpacker *unpacker = tnd_zalloc(1, sizeof *unpacker);
    int window = packing == PACKING_GZIP ? GZIP_WINDOW : ZLIB_WINDOW;

    unpacker->descriptor = descriptor;
    unpacker->packing = packing;
    if (packing == PACKING_ANY) {
        unpacker->any = unpack_any_open(descriptor);
        return unpacker;
    }
    must(inflateInit2(&unpacker->stream, window) == Z_OK);
    return unpacker;
}

void
unpacker_close(struct unpacker *unpacker)
{
    if (unpacker == NULL)
        return;
    if (unpacker->packing == PACKING_ANY)
        unpack_any_close(unpacker->any);
    else
        inflateEnd(&unpacker->stream);
    free(unpacker);
}

static tundish_status
read_input(struct unpacker *unpacker)
{
    size_t bytes = 0;
    int error =
        tnd_read_at(unpacker->descriptor, unpacker->input, INPUT_BYTES, unpacker->position, &bytes);

    unpacker->position += bytes;
    unpacker->stream.next_in = unpacker->input;
    unpacker->stream.avail_in = (uInt)bytes;
    return error == 0 ? TUNDISH_OK : tnd_fail_errno(error, "cannot be read");
}

static tundish_status
damaged(const struct unpacker *unpacker)
{
    uint64_t offset = unpacker->position - unpacker->stream.avail_in;

    if (offset <= MARK_BYTES)
        return tnd_fail(TUNDISH_E_DATA,
                        "it is not %s data: leave compression_type out, or set the one that it has",
                        packing_name(unpacker->packing));
    return tnd_fail(TUNDISH_E_DATA, "its %s data is damaged at byte %llu%s%s%s",
                    packing_name(unpacker->packing), (unsigned long long)offset,
                    unpacker->stream.msg == NULL ? "" : " (",
                    unpacker->stream.msg == NULL ? "" : unpacker->stream.msg,
                    unpacker->stream.msg == NULL ? "" : ")");
}

/* Inflate available input. Sets *ret_over after the last member. Output that comes together with
 * damage is dropped, as TensorFlow drops it. */
static tundish_status
inflate_on(struct unpacker *unpacker, bool *ret_over)
{
    z_stream *stream = &unpacker->stream;
    uInt room = stream->avail_out;
    tundish_status status;
    int result;

    if (stream->avail_in == 0) {
        status = read_input(unpacker);
        if (status != TUNDISH_OK)
            return status;
    }
    if (stream->avail_in == 0) {
        /* The file ends, but the member does not. */
        if (unpacker->in_member)
            return tnd_fail(TUNDISH_E_DATA, "its %s data is truncated at byte %llu",
                            packing_name(unpacker->packing),
                            (unsigned long long)unpacker->position);
        *ret_over = true;
        return TUNDISH_OK;
    }
    unpacker->in_member = true;
    result = inflate(stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
        unpacker->in_member = false;
        must(inflateReset(stream) == Z_OK);
        return TUNDISH_OK;
    }
    if (result == Z_OK || result == Z_BUF_ERROR)
        return TUNDISH_OK;
    stream->avail_out = room;
    return damaged(unpacker);
}

tundish_status
unpacker_next(struct unpacker *unpacker, uint8_t *to, size_t bytes, size_t *ret_bytes)
{
    tundish_status status = TUNDISH_OK;
    bool over = false;

    if (unpacker->packing == PACKING_ANY)
        return unpack_any_next(unpacker->any, to, bytes, ret_bytes);
    unpacker->stream.next_out = to;
    unpacker->stream.avail_out = (uInt)bytes;
    while (status == TUNDISH_OK && !over && unpacker->stream.avail_out > 0)
        status = inflate_on(unpacker, &over);
    *ret_bytes = bytes - unpacker->stream.avail_out;
    return status;
}
