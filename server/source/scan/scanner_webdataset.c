/* scanner_webdataset.c - the samples of a tar: each from its first member's header to its last
 * member's end.
 *
 * The walk reads headers only. Nothing that follows a damaged header can be trusted, and a sample
 * that ends there may lack members, so it is not one.
 */
#include "source/scan/samples.h"
#include "source/scan/scanner.h"

struct webdataset_scan {
    struct tar_walker walker;
    const struct sample_columns *columns;
    uint64_t begin, end;   /* of the current sample */
    uint64_t data_end;     /* of the last member of any kind */
    uint64_t columns_seen; /* bit i: the sample has column i */
    uint32_t key_bytes;
    bool in_sample;
    uint8_t key[TAR_NAME_MAX];
};

_Static_assert(sizeof(struct webdataset_scan) <= SCANNER_STATE_BYTES, "state is too large");

static void
webdataset_begin(void *state, const struct record_format *format)
{
    struct webdataset_scan *scan = state;

    scan->columns = format->samples;
}

static tundish_status
end_sample(struct webdataset_scan *scan, struct record_writer *writer)
{
    /* A stage has 1 to 64 columns, so the shift is defined. */
    uint64_t all = scan->columns == NULL ? 0 : ~UINT64_C(0) >> (64 - scan->columns->count);

    /* A damaged header ends the scan before this is called, so an incomplete sample is never
     * added. */
    if (!scan->in_sample)
        return TUNDISH_OK;
    scan->in_sample = false;
    if (scan->columns != NULL && scan->columns->skip_missing && scan->columns_seen != all)
        return TUNDISH_OK;
    if (scan->end - scan->begin > RECORD_BYTES_MAX)
        return scanner_too_long(scan->begin, scan->end - scan->begin);
    record_writer_add(writer, scan->begin, scan->end - scan->begin);
    return TUNDISH_OK;
}

static void
note_columns(struct webdataset_scan *scan, struct byte_view extension)
{
    const struct sample_columns *columns = scan->columns;

    for (uint32_t i = 0; columns != NULL && i < columns->count; i++) {
        uint32_t found = sample_extension(columns, columns->columns[i].first, extension);

        /* The first extension of a column that a sample has counts; here it is enough that there is
         * one. */
        if (found < columns->columns[i].first + columns->columns[i].extension_count)
            scan->columns_seen |= UINT64_C(1) << i;
    }
}

static tundish_status
take_member(struct webdataset_scan *scan, const struct tar_member *member,
            struct record_writer *writer)
{
    struct byte_view key, extension;
    tundish_status status = TUNDISH_OK;
    bool is_same;

    scan->data_end = member->data + member->size;
    if (!sample_name(member, &key, &extension))
        return TUNDISH_OK;
    is_same =
        scan->in_sample && bytes_are_equal(key, (struct byte_view){ scan->key, scan->key_bytes });
    /* A link is not a member of it, but the sentence about one that is missing names it. */
    if (member->is_link) {
        scan->end = is_same ? member->data : scan->end;
        return TUNDISH_OK;
    }
    /* Members of one sample are next to each other; the same key again later on is another
     * sample. */
    if (!is_same) {
        status = end_sample(scan, writer);
        scan->in_sample = true;
        scan->begin = member->begin;
        scan->columns_seen = 0;
        scan->key_bytes = (uint32_t)key.size;
        memcpy(scan->key, key.data, key.size);
    }
    scan->end = scan->data_end;
    note_columns(scan, extension);
    return status;
}

static tundish_status
webdataset_feed(void *state, const uint8_t *data, size_t bytes, uint64_t offset,
                struct record_writer *writer)
{
    struct webdataset_scan *scan = state;
    bool found = true;
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK && found) {
        struct tar_member member;

        status = tar_walk(&scan->walker, data, bytes, offset, &member, &found);
        if (status == TUNDISH_OK && found)
            status = take_member(scan, &member, writer);
    }
    writer->hash = scan->walker.hash;
    return status;
}

static uint64_t
webdataset_wanted(const void *state)
{
    const struct webdataset_scan *scan = state;

    return scan->walker.wanted;
}

static tundish_status
webdataset_finish(void *state, uint64_t size, struct record_writer *writer)
{
    struct webdataset_scan *scan = state;
    tundish_status status =
        size == 0
            ? tnd_fail(TUNDISH_E_DATA, "the file is empty, and no tar archive is: was it cut?")
            : tar_finish(&scan->walker, size, scan->data_end);

    return status == TUNDISH_OK ? end_sample(scan, writer) : status;
}

static const int64_t usual_numbers[3] = { 0 };

const struct scanner_ops scanner_webdataset = {
    .name = "webdataset",
    .usual_numbers = usual_numbers,
    .usual_gap = 0,
    .hash_bytes = false,
    .may_be_packed = true,
    .jump_bytes = TAR_BLOCK_BYTES,
    .begin = webdataset_begin,
    .feed = webdataset_feed,
    .wanted = webdataset_wanted,
    .finish = webdataset_finish,
    .measure = NULL,
};
