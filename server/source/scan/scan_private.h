/* scan_private.h - a scan's insides, for the files that are it: scan.c takes steps and waits for
 * them, scan_cursor.c reads the records they found. */
#ifndef SOURCE_SCAN_SCAN_PRIVATE_H
#define SOURCE_SCAN_SCAN_PRIVATE_H

#include <pthread.h>

#include "source/scan/scan_work.h"

/* Records of one step; never changed once published. */
struct segment {
    uint64_t count;
    uint64_t end_before; /* of the record before the first */
    size_t used;
    uint8_t bytes[];
};

struct scan {
    struct read_ahead_job job; /* first: the threads that read ahead know only this */
    struct source_file *file;
    pthread_mutex_t lock;
    pthread_cond_t progress;

    struct segment **segments;
    uint32_t segment_count;
    uint64_t record_count, byte_count;
    _Atomic uint64_t position; /* for readers of the progress */
    uint32_t wanted;           /* segments that may be made */
    uint32_t user_count;
    bool is_busy;    /* a thread is in a step */
    bool is_queued;  /* ... or will be */
    bool is_awaited; /* somebody waits for the next step; else it must not wait for a server */
    bool is_done;
    tundish_status end;
    char *end_text;
    bool is_damaged;          /* the end is the file's content's fault */
    bool is_told;             /* the end of a damaged file that is passed over */
    struct record_list *list; /* once done without an error */

    struct scan_work *work; /* of the thread that is in a step */
};

/* Let the scan make at least `wanted` segments. With the lock held, as for all below. */
void scan_request(struct scan *scan, uint32_t wanted);

/* Wait for a step, or take it; the lock is given up meanwhile. */
tundish_status scan_wait_for_progress(struct scan *scan, const _Atomic int *stop);

/* Once all records of a damaged file that is passed over have been taken: count it. */
void scan_tell_damage(struct scan *scan);

/* Fail as the scan did. */
tundish_status scan_tell_end(const struct scan *scan);

/* Segments that a scan keeps ahead of its cursors. */
enum { SCAN_LOOKAHEAD = 16 };

void scan_segments_close(struct scan *scan);

/* Without a cursor: scan the file again if it was not its fault that it could not be read. */
void scan_try_again(struct scan *scan);

#endif
