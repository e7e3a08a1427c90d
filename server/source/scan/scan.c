/* scan.c - goes through a file in steps, and waits for them. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "core/must.h"
#include "source/scan/index.h"
#include "source/scan/scan_private.h"

/* How long a wait takes before it looks at `stop` again. */
enum { WAIT_NS = 50000000 };

void
scan_segments_close(struct scan *scan)
{
    for (uint32_t i = 0; i < scan->segment_count; i++)
        free(scan->segments[i]);
    free(scan->segments);
    scan->segments = NULL;
    scan->segment_count = 0;
}

void
scan_close(struct scan *scan)
{
    if (scan == NULL)
        return;
    must(scan->user_count == 0 && !scan->is_busy);
    scan_work_close(scan->work);
    scan_segments_close(scan);
    record_list_close(scan->list);
    free(scan->end_text);
    pthread_cond_destroy(&scan->progress);
    pthread_mutex_destroy(&scan->lock);
    free(scan);
}

void
scan_try_again(struct scan *scan)
{
    if (!scan->is_done || scan->end == TUNDISH_OK || scan->is_damaged || scan->is_busy)
        return;
    must(scan->user_count == 0 && scan->work == NULL && scan->list == NULL);
    scan_segments_close(scan);
    scan->record_count = scan->byte_count = 0;
    atomic_store_explicit(&scan->position, 0, memory_order_relaxed);
    scan->wanted = 0;
    scan->is_done = false;
    scan->end = TUNDISH_OK;
    free(scan->end_text);
    scan->end_text = NULL;
}

/* Join all segments to one list. Each continues where the one before ended, so their bytes can be
 * copied; only the groups have to be found. */
static struct record_list *
join_segments(const struct scan *scan)
{
    struct record_list *list = tnd_zalloc(1, sizeof *list);
    uint64_t group_count = record_group_count(scan->record_count);
    struct record_group *groups;
    struct record_reader reader;
    uint8_t *bytes;

    list->count = scan->record_count;
    list->usual_gap = scan->file->format.scanner->usual_gap;
    list->byte_count = scan->byte_count;
    list->end_limit = scan_work_bytes(scan->file, scan->work);
    list->hash =
        tnd_hash_farm_cat(tnd_hash_farm_cat(scan->work->hash, list->count), list->end_limit);
    groups = tnd_alloc(group_count * sizeof *groups + scan->byte_count + 1);
    bytes = (uint8_t *)(groups + group_count);
    list->owned = groups;
    list->groups = groups;
    list->bytes = bytes;
    for (uint32_t i = 0; i < scan->segment_count; i++) {
        memcpy(bytes, scan->segments[i]->bytes, scan->segments[i]->used);
        bytes += scan->segments[i]->used;
    }
    reader = (struct record_reader){ .at = list->bytes,
                                     .limit = bytes,
                                     .left = list->count,
                                     .usual_gap = list->usual_gap,
                                     .end_limit = list->end_limit };
    for (uint64_t group = 0; group < group_count; group++) {
        uint64_t words[2 * RECORD_GROUP];
        size_t count;

        groups[group].end = reader.end;
        groups[group].position = (uint64_t)(reader.at - list->bytes);
        must(record_reader_next(&reader, 0, words, RECORD_GROUP, &count));
    }
    return list;
}

/* With the lock held. A segment is never changed after this, so cursors read it without the
 * lock. */
static void
publish_records(struct scan *scan, struct record_writer *writer)
{
    struct segment *segment;

    if (writer->count == 0)
        return;
    segment = tnd_alloc(sizeof *segment + writer->used);
    *segment = (struct segment){
        .count = writer->count,
        .end_before = scan->work->record_end,
        .used = writer->used,
    };
    memcpy(segment->bytes, writer->bytes, writer->used);
    scan->segments = tnd_grow(scan->segments, scan->segment_count, sizeof *scan->segments);
    scan->segments[scan->segment_count++] = segment;
    scan->record_count += writer->count;
    scan->byte_count += writer->used;
    scan->work->record_end = writer->end;
    scan->work->hash = writer->hash;
}

