/* page.h - the head of a page. */
#ifndef SOURCE_PARQUET_PAGE_H
#define SOURCE_PARQUET_PAGE_H

#include "core/status.h"
#include "source/parquet/thrift.h"

/* Numbers as in the format. */
enum parquet_page_type {
    PARQUET_DATA_PAGE,
    PARQUET_INDEX_PAGE,
    PARQUET_DICTIONARY_PAGE,
    PARQUET_DATA_PAGE_V2,
};

enum parquet_encoding {
    PARQUET_PLAIN = 0,
    PARQUET_PLAIN_DICTIONARY = 2,
    PARQUET_RLE = 3,
    PARQUET_BIT_PACKED = 4, /* of levels, long ago */
    PARQUET_DELTA_BINARY_PACKED = 5,
    PARQUET_DELTA_LENGTH_BYTE_ARRAY = 6,
    PARQUET_DELTA_BYTE_ARRAY = 7,
    PARQUET_RLE_DICTIONARY = 8,
    PARQUET_BYTE_STREAM_SPLIT = 9,
};

enum { PARQUET_PAGE_MAX = 1 << 30 }; /* bytes of a page, packed or not */

struct parquet_page {
    int64_t type, encoding;
    uint32_t packed_bytes, unpacked_bytes, value_count;
    bool has_crc;
    uint32_t crc;

    /* Version 2: levels lie before the values, unpacked; and the values may be as they are. */
    uint32_t repetition_bytes, definition_bytes;
    bool is_packed;
    int64_t definition_encoding, repetition_encoding; /* version 1 */
};

/* Read a page's head from the bytes at hand; *ret_bytes: its length. Fails without naming the
 * file. */
tundish_status parquet_page_read(struct byte_view bytes, struct parquet_page *ret_page,
                                 size_t *ret_bytes);

#endif
