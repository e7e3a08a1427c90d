/* scanner_tfrecord.c - u64 length | u32 CRC of the length | data | u32 CRC of the data.
 *
 * The walk reads 16 bytes for each record: the CRC after the data, and the header after that. The
 * data is checked when it is read.
 */
#include <string.h>

#include "core/bytes.h"
#include "core/crc32c.h"
#include "core/hash_farm.h"
#include "source/scan/scanner.h"

enum { HEADER_BYTES = 12, FOOTER_BYTES = 4 };

struct tfrecord_scan {
    uint64_t record; /* where the record at hand begins */
    uint64_t length; /* of its data, once the header is there */
    uint64_t wanted; /* the next byte of header or footer */
    uint32_t have;   /* bytes of it that are in `part` */
    bool in_body;    /* the header has been read, the footer has not */
    uint8_t part[HEADER_BYTES];
};

_Static_assert(sizeof(struct tfrecord_scan) <= SCANNER_STATE_BYTES, "state is too large");

static void
tfrecord_begin(void *state, const struct record_format *format)
{
    (void)state;
    (void)format;
}

/* The checksum of the length is what tells a TFRecord file from any other. */
static tundish_status
take_header(struct tfrecord_scan *scan, const uint8_t *header)
{
    scan->length = load_u64(header);
    if (tnd_crc32c_mask(tnd_crc32c(0, header, 8)) != load_u32(header + 8))
        return tnd_fail(TUNDISH_E_DATA,
                        "corrupted record at %llu: the checksum of its length is wrong (is this a "
                        "TFRecord file, with this compression_type?)",
                        (unsigned long long)scan->record);
    scan->wanted = scan->record + HEADER_BYTES;
    if (scan->length > INT64_MAX - scan->wanted) /* it ends after any file */
        scan->wanted = INT64_MAX;
    else
        scan->wanted += scan->length;
    scan->in_body = true;
    return TUNDISH_OK;
}

static tundish_status
take_footer(struct tfrecord_scan *scan, const uint8_t *footer, struct record_writer *writer)
{
    if (scan->length > RECORD_BYTES_MAX)
        return scanner_too_long(scan->record, scan->length);
    /* The CRC of the data stands for the data, so a file is identified without reading all of
     * it. */
    writer->hash = tnd_hash_farm_cat(writer->hash, scan->length << 32 ^ load_u32(footer));
    record_writer_add(writer, scan->record + HEADER_BYTES, scan->length);
    scan->record += HEADER_BYTES + scan->length + FOOTER_BYTES;
    scan->wanted = scan->record;
    scan->in_body = false;
    return TUNDISH_OK;
}

static tundish_status
tfrecord_feed(void *state, const uint8_t *data, size_t bytes, uint64_t offset,
              struct record_writer *writer)
{
    struct tfrecord_scan *scan = state;
    const uint8_t *end = data + bytes;
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK) {
        uint32_t whole = scan->in_body ? FOOTER_BYTES : HEADER_BYTES;
        uint64_t from = scan->wanted - offset;
        const uint8_t *at;
        uint32_t take = whole - scan->have;

        if (from >= bytes)
            break;
        at = data + from;
        if ((size_t)(end - at) < take || scan->have > 0) { /* it lies across two reads */
            if ((size_t)(end - at) < take)
                take = (uint32_t)(end - at);
            memcpy(scan->part + scan->have, at, take);
            scan->have += take;
            scan->wanted += take;
            if (scan->have < whole)
                break;
            at = scan->part;
            scan->have = 0;
        }
        status = scan->in_body ? take_footer(scan, at, writer) : take_header(scan, at);
    }
    return status;
}

static uint64_t
tfrecord_wanted(const void *state)
{
    const struct tfrecord_scan *scan = state;

    return scan->wanted;
}

/* A file that ends anywhere but between two records is an error. TensorFlow skips an incomplete
 * header and so loses the rest silently. */
static tundish_status
tfrecord_finish(void *state, uint64_t size, struct record_writer *writer)
{
    const struct tfrecord_scan *scan = state;

    (void)writer;
    if (!scan->in_body && scan->have == 0 && scan->wanted >= size)
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_DATA, "truncated record at %llu: the file ends at %llu",
                    (unsigned long long)scan->record, (unsigned long long)size);
}

static const int64_t usual_numbers[3] = { 0 };

const struct scanner_ops scanner_tfrecord = {
    .name = "tfrecord",
    .usual_numbers = usual_numbers,
    .usual_gap = HEADER_BYTES + FOOTER_BYTES,
    .hash_bytes = false,
    .jump_bytes = FOOTER_BYTES + HEADER_BYTES,
    .begin = tfrecord_begin,
    .feed = tfrecord_feed,
    .wanted = tfrecord_wanted,
    .finish = tfrecord_finish,
    .measure = NULL,
};
