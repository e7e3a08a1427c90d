/* rejections.c - see rejections.h. */
#include "source/rows/rejections.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/bytes.h"
#include "source/scan/records.h"

/* A record is this, then "row 7: why". */
static const char mark[] = "rejected ";

enum { MARK_BYTES = sizeof mark - 1, HEAD_BYTES = REJECTION_WORD_BYTES + sizeof(uint64_t) };

tundish_status
rejections_open(struct rejections *rejections)
{
    uint8_t drawn[REJECTION_WORD_BYTES / 2];

    if (getrandom(drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn)
        return tnd_fail_errno(errno, "cannot draw a random number");
    for (size_t i = 0; i < sizeof drawn; i++)
        snprintf(rejections->word + 2 * i, 3, "%02x", drawn[i]);
    return TUNDISH_OK;
}

void
rejections_close(struct rejections *rejections)
{
    free(rejections->record.data);
}

enum row_fit
rejection_measure(const struct rejections *rejections, struct byte_view bytes, bool is_all,
                  size_t *ret_bytes)
{
    size_t known = bytes.size < REJECTION_WORD_BYTES ? bytes.size : REJECTION_WORD_BYTES;
    uint64_t text;

    *ret_bytes = 0;
    if (memcmp(bytes.data, rejections->word, known) != 0 ||
        (is_all && known < REJECTION_WORD_BYTES))
        return ROW_WHOLE;
    *ret_bytes = HEAD_BYTES;
    if (bytes.size < HEAD_BYTES)
        return ROW_PARTIAL;
    text = load_u64(bytes.data + REJECTION_WORD_BYTES);
    if (text > REJECTION_TEXT_MAX) {
        tnd_fail(TUNDISH_E_DATA,
                 "it is rejected with a text of %" PRIu64 " bytes; at most %d are allowed", text,
                 (int)REJECTION_TEXT_MAX);
        return ROW_BAD;
    }
    *ret_bytes += text;
    return bytes.size < *ret_bytes ? ROW_PARTIAL : ROW_WHOLE;
}

static bool
is_row(const struct schema *schema, struct byte_view bytes)
{
    size_t whole = 0;

    return row_codec_measure(schema, bytes.data, bytes.size, &whole) == ROW_WHOLE &&
           whole == bytes.size;
}

void
rejection_record(struct rejections *rejections, const struct schema *schema, struct byte_view bytes,
                 uint64_t row)
{
    struct row_bytes *record = &rejections->record;
    char number[32];
    int number_bytes = snprintf(number, sizeof number, "row %" PRIu64 ": ", row);
    size_t text;

    record->used = 0;
    row_bytes_add(record, mark, MARK_BYTES);
    row_bytes_add(record, number, (size_t)number_bytes);
    text = record->used;
    row_bytes_add(record, bytes.data + HEAD_BYTES, bytes.size - HEAD_BYTES);
    /* The text may go to a terminal. */
    for (size_t i = text; i < record->used; i++)
        if (record->data[i] < ' ' || record->data[i] == 0x7F)
            record->data[i] = ' ';
    /* The beginning of a row says how long it is, so a row with a byte more is none. */
    if (is_row(schema, (struct byte_view){ record->data, record->used }))
        row_bytes_add(record, " ", 1);
}

struct byte_view
rejection_sentence(const struct schema *schema, struct byte_view record)
{
    if (record.size <= MARK_BYTES || memcmp(record.data, mark, MARK_BYTES) != 0 ||
        is_row(schema, record))
        return (struct byte_view){ 0 };
    return (struct byte_view){ record.data + MARK_BYTES, record.size - MARK_BYTES };
}
