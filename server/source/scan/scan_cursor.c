/* scan_cursor.c - the records that a scan has found, read while it goes on. */
#include "source/files/file_remote.h"
#include "source/scan/scan_private.h"

void
scan_cursor_open(struct scan_cursor *cursor, struct source_file *file, const _Atomic int *stop)
{
    struct scan *scan = file->scan;

    *cursor = (struct scan_cursor){ .scan = scan, .stop = stop };
    pthread_mutex_lock(&scan->lock);
    if (scan->user_count == 0)
        scan_try_again(scan);
    scan->user_count++;
    scan_request(scan, SCAN_LOOKAHEAD);
    pthread_mutex_unlock(&scan->lock);
}

void
scan_cursor_close(struct scan_cursor *cursor)
{
    struct scan *scan = cursor->scan;

    if (scan == NULL)
        return;
    pthread_mutex_lock(&scan->lock);
    /* The last cursor frees the segments that finish_scan had to leave. */
    if (--scan->user_count == 0 && scan->list != NULL)
        scan_segments_close(scan);
    pthread_mutex_unlock(&scan->lock);
    *cursor = (struct scan_cursor){ 0 };
}

/* Wait for the next thing to read: the list, if it is there before the cursor has read a segment,
 * else the next segment. Neither of them, without an error, is the end. */
static tundish_status
wait_for_more(struct scan_cursor *cursor, const struct segment **ret_segment)
{
    struct scan *scan = cursor->scan;
    tundish_status status = TUNDISH_OK;

    pthread_mutex_lock(&scan->lock);
    while (status == TUNDISH_OK && cursor->segment >= scan->segment_count && !scan->is_done) {
        scan_request(scan, cursor->segment + SCAN_LOOKAHEAD);
        status = scan_wait_for_progress(scan, cursor->stop);
    }
    /* Ask for more before the records at hand are used up, so that the scan stays ahead. */
    scan_request(scan, cursor->segment + SCAN_LOOKAHEAD);
    if (status == TUNDISH_OK && scan->list != NULL && cursor->segment == 0)
        cursor->list = scan->list;
    else if (status == TUNDISH_OK && cursor->segment < scan->segment_count)
        *ret_segment = scan->segments[cursor->segment++];
    else if (status == TUNDISH_OK && scan->end != TUNDISH_OK)
        status = scan_tell_end(scan);
    pthread_mutex_unlock(&scan->lock);
    return status;
}

static tundish_status
damaged_index(const struct scan_cursor *cursor)
{
    return tnd_fail(TUNDISH_E_CORRUPT, "%s: its index in the cache folder is damaged; remove it",
                    cursor->scan->file->name);
}

static tundish_status
advance_cursor(struct scan_cursor *cursor)
{
    const struct segment *segment = NULL;
    tundish_status status = wait_for_more(cursor, &segment);

    if (status != TUNDISH_OK)
        return status;
    if (segment != NULL)
        cursor->reader = (struct record_reader){
            .at = segment->bytes,
            .limit = segment->bytes + segment->used,
            .left = segment->count,
            .usual_gap = cursor->scan->file->format.scanner->usual_gap,
            .end = segment->end_before,
            /* The scan has checked its own records; only an index from the disk needs a limit. */
            .end_limit = UINT64_MAX,
        };
    else if (cursor->list != NULL && cursor->list->stride == 0 &&
             !record_list_seek(cursor->list, 0, &cursor->reader))
        return damaged_index(cursor);
    return TUNDISH_OK;
}

static enum order_result
next_of_stride(struct scan_cursor *cursor, uint64_t *words, size_t max, size_t *ret_count)
{
    const struct record_list *list = cursor->list;
    uint64_t left = list->count - cursor->next;
    size_t count = left < max ? (size_t)left : max;
    uint64_t high = reference_high(cursor->scan->file);

    for (size_t i = 0; i < count; i++, cursor->next++) {
        words[2 * i] = list->first_offset + cursor->next * list->stride;
        words[2 * i + 1] = high | list->stride;
    }
    *ret_count = count;
    return count > 0 ? ORDER_OK : ORDER_END;
}

static enum order_result
end_of_file(const struct scan_cursor *cursor)
{
    pthread_mutex_lock(&cursor->scan->lock);
    scan_tell_damage(cursor->scan);
    pthread_mutex_unlock(&cursor->scan->lock);
    return ORDER_END;
}

/* Make sure that there are records to read. An error is reported once and is followed by the
 * end. */
static enum order_result
have_records(struct scan_cursor *cursor)
{
    tundish_status status = TUNDISH_OK;

    if (cursor->has_failed)
        return ORDER_END;
    if (cursor->reader.left == 0 && cursor->list == NULL)
        status = advance_cursor(cursor);
    if (status != TUNDISH_OK) {
        cursor->has_failed = true;
        return ORDER_FAILED;
    }
    if (cursor->list != NULL ? cursor->next < cursor->list->count : cursor->reader.left > 0)
        return ORDER_OK;
    return end_of_file(cursor);
}

static enum order_result
fail_damaged(struct scan_cursor *cursor)
{
    (void)damaged_index(cursor);
    cursor->has_failed = true;
    return ORDER_FAILED;
}

/* The rows are read again when their content is made. Where their places were known from an index,
 * that is the first time. */
static void
follow(const struct scan_cursor *cursor, const uint64_t *words, size_t count)
{
    struct source_file *file = cursor->scan->file;

    if (count > 0 && file_is_remote(file))
        file_remote_follow(file, words[2 * (count - 1)]);
}

enum order_result
scan_cursor_next(struct scan_cursor *cursor, uint64_t *words, size_t max, size_t *ret_count)
{
    enum order_result result = have_records(cursor);

    *ret_count = 0;
    if (result != ORDER_OK)
        return result;
    if (cursor->list != NULL && cursor->list->stride != 0) {
        result = next_of_stride(cursor, words, max, ret_count);
        follow(cursor, words, *ret_count);
        return result;
    }
    if (!record_reader_next(&cursor->reader, reference_high(cursor->scan->file), words, max,
                            ret_count))
        return fail_damaged(cursor);
    cursor->next += *ret_count;
    follow(cursor, words, *ret_count);
    return ORDER_OK;
}

enum order_result
scan_cursor_pass_over(struct scan_cursor *cursor, uint64_t count, uint64_t *ret_passed)
{
    *ret_passed = 0;
    while (*ret_passed < count) {
        enum order_result result = have_records(cursor);
        uint64_t left = count - *ret_passed;
        uint64_t here;

        if (result != ORDER_OK)
            return result;
        here = cursor->list != NULL ? cursor->list->count - cursor->next : cursor->reader.left;
        here = here < left ? here : left;
        /* A seek reads part of a group, so it is worth it only for more than a group. */
        if (cursor->list != NULL && cursor->list->stride == 0 && here > RECORD_GROUP) {
            if (!record_list_seek(cursor->list, cursor->next + here, &cursor->reader))
                return fail_damaged(cursor);
        } else if (cursor->list == NULL && here == cursor->reader.left) {
            /* The rest of a segment is skipped without reading it. */
            cursor->reader.left = 0;
        } else if ((cursor->list == NULL || cursor->list->stride == 0) &&
                   !record_reader_pass_over(&cursor->reader, here)) {
            return fail_damaged(cursor);
        }
        cursor->next += here;
        *ret_passed += here;
    }
    return ORDER_OK;
}
