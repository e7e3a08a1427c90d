/* footer.h - what the end of a Parquet file says: its schema, and where each column of each row
 * group lies.
 *
 *     "PAR1" | column chunks ... | metadata | its length, 4 bytes | "PAR1"
 */
#ifndef SOURCE_PARQUET_FOOTER_H
#define SOURCE_PARQUET_FOOTER_H

#include "source/parquet/schema.h"

/* Numbers as in the format. */
enum parquet_codec {
    PARQUET_UNCOMPRESSED,
    PARQUET_SNAPPY,
    PARQUET_GZIP,
    PARQUET_LZO,
    PARQUET_BROTLI,
    PARQUET_LZ4,
    PARQUET_ZSTD,
    PARQUET_LZ4_RAW,
    PARQUET_CODECS
};

/* A column of a row group. */
struct parquet_chunk {
    uint64_t offset, bytes;  /* in the file */
    uint64_t value_count;    /* nulls, and lists without elements, included */
    uint64_t unpacked_bytes; /* as the footer says */
    uint8_t codec;
    bool is_elsewhere, is_encrypted;
};

struct parquet_row_group {
    uint64_t first_row, row_count;
};

/* The leaves that are wanted, by number. */
struct parquet_footer {
    struct parquet_schema schema;
    uint64_t row_count;
    uint32_t group_count;
    struct parquet_row_group *groups;
    uint32_t wanted_count;
    struct parquet_chunk *chunks; /* of each group, of each wanted leaf */
};

enum {
    PARQUET_TAIL_BYTES = 8,          /* of the file, which say how long the metadata are */
    PARQUET_METADATA_MAX = 64 << 20, /* larger ones are refused */
    PARQUET_CHUNKS_MAX = 1 << 24     /* wanted, in all row groups */
};

/* The length of the metadata before the file's last bytes. Fails, as all below, without naming the
 * file. */
tundish_status parquet_tail_read(const uint8_t tail[PARQUET_TAIL_BYTES], uint64_t file_bytes,
                                 uint32_t *ret_bytes);

/* Chosen once the schema is known: which leaves are wanted. Sets *ret_leaves, which the caller of
 * parquet_footer_read does not own, and *ret_count. */
struct parquet_choice {
    tundish_status (*choose)(void *context, const struct parquet_schema *schema,
                             const uint32_t **ret_leaves, uint32_t *ret_count);
    void *context;
};

tundish_status parquet_footer_read(const uint8_t *metadata, size_t bytes, uint64_t file_bytes,
                                   const struct parquet_choice *choice,
                                   struct parquet_footer *ret_footer);
void parquet_footer_close(struct parquet_footer *footer); /* accepts zeros */

const char *parquet_codec_name(uint8_t codec);

#endif
