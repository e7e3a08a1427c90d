/* codec.c - see codec.h. */
#include "source/parquet/codec.h"

#include <brotli/decode.h>
#include <limits.h>
#include <lz4.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

const char *
parquet_codec_obstacle(uint8_t codec)
{
    if (codec == PARQUET_LZO || codec >= PARQUET_CODECS)
        return "there is no decoder for it";
    if (codec == PARQUET_LZ4)
        return "its frames differ from writer to writer; lz4_raw is read";
    return NULL;
}

static bool
unpack_gzip(struct byte_view packed, uint8_t *to, size_t unpacked_bytes)
{
    z_stream stream = { .next_in = (Bytef *)(uintptr_t)packed.data,
                        .avail_in = (uInt)packed.size,
                        .next_out = to,
                        .avail_out = (uInt)unpacked_bytes };
    int result;

    if (packed.size > UINT_MAX || unpacked_bytes > UINT_MAX ||
        inflateInit2(&stream, 15 + 32) != Z_OK) /* GZIP's head, or ZLIB's */
        return false;
    /* A page may be several members. */
    do
        result = inflate(&stream, Z_FINISH);
    while (result == Z_STREAM_END && stream.avail_in > 0 && stream.avail_out > 0 &&
           inflateReset(&stream) == Z_OK);
    inflateEnd(&stream);
    return result == Z_STREAM_END && stream.avail_out == 0;
}

bool
parquet_unpack(uint8_t codec, struct byte_view packed, uint8_t *to, size_t unpacked_bytes)
{
    size_t bytes = unpacked_bytes;

    switch (codec) {
    case PARQUET_UNCOMPRESSED:
        if (packed.size != unpacked_bytes)
            return false;
        if (unpacked_bytes > 0)
            memcpy(to, packed.data, unpacked_bytes);
        return true;
    case PARQUET_SNAPPY:
        /* Its own length is looked at first: what it writes is bounded by that. */
        return snappy_uncompressed_length((const char *)packed.data, packed.size, &bytes) ==
                   SNAPPY_OK &&
               bytes == unpacked_bytes &&
               snappy_uncompress((const char *)packed.data, packed.size, (char *)to, &bytes) ==
                   SNAPPY_OK;
    case PARQUET_GZIP:
        return unpack_gzip(packed, to, unpacked_bytes);
    case PARQUET_BROTLI:
        return BrotliDecoderDecompress(packed.size, packed.data, &bytes, to) ==
                   BROTLI_DECODER_RESULT_SUCCESS &&
               bytes == unpacked_bytes;
    case PARQUET_ZSTD:
        return ZSTD_decompress(to, unpacked_bytes, packed.data, packed.size) == unpacked_bytes;
    case PARQUET_LZ4_RAW:
        return packed.size <= INT_MAX && unpacked_bytes <= INT_MAX &&
               LZ4_decompress_safe((const char *)packed.data, (char *)to, (int)packed.size,
                                   (int)unpacked_bytes) == (int)unpacked_bytes;
    default:
        return false;
    }
}
