/* scanner_fixed_length_record.c - header, records of one length, footer: arithmetic, unless the
 * file is packed and its size not known. */
#include "source/scan/scanner.h"

struct fixed_scan {
    uint64_t record, header, footer;
    uint64_t next; /* where the next record begins */
    uint64_t seen;
};

_Static_assert(sizeof(struct fixed_scan) <= SCANNER_STATE_BYTES, "state is too large");

static void
fixed_begin(void *state, const struct record_format *format)
{
    struct fixed_scan *scan = state;

    scan->record = (uint64_t)format->numbers[FIXED_RECORD];
    scan->header = (uint64_t)format->numbers[FIXED_HEADER];
    scan->footer = (uint64_t)format->numbers[FIXED_FOOTER];
    scan->next = scan->header;
}

/* A record is complete only when a whole footer follows it: before that its bytes may be the
 * footer. */
static tundish_status
fixed_feed(void *state, const uint8_t *data, size_t bytes, uint64_t offset,
           struct record_writer *writer)
{
    struct fixed_scan *scan = state;

    (void)data;
    scan->seen = offset + bytes;
    /* Written with subtractions, because the numbers of the pipeline file may be as large as
     * 2^63. */
    while (scan->seen >= scan->footer && scan->seen - scan->footer >= scan->next &&
           scan->seen - scan->footer - scan->next >= scan->record) {
        record_writer_add(writer, scan->next, scan->record);
        scan->next += scan->record;
    }
    return TUNDISH_OK;
}

static uint64_t
fixed_wanted(const void *state)
{
    const struct fixed_scan *scan = state;

    return scan->seen;
}

/* TensorFlow refuses such a file too, rather than return a part of a record. */
static tundish_status
check_size(uint64_t record, uint64_t header, uint64_t footer, uint64_t size)
{
    if (size < header || size - header < footer)
        return tnd_fail(
            TUNDISH_E_DATA, "its %llu bytes are fewer than a header of %llu and a footer of %llu",
            (unsigned long long)size, (unsigned long long)header, (unsigned long long)footer);
    if ((size - header - footer) % record != 0)
        return tnd_fail(TUNDISH_E_DATA,
                        "the %llu bytes between header and footer are not a multiple of "
                        "record_bytes (%llu): %llu too many",
                        (unsigned long long)(size - header - footer), (unsigned long long)record,
                        (unsigned long long)((size - header - footer) % record));
    return TUNDISH_OK;
}

static tundish_status
fixed_finish(void *state, uint64_t size, struct record_writer *writer)
{
    const struct fixed_scan *scan = state;

    (void)writer;
    return check_size(scan->record, scan->header, scan->footer, size);
}

static tundish_status
fixed_measure(const struct record_format *format, uint64_t size, struct record_list *list)
{
    uint64_t record = (uint64_t)format->numbers[FIXED_RECORD];
    uint64_t header = (uint64_t)format->numbers[FIXED_HEADER];
    uint64_t footer = (uint64_t)format->numbers[FIXED_FOOTER];
    tundish_status status = check_size(record, header, footer, size);

    if (status != TUNDISH_OK)
        return status;
    list->stride = record;
    list->first_offset = header;
    list->count = (size - header - footer) / record;
    return TUNDISH_OK;
}

const struct scanner_ops scanner_fixed_length_record = {
    .name = "fixed_length_record",
    .usual_gap = 0,
    .hash_bytes = true,
    .begin = fixed_begin,
    .feed = fixed_feed,
    .wanted = fixed_wanted,
    .finish = fixed_finish,
    .measure = fixed_measure,
};
