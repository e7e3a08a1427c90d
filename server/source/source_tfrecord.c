/* source_tfrecord.c - the records of TFRecord files.
 *
 * A record is its length (8 bytes), the length's checksum (4), the data and the data's checksum
 * (4). The scan checks lengths; a row's data are checked when the row is read. */
#include <string.h>

#include "core/crc32c.h"
#include "source/file_source.h"
#include "source/files/fetch.h"
#include "source/variable.h"

enum { CHECKSUM_BYTES = 4 };

static tundish_status
tfrecord_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    tundish_status status = file_source_open(state, config, &scanner_tfrecord);

    if (status == TUNDISH_OK)
        schema_add(ret_schema, source_column_name(config), TUNDISH_STRING);
    return status;
}

/* Checksums are masked CRC-32C: rotated and shifted by a constant, so that a checksum of data that
 * hold checksums stays a good one. */
static void
check_row(const struct source_read *read, int64_t row, struct byte_view record,
          const uint8_t *checksum)
{
    if (tnd_crc32c_mask(tnd_crc32c(0, record.data, record.size)) != load_u32(checksum))
        frame_reject(read->output, row,
                     "%s: corrupted record at %llu: the checksum of its data is wrong",
                     fetch_file_name(read, row), (unsigned long long)fetch_words(read, row)[0]);
}

/* Read small records, several with one system call. */
static tundish_status
read_together(const struct source_read *read, struct byte_view *views)
{
    tundish_status status = fetch_rows(read, CHECKSUM_BYTES, views);

    for (int64_t i = 0; i < read->count && status == TUNDISH_OK; i++) {
        views[i].size -= CHECKSUM_BYTES;
        check_row(read, i, views[i], views[i].data + views[i].size);
    }
    return status;
}

/* Read each record straight into the batch, and check it while it is in the CPU's cache.
 */
static tundish_status
read_to(const struct source_read *read, uint8_t *to, struct byte_view *views)
{
    uint8_t checksum[CHECKSUM_BYTES];
    tundish_status status = TUNDISH_OK;

    for (int64_t i = 0; i < read->count && status == TUNDISH_OK; i++) {
        views[i] = (struct byte_view){ to, reference_length(fetch_words(read, i)) };
        status = fetch_row_to(read, i, CHECKSUM_BYTES, to, checksum);
        if (status == TUNDISH_OK)
            check_row(read, i, views[i], checksum);
        to += views[i].size;
    }
    return status;
}

static tundish_status
tfrecord_read(const void *state, const struct source_read *read)
{
    struct byte_view *views =
        scratch_array(read->output->scratch, (size_t)read->count + 1, sizeof *views);
    uint64_t bytes = 0;
    uint8_t *to;
    tundish_status status;

    (void)state;
    for (int64_t i = 0; i < read->count; i++)
        bytes += reference_length(fetch_words(read, i));
    to = frame_texts(read->output, 0, bytes);
    /* A system call for each row pays only if rows are long; for short ones the copy costs less.
     * Peers send rows into a buffer of their own. */
    if (to != NULL && !fetch_needs_peers(read) && bytes >= (uint64_t)read->count * FETCH_LONG_BYTES)
        status = read_to(read, to, views);
    else
        status = read_together(read, views);
    if (status == TUNDISH_OK)
        column_set_scalars(&read->output->columns[0], read->count, views);
    return status;
}

static void
tfrecord_close(void *state)
{
    (void)state;
}

const struct source_ops source_tfrecord = {
    .name = "tfrecord",
    .order = READER_ORDER("tfrecord"),
    .shares_index = true,
    .state_bytes = sizeof(struct reader),
    .open = tfrecord_open,
    .read = tfrecord_read,
    .row_bytes = file_source_row_bytes,
    .needs_cache = file_source_needs_cache,
    .reads_files = true,
    .refers_to_records = true,
    .words = WORDS_HAVE_FILE,
    .extra_bytes = CHECKSUM_BYTES,
    .close = tfrecord_close,
};
