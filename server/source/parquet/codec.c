/* codec.c - see codec.h. */
#include "source/parquet/codec.h"

#include <brotli/decode.h>
#include <libdeflate.h>
#include <limits.h>
#include <lz4.h>
#include <snappy-c.h>
#include <zstd.h>

const char *
parquet_codec_obstacle(uint8_t codec)
{
    if (codec == PARQUET_LZO || codec >= PARQUET_CODECS)
        return "there is no decoder for it";
    return NULL;
}

static bool
unpack_lz4(struct byte_view packed, uint8_t *to, size_t unpacked_bytes)
{
    return packed.size <= INT_MAX && unpacked_bytes <= INT_MAX &&
           LZ4_decompress_safe((const char *)packed.data, (char *)to, (int)packed.size,
                               (int)unpacked_bytes) == (int)unpacked_bytes;
}

/* Take a length, highest byte first. */
static bool
take_length(struct byte_view *from, size_t *ret_length)
{
    if (from->size < sizeof(uint32_t))
        return false;
    *ret_length = __builtin_bswap32(load_u32(from->data));
    from->data += sizeof(uint32_t);
    from->size -= sizeof(uint32_t);
    return true;
}

/* One block of Hadoop's: pieces after their packed lengths, until there are `bytes`. */
static bool
unpack_hadoop_block(struct byte_view *from, uint8_t *to, size_t bytes)
{
    while (bytes > 0) {
        size_t packed_bytes;
        int got;

        if (!take_length(from, &packed_bytes) || packed_bytes > from->size ||
            packed_bytes > INT_MAX || bytes > INT_MAX)
            return false;
        got = LZ4_decompress_safe((const char *)from->data, (char *)to, (int)packed_bytes,
                                  (int)bytes);
        if (got <= 0)
            return false;
        from->data += packed_bytes;
        from->size -= packed_bytes;
        to += got;
        bytes -= (size_t)got;
    }
    return true;
}

/* The codec that was called lz4 first: Java writes Hadoop's blocks, each after its length, and
 * C++ wrote a bare block. Nothing but the bytes says which. */
static bool
unpack_old_lz4(struct byte_view packed, uint8_t *to, size_t unpacked_bytes)
{
    struct byte_view from = packed;
    size_t done = 0, bytes;

    while (from.size > 0 && take_length(&from, &bytes) && bytes <= unpacked_bytes - done &&
           unpack_hadoop_block(&from, to + done, bytes)) {
        done += bytes;
        if (done == unpacked_bytes && from.size == 0)
            return true;
    }
    return unpack_lz4(packed, to, unpacked_bytes);
}

/* A page may be several members, each with GZIP's head or ZLIB's. */
static bool
unpack_gzip(struct byte_view packed, uint8_t *to, size_t unpacked_bytes)
{
    static const uint8_t gzip[] = { 0x1f, 0x8b };
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    bool is_good = decompressor != NULL;
    size_t used, made;

    do {
        bool is_gzip = packed.size >= sizeof gzip && memcmp(packed.data, gzip, sizeof gzip) == 0;

        is_good = is_good &&
                  (is_gzip ? libdeflate_gzip_decompress_ex : libdeflate_zlib_decompress_ex)(
                      decompressor, packed.data, packed.size, to, unpacked_bytes, &used, &made) ==
                      LIBDEFLATE_SUCCESS;
        if (is_good) {
            packed.data += used;
            packed.size -= used;
            to += made;
            unpacked_bytes -= made;
        }
    } while (is_good && packed.size > 0 && unpacked_bytes > 0);
    libdeflate_free_decompressor(decompressor);
    return is_good && unpacked_bytes == 0;
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
    case PARQUET_LZ4:
        return unpack_old_lz4(packed, to, unpacked_bytes);
    case PARQUET_LZ4_RAW:
        return unpack_lz4(packed, to, unpacked_bytes);
    default:
        return false;
    }
}
