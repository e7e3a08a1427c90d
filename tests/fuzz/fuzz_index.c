/* fuzz_index.c - any bytes as an index, with the checksums made right, so that what is behind them
 * is reached. No record may lie outside of the file. */
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/crc32c.h"
#include "core/memory.h"
#include "core/must.h"
#include "source/scan/index.h"

enum { HEADER_BYTES = 152, CRC_AT = 12, TOTAL_AT = 16, PATH_AT = 144, BODY_CRC_AT = 148 };

/* The input's own lengths where they can be, its checksums corrected. */
static void
mend(uint8_t *index, size_t bytes)
{
    uint64_t total = bytes;
    uint32_t path_bytes = load_u32(index + PATH_AT);
    uint32_t crc;

    memcpy(index + TOTAL_AT, &total, 8);
    if (path_bytes > bytes - HEADER_BYTES)
        return;
    crc = tnd_crc32c(0, index + HEADER_BYTES + path_bytes, bytes - HEADER_BYTES - path_bytes);
    memcpy(index + BODY_CRC_AT, &crc, 4);
    memset(index + CRC_AT, 0, 4);
    crc = tnd_crc32c(0, index, HEADER_BYTES + path_bytes);
    memcpy(index + CRC_AT, &crc, 4);
}

static void
walk(const struct record_list *list)
{
    struct record_reader reader;
    uint64_t words[128];
    size_t count;

    if (record_list_seek(list, 0, &reader))
        while (reader.left > 0 && record_reader_next(&reader, 0, words, 64, &count))
            for (size_t i = 0; i < count; i++)
                must(words[2 * i] <= list->end_limit &&
                     words[2 * i + 1] <= list->end_limit - words[2 * i]);
    for (uint64_t i = 0; i < list->count && i < 1000; i++)
        if (record_list_at(list, i * 7919 % list->count, 0, words))
            must(words[0] <= list->end_limit && words[1] <= list->end_limit - words[0]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct index_key key = { .path = "", .format = { .scanner = &scanner_tfrecord } };
    struct record_list list;
    uint8_t *index;

    if (bytes < HEADER_BYTES)
        return 0;
    index = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memcpy(index, data, bytes);
    mend(index, bytes);
    memcpy(&key.identity, index + 24, sizeof key.identity);
    memcpy(key.format.numbers, index + 88, sizeof key.format.numbers);
    if (index_read(index, bytes, &key, &list) == TUNDISH_OK)
        walk(&list);
    free(index);
    return 0;
}
