/* fetch.c - rows that lie near each other in a file are read together; small ones that do not, by
 * way of the block cache.
 *
 * Rows that come as they lie in the file, as a rule those of streams without a shuffle, and of
 * windows that overlap, are grouped as they come. Others are sorted by position first: a shuffled
 * window of a file still has neighbours.
 */
#include "source/files/fetch.h"

#include "core/must.h"
#include "source/files/block_cache.h"
#include "source/files/files_private.h"
#include "source/peer/peer_ahead.h"
#include "source/scan/scan.h"

enum {
    READ_BYTES_MAX = 1 << 20, /* longer only for a single row */
    AHEAD = 8,                /* rows between the prefetch of one and its copy */
    GAP_BYTES = 512,          /* copying these costs as much as going on to another row */
    GROUP_ROWS = 16           /* of a read, on average, where sorting gains little */
};

/* A row to be read: where it lies, and which it is. */
struct wanted {
    uint64_t offset;
    uint32_t file, bytes;
    int64_t row;
};

static struct wanted
wanted_of(const struct source_read *read, uint32_t extra, int64_t row)
{
    const uint64_t *words = fetch_words(read, row);

    return (struct wanted){
        .offset = words[0],
        .file = reference_file(words),
        .bytes = reference_length(words) + extra,
        .row = row,
    };
}

static inline bool
lies_before(const struct wanted *row, const struct wanted *other)
{
    return row->file != other->file ? row->file < other->file : row->offset < other->offset;
}

/* Radix sort by position. Only four or five of the twelve bytes of file and offset differ among the
 * rows of a part, so sorting by one byte after the other takes a third of the time that comparing
 * rows does. */

static inline uint8_t
byte_of(uint32_t file, uint64_t offset, unsigned which)
{
    return (uint8_t)(which < 8 ? offset >> 8 * which : file >> 8 * (which - 8));
}

/* A stable counting sort by one byte. */
static void
sort_by_byte(const struct wanted *rows, size_t count, unsigned which, struct wanted *ret_rows)
{
    size_t next[256] = { 0 }, begin = 0;

    for (size_t i = 0; i < count; i++)
        next[byte_of(rows[i].file, rows[i].offset, which)]++;
    for (size_t value = 0; value < 256; value++) {
        size_t equal = next[value];

        next[value] = begin;
        begin += equal;
    }
    for (size_t i = 0; i < count; i++)
        ret_rows[next[byte_of(rows[i].file, rows[i].offset, which)]++] = rows[i];
}

/* Sort the rows, lowest byte first. Returns the array that has the result, `rows` or `spare`. */
static struct wanted *
sort_by_position(struct wanted *rows, struct wanted *spare, size_t count)
{
    uint32_t files = 0; /* bits in which they differ */
    uint64_t offsets = 0;

    for (size_t i = 1; i < count; i++) {
        files |= rows[i].file ^ rows[0].file;
        offsets |= rows[i].offset ^ rows[0].offset;
    }
    for (unsigned which = 0; which < 12; which++) {
        struct wanted *sorted = spare;

        if (byte_of(files, offsets, which) == 0)
            continue;
        sort_by_byte(rows, count, which, sorted);
        spare = rows;
        rows = sorted;
    }
    return rows;
}

/* Does `next` go into the read that begins at `first` and so far ends at `end`? */
static inline bool
joins_read(const struct wanted *first, uint64_t end, const struct wanted *next)
{
    return next->file == first->file && next->offset >= first->offset &&
           next->offset <= end + GAP_BYTES &&
           (next->offset + next->bytes <= end ||
            next->offset + next->bytes - first->offset <= READ_BYTES_MAX);
}

/* Do they come in groups of many that overlap, as those of windows? Then they need no order. */
static bool
come_in_groups(const struct wanted *rows, size_t count)
{
    size_t first = 0, groups = 0;
    uint64_t end = 0, bytes = 0, read_bytes = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t own_end = rows[i].offset + rows[i].bytes;

        bytes += rows[i].bytes;
        if (groups > 0 && joins_read(&rows[first], end, &rows[i])) {
            read_bytes += own_end > end ? own_end - end : 0;
            end = own_end > end ? own_end : end;
            continue;
        }
        if (++groups * GROUP_ROWS > count)
            return false;
        first = i;
        end = own_end;
        read_bytes += rows[i].bytes;
    }
    return bytes >= 2 * read_bytes;
}

/* Small pieces come from the cache, if the file is large enough for that to be worth it. */
static tundish_status
read_bytes(const struct source_read *read, struct source_file *file, void *to, size_t bytes,
           uint64_t offset)
{
    struct block_cache *cache = files_block_cache(read->files);

    if (bytes == 0 || (bytes <= BLOCK_ROW_BYTES && file->identity.size >= BLOCK_FILE_BYTES &&
                       block_cache_read(cache, file, to, bytes, offset)))
        return TUNDISH_OK;
    return file_read(file, to, bytes, offset);
}

