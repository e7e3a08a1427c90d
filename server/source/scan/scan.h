/* scan.h - the records of one file, found by going through it once, just before they are needed.
 *
 * A scan goes on in steps. Each publishes a segment of written records, which cursors read at their
 * own pace; a scan stops when it is far enough ahead of its cursors, and when it is through, a list
 * replaces the segments: kept in the cache folder if it can be, for the next start.
 */
#ifndef SOURCE_SCAN_SCAN_H
#define SOURCE_SCAN_SCAN_H

#include "order/order.h"
#include "source/files/file.h"
#include "source/scan/records.h"

struct scan *scan_new(struct source_file *file);
void scan_close(struct scan *scan); /* accepts NULL; no cursor and no step may be left */

/* Where somebody stands in a file's records. One thread. */
struct scan_cursor {
    struct scan *scan; /* NULL: closed */
    const _Atomic int *stop;
    const struct record_list *list; /* all records, or NULL: by segments */
    uint64_t next;                  /* record of the list */
    uint32_t segment;               /* the next one to be read */
    struct record_reader reader;
    bool has_failed; /* the end was told */
};

/* `stop` (may be NULL): when not 0, waiting fails. */
void scan_cursor_open(struct scan_cursor *cursor, struct source_file *file,
                      const _Atomic int *stop);

/* The next records as references; waits for the scan. ORDER_FAILED once if the file is damaged,
 * after the records before the damage. */
enum order_result scan_cursor_next(struct scan_cursor *cursor, uint64_t *words, size_t max,
                                   size_t *ret_count);

/* As reading `count` records and forgetting them. */
enum order_result scan_cursor_pass_over(struct scan_cursor *cursor, uint64_t count,
                                        uint64_t *ret_passed);
void scan_cursor_close(struct scan_cursor *cursor);

/* Begin to scan a file that will be needed soon; does nothing without a pool. */
void scan_announce(struct source_file *file);

/* All records, once the whole file has been gone through; waits. Stays the scan's. Fails as the
 * file does. */
tundish_status scan_complete(struct source_file *file, const _Atomic int *stop,
                             const struct record_list **ret_list);

/* Has the scan failed because of what is in the file? */
bool scan_is_damaged(struct scan *scan);

/* How far the scan has got, in bytes of its input. Any thread. */
uint64_t scan_position(const struct scan *scan);

/* Wait for a step, or take it. False once the scan is through, or failed. */
bool scan_wait(struct source_file *file, const _Atomic int *stop);

/* A reference to a record: its offset in word 0; file number and length in word 1. */
static inline uint64_t
reference_high(const struct source_file *file)
{
    return (uint64_t)file->number << 32;
}

static inline uint32_t
reference_file(const uint64_t *words)
{
    return (uint32_t)(words[1] >> 32);
}

static inline uint32_t
reference_length(const uint64_t *words)
{
    return (uint32_t)words[1];
}

#endif
