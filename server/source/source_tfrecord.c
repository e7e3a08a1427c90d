/* source_tfrecord.c - the records of TFRecord files, their checksums checked. */
#include <string.h>

#include "core/crc32c.h"
#include "source/fetch.h"
#include "source/reader.h"
#include "source/variable.h"

enum { CHECKSUM_BYTES = 4 };

static tundish_status
tfrecord_open(void *state, const struct content_config *config, struct schema *ret_schema)
{
    tundish_status status = reader_open(state, config, &scanner_tfrecord);

    if (status == TUNDISH_OK)
        schema_add(ret_schema, source_column_name(config), TUNDISH_STRING);
    return status;
}

static tundish_status
tfrecord_read(const void *state, const struct source_read *read)
{
    struct byte_view *views =
        scratch_array(read->output->scratch, (size_t)read->count + 1, sizeof *views);
    tundish_status status = fetch_rows(read, CHECKSUM_BYTES, views);

    (void)state;
    if (status != TUNDISH_OK)
        return status;
    for (int64_t i = 0; i < read->count; i++) {
        struct byte_view *view = &views[i];

        view->size -= CHECKSUM_BYTES;
        if (tnd_crc32c_mask(tnd_crc32c(0, view->data, view->size)) !=
            load_u32(view->data + view->size))
            frame_reject(read->output, i,
                         "%s: corrupted record at %llu: the checksum of its data is wrong",
                         fetch_file_name(read, i), (unsigned long long)fetch_words(read, i)[0]);
    }
    column_set_scalars(&read->output->columns[0], read->count, views);
    return TUNDISH_OK;
}

static void
tfrecord_close(void *state)
{
    (void)state;
}

const struct source_ops source_tfrecord = {
    .name = "tfrecord",
    .order = READER_ORDER("tfrecord"),
    .state_bytes = sizeof(struct reader),
    .open = tfrecord_open,
    .read = tfrecord_read,
    .reads_files = true,
    .close = tfrecord_close,
};