/* With the lock held. The segments are freed here only if no cursor reads them; else by the last
 * cursor. */
static void
finish_scan(struct scan *scan, tundish_status status, struct record_list *list)
{
    scan->is_done = true;
    scan->end = status;
    scan->is_damaged = scan->work->is_damaged;
    if (status != TUNDISH_OK)
        scan->end_text = tnd_strdup(tnd_error_text());
    scan->list = list;
    if (scan->user_count == 0 && list != NULL)
        scan_segments_close(scan);
    scan_work_close(scan->work);
    scan->work = NULL;
}

/* Where bad rows are left out, damage is the end of its file: the records before it are all there
 * are, for every cursor on every node. */
static bool
pass_over_damage(struct scan *scan)
{
    if (!scan->work->is_damaged || !scan->file->services->skip_damage)
        return false;
    scan->end_text = tnd_sprintf("%s (the rest of the file is left out)", tnd_error_text());
    scan->work->is_over = true;
    return true;
}

/* Only one thread is in a step, so `work` needs no lock; what cursors read is published under
 * it. */
static void
step_unlocked(struct scan *scan, uint8_t *buffer)
{
    struct record_list *list = NULL;
    struct record_writer writer = { .usual_gap = scan->file->format.scanner->usual_gap };
    tundish_status status = TUNDISH_OK;

    if (scan->work == NULL)
        status = scan_work_open(scan->file, &scan->work, &list);
    writer.end = scan->work->record_end;
    writer.hash = scan->work->hash;
    if (status == TUNDISH_OK && list == NULL)
        status = scan_work_step(scan->file, scan->work, buffer, &writer);

    if (status != TUNDISH_OK && pass_over_damage(scan))
        status = TUNDISH_OK;
    pthread_mutex_lock(&scan->lock);
    publish_records(scan, &writer);
    scan->work->hash = writer.hash;
    pthread_mutex_unlock(&scan->lock);
    atomic_store_explicit(&scan->position, scan->work->position, memory_order_relaxed);
    free(writer.bytes);

    /* Joining the list and writing the index may take long, so they are done without the lock.
     * Cursors read the segments meanwhile. */
    if (status == TUNDISH_OK && list == NULL && scan->work->is_over) {
        list = join_segments(scan);
        if (scan->file->input->is_plain && !scan->work->is_damaged)
            /* An index is found by the identity of the file, which an unpacked one does not
             * have; and it would not say that the file is damaged. */
            list = index_keep(scan->file, list);
    }
    pthread_mutex_lock(&scan->lock);
    if (status != TUNDISH_OK || list != NULL)
        finish_scan(scan, status, list);
    pthread_mutex_unlock(&scan->lock);
}

/* Take one step. The thread brings a buffer. True: there is more to do right away. */
static bool
step_scan(struct read_ahead_job *job, uint8_t *buffer)
{
    struct scan *scan = (struct scan *)job;
    bool more, is_awaited;

    pthread_mutex_lock(&scan->lock);
    scan->is_queued = false;
    if (scan->is_busy || scan->is_done) {
        pthread_mutex_unlock(&scan->lock);
        return false;
    }
    scan->is_busy = true;
    is_awaited = scan->is_awaited;
    pthread_mutex_unlock(&scan->lock);

    more = is_awaited || scan_work_is_here(scan->file, scan->work);
    if (more)
        step_unlocked(scan, buffer);

    pthread_mutex_lock(&scan->lock);
    scan->is_busy = false;
    if (is_awaited)
        scan->is_awaited = false;
    /* A scan that is far enough ahead rests, so that the threads serve the files that are needed
     * sooner. */
    more = more && !scan->is_done && scan->segment_count < scan->wanted;
    scan->is_queued = more;
    pthread_cond_broadcast(&scan->progress);
    pthread_mutex_unlock(&scan->lock);
    return more;
}