/* Bytes [begin, end) of a file, in scratch. */
static tundish_status
read_to_scratch(const struct source_read *read, uint32_t file, uint64_t begin, uint64_t end,
                uint8_t **ret_bytes)
{
    uint8_t *bytes = scratch_alloc(read->output->scratch, (size_t)(end - begin));
    struct source_file *found = files_file(read->files, file);
    tundish_status status;

    must(found != NULL);
    status = read_bytes(read, found, bytes, (size_t)(end - begin), begin);
    if (status != TUNDISH_OK)
        return status;
    count_up(&files_services(read->files)->counters.bytes_read, end - begin);
    *ret_bytes = bytes;
    return TUNDISH_OK;
}

static tundish_status
read_group(const struct source_read *read, const struct wanted *group, size_t count, uint64_t end,
           struct byte_view *ret_views)
{
    uint64_t begin = group[0].offset;
    uint8_t *bytes;
    tundish_status status = read_to_scratch(read, group[0].file, begin, end, &bytes);

    for (size_t i = 0; i < count && status == TUNDISH_OK; i++)
        ret_views[group[i].row] =
            (struct byte_view){ bytes + (group[i].offset - begin), group[i].bytes };
    return status;
}

/* Is each row as long as the first, and begins where the one before ends? Records of one length do
 * so, in the order of their file. */
static bool
are_one_stretch(const struct source_read *read)
{
    const uint64_t *first = fetch_words(read, 0);
    uint64_t bytes = reference_length(first), offset = first[0];

    if (bytes == 0 || (uint64_t)read->count > READ_BYTES_MAX / bytes)
        return false;
    for (int64_t i = 1; i < read->count; i++) {
        const uint64_t *words = fetch_words(read, i);

        offset += bytes;
        if (words[0] != offset || words[1] != first[1])
            return false;
    }
    return true;
}

static tundish_status
fetch_stretch(const struct source_read *read, struct byte_view *ret_views)
{
    const uint64_t *words = fetch_words(read, 0);
    uint64_t bytes = reference_length(words), count = (uint64_t)read->count;
    uint8_t *at;
    tundish_status status =
        read_to_scratch(read, reference_file(words), words[0], words[0] + count * bytes, &at);

    for (uint64_t i = 0; i < count && status == TUNDISH_OK; i++, at += bytes)
        ret_views[i] = (struct byte_view){ at, bytes };
    return status;
}

static inline void
look_ahead(const struct source_read *read, const struct wanted *row)
{
    const struct source_file *file = files_file(read->files, row->file);

    if (row->bytes <= BLOCK_ROW_BYTES && file != NULL)
        block_cache_prefetch(files_block_cache(read->files), file, row->bytes, row->offset);
}

static bool
is_elsewhere(const struct source_read *read, uint32_t file)
{
    const struct source_file *found = files_file(read->files, file);

    must(found != NULL);
    return found->peers != NULL;
}

bool
fetch_needs_peers(const struct source_read *read)
{
    for (int64_t i = 0; files_peers(read->files) != NULL && i < read->count; i++)
        if (is_elsewhere(read, reference_file(fetch_words(read, i))))
            return true;
    return false;
}

static struct peer_row
peer_row_of(const struct source_read *read, const struct wanted *wanted)
{
    return (struct peer_row){ files_file(read->files, wanted->file), wanted->offset,
                              wanted->bytes };
}

/* Find for each row the answer that it comes with. NULL: it has to be asked for now, as where
 * content decides order. Returns the rows that are asked for now. */
static struct peer_rows *
find_or_ask(const struct source_read *read, const struct wanted *rows, size_t count,
            const struct peer_held *held, struct peer_rows **ret_where)
{
    struct peer_row *missing = scratch_array(read->output->scratch, count + 1, sizeof *missing);
    size_t missing_count = 0;

    for (size_t i = 0; i < count; i++) {
        struct peer_row row = peer_row_of(read, &rows[i]);

        ret_where[i] = peer_held_find(held, &row);
        if (ret_where[i] == NULL)
            missing[missing_count++] = row;
    }
    return missing_count > 0 ? peer_ask(files_peers(read->files), missing, missing_count) : NULL;
}

static tundish_status
fetch_from_peers(const struct source_read *read, const struct wanted *rows, size_t count,
                 struct byte_view *ret_views)
{
    struct scratch *scratch = read->output->scratch;
    struct peer_ahead *ahead = files_peer_ahead(read->files);
    struct peer_rows **where = scratch_array(scratch, count + 1, sizeof *where);
    struct peer_rows *asked_now, *last = NULL;
    struct peer_held held;
    tundish_status status = TUNDISH_OK;

