/* limit_images_raw.c - records of about 115 KB, checked and copied: limit_images_raw DIR [THREADS]
 */
#include <stdlib.h>
#include <string.h>

#include "core/crc32c.h"
#include "limit.h"

enum { BATCH_ROWS = 32, RECORD_MAX = 180000, BUFFER_BYTES = 1 << 20, SHARDS = 2 };

struct batch {
    int64_t offsets[BATCH_ROWS + 1];
    uint8_t bytes[BATCH_ROWS * RECORD_MAX];
};

/* Copy whole records to the batch; returns how many rows it has then. */
static uint32_t
take_records(struct share *share, uint32_t row)
{
    struct input *input = &share->input;

    for (;;) {
        struct batch *batch = (struct batch *)(void *)share_slot(share);
        const uint8_t *at = input->buffer + input->begin;
        size_t bytes = input->used - input->begin;
        uint64_t length;
        uint32_t crc;

        if (bytes < 12)
            return row;
        memcpy(&length, at, sizeof(length));
        if (bytes < length + 16)
            return row;
        memcpy(&crc, at + 12 + length, sizeof(crc));
        if (length > RECORD_MAX || tnd_crc32c_mask(tnd_crc32c(0, at + 12, length)) != crc)
            abort();
        memcpy(batch->bytes + batch->offsets[row], at + 12, length);
        batch->offsets[row + 1] = batch->offsets[row] + (int64_t)length;
        input->begin += length + 16;
        share->rows++;
        share->bytes += length;
        if (++row == BATCH_ROWS) {
            share->batches++;
            ((struct batch *)(void *)share_slot(share))->offsets[0] = 0;
            row = 0;
        }
    }
}

static void
pass(struct share *share)
{
    uint32_t row = 0;

    ((struct batch *)(void *)share_slot(share))->offsets[0] = 0;
    while (input_fill(&share->input))
        row = take_records(share, row);
    share->batches++;
}

int
main(int argc, char **argv)
{
    const char *folder = limit_folder(argc, argv), *paths[SHARDS];
    const struct limit limit = { sizeof(struct batch), BUFFER_BYTES, false, pass };

    for (int i = 0; i < SHARDS; i++)
        paths[i] = limit_path("%s/images-%d.tfrecord", folder, i);
    return limit_measure(&limit, paths, SHARDS, limit_threads(argc, argv));
}