struct scan *
scan_new(struct source_file *file)
{
    struct scan *scan = tnd_zalloc(1, sizeof *scan);

    scan->file = file;
    scan->job.step = step_scan;
    pthread_mutex_init(&scan->lock, NULL);
    tnd_condition_open(&scan->progress);
    return scan;
}

/* Let the scan make at least `wanted` segments. With the lock held. */
void
scan_request(struct scan *scan, uint32_t wanted)
{
    if (wanted > scan->wanted)
        scan->wanted = wanted;
    if (scan->file->services->ahead.thread_count == 0 || scan->is_done || scan->is_busy ||
        scan->is_queued || scan->segment_count >= scan->wanted)
        return;
    scan->is_queued = true;
    read_ahead_add(&scan->file->services->ahead, &scan->job);
}

/* Wait for a step of another thread, or take one here if there are no threads. With the lock held,
 * which is released meanwhile. */
tundish_status
scan_wait_for_progress(struct scan *scan, const _Atomic int *stop)
{
    struct timespec until;

    if (stop != NULL && atomic_load_explicit(stop, memory_order_relaxed) != 0)
        return tnd_fail(TUNDISH_STOPPED, "%s: stopped while it was being scanned",
                        scan->file->name);
    scan->is_awaited = true;
    if (scan->file->services->ahead.thread_count == 0 && !scan->is_busy) {
        uint8_t *buffer = tnd_alloc(READ_AHEAD_BUFFER_BYTES);

        pthread_mutex_unlock(&scan->lock);
        (void)step_scan(&scan->job, buffer);
        free(buffer);
        pthread_mutex_lock(&scan->lock);
        return TUNDISH_OK;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += WAIT_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&scan->progress, &scan->lock, &until);
    return TUNDISH_OK;
}

void
scan_tell_damage(struct scan *scan)
{
    if (!scan->is_done || !scan->is_damaged || scan->is_told || scan->end != TUNDISH_OK)
        return;
    scan->is_told = true;
    services_add_damaged(scan->file->services, scan->end_text);
}

bool
scan_is_damaged(struct scan *scan)
{
    bool is_damaged;

    pthread_mutex_lock(&scan->lock);
    is_damaged = scan->is_damaged;
    pthread_mutex_unlock(&scan->lock);
    return is_damaged;
}

tundish_status
scan_tell_end(const struct scan *scan)
{
    return tnd_fail(scan->end, "%s", scan->end_text);
}

void
scan_announce(struct source_file *file)
{
    struct scan *scan = file->scan;

    pthread_mutex_lock(&scan->lock);
    scan_request(scan, 2);
    pthread_mutex_unlock(&scan->lock);
}

uint64_t
scan_position(const struct scan *scan)
{
    return atomic_load_explicit(&scan->position, memory_order_relaxed);
}

bool
scan_wait(struct source_file *file, const _Atomic int *stop)
{
    struct scan *scan = file->scan;
    bool more;

    pthread_mutex_lock(&scan->lock);
    scan_request(scan, UINT32_MAX);
    more = !scan->is_done && scan_wait_for_progress(scan, stop) == TUNDISH_OK && !scan->is_done;
    pthread_mutex_unlock(&scan->lock);
    return more;
}

tundish_status
scan_complete(struct source_file *file, const _Atomic int *stop,
              const struct record_list **ret_list)
{
    struct scan *scan = file->scan;
    tundish_status status = TUNDISH_OK;

    pthread_mutex_lock(&scan->lock);
    while (!scan->is_done && status == TUNDISH_OK) {
        scan_request(scan, UINT32_MAX);
        status = scan_wait_for_progress(scan, stop);
    }
    if (status == TUNDISH_OK && scan->end != TUNDISH_OK)
        status = scan_tell_end(scan);
    if (status == TUNDISH_OK) {
        scan_tell_damage(scan);
        *ret_list = scan->list;
    }
    pthread_mutex_unlock(&scan->lock);
    return status;
}