    peer_ahead_hold(ahead, scratch, &held);
    asked_now = find_or_ask(read, rows, count, &held, where);
    /* Rows are copied to scratch, because the answer is freed with its step. */
    for (size_t i = 0; i < count && status == TUNDISH_OK; i++) {
        struct peer_row row = peer_row_of(read, &rows[i]);
        struct peer_rows *from = where[i] != NULL ? where[i] : asked_now;
        uint8_t *bytes = scratch_alloc(scratch, row.bytes);

        if (from != last)
            status = peer_rows_wait(from);
        last = from;
        if (status == TUNDISH_OK)
            memcpy(bytes, peer_rows_find(from, &row), row.bytes);
        ret_views[rows[i].row] = (struct byte_view){ bytes, row.bytes };
    }
    peer_rows_close(asked_now);
    peer_ahead_release(ahead, &held);
    return status;
}

/* Move the rows of other nodes to the end, and keep the order of the others. Returns how many
 * others there are. */
static size_t
put_peers_last(const struct source_read *read, struct wanted *rows, size_t count)
{
    struct wanted *peers = scratch_array(read->output->scratch, count + 1, sizeof *peers);
    size_t near_count = 0, peer_count = 0;

    for (size_t i = 0; i < count; i++)
        if (is_elsewhere(read, rows[i].file))
            peers[peer_count++] = rows[i];
        else
            rows[near_count++] = rows[i];
    memcpy(rows + near_count, peers, peer_count * sizeof *peers);
    return near_count;
}

static tundish_status
fetch_each(const struct source_read *read, uint32_t extra, struct byte_view *ret_views)
{
    size_t count = (size_t)read->count;
    struct wanted *rows = scratch_array(read->output->scratch, count + 1, sizeof *rows);
    bool is_sorted = true;
    tundish_status status = TUNDISH_OK;

    for (size_t i = 0; i < count; i++) {
        rows[i] = wanted_of(read, extra, (int64_t)i);
        is_sorted &= i == 0 || !lies_before(&rows[i], &rows[i - 1]);
    }
    /* Rows of other nodes first: the network is the longer wait, and their bytes were asked for
     * ahead. */
    if (files_peers(read->files) != NULL) {
        size_t near_count = put_peers_last(read, rows, count);

        if (near_count < count)
            status = fetch_from_peers(read, rows + near_count, count - near_count, ret_views);
        count = near_count;
    }
    is_sorted = is_sorted || come_in_groups(rows, count);
    if (!is_sorted)
        rows = sort_by_position(rows, scratch_array(read->output->scratch, count, sizeof *rows),
                                count);
    for (size_t i = 0; i < count && i < AHEAD && !is_sorted; i++)
        look_ahead(read, &rows[i]);
    for (size_t i = 0; i < count && status == TUNDISH_OK;) {
        /* A read grows over gaps that cost less to copy than another read would. Rows may overlap,
         * and one row may be wanted twice. */
        uint64_t end = rows[i].offset + rows[i].bytes;
        size_t next = i + 1;

        for (; next < count && joins_read(&rows[i], end, &rows[next]); next++)
            if (rows[next].offset + rows[next].bytes > end)
                end = rows[next].offset + rows[next].bytes;
        for (size_t k = i + AHEAD; k < next + AHEAD && k < count && !is_sorted; k++)
            look_ahead(read, &rows[k]);
        status = read_group(read, &rows[i], next - i, end, ret_views);
        i = next;
    }
    return status;
}

tundish_status
fetch_rows(const struct source_read *read, uint32_t extra, struct byte_view *ret_views)
{
    bool is_stretch =
        extra == 0 && read->count > 1 && files_peers(read->files) == NULL && are_one_stretch(read);
    tundish_status status =
        is_stretch ? fetch_stretch(read, ret_views) : fetch_each(read, extra, ret_views);

    count_up(&files_services(read->files)->counters.rows_read, (uint64_t)read->count);
    return status;
}

tundish_status
fetch_row_to(const struct source_read *read, int64_t row, uint32_t extra, void *to, void *ret_extra)
{
    const uint64_t *words = fetch_words(read, row);
    struct source_file *file = files_file(read->files, reference_file(words));

    must(file != NULL && file->peers == NULL);
    return file_read_apart(file, to, reference_length(words), ret_extra, extra, words[0]);
}

const char *
fetch_file_name(const struct source_read *read, int64_t row)
{
    const struct source_file *file =
        files_file(read->files, reference_file(fetch_words(read, row)));

    must(file != NULL);
    return file->name;
}
