/* frame.h - some elements on their way through the content part: columns side by side. */
#ifndef COLUMN_FRAME_H
#define COLUMN_FRAME_H

#include <stdatomic.h>

#include "column/column.h"
#include "column/scratch.h"

/* The first error, and which elements are bad. */
struct frame_errors {
    tundish_status status; /* OK: nothing is bad */
    int64_t first_bad;     /* the lowest bad element, whose text is kept */
    uint8_t *bad;          /* one byte an element, or NULL while none is bad */
    int64_t bad_count;
    char text[1024]; /* last: what is before it lies in one line of the cache */
};

/* Reset it: no element is bad. (The text's room stays as it is: frames are many, and bad ones
 * few.) */
static inline void
frame_errors_clear(struct frame_errors *errors)
{
    errors->status = TUNDISH_OK;
    errors->first_bad = 0;
    errors->text[0] = '\0';
    errors->bad = NULL;
    errors->bad_count = 0;
}

struct file_notes;
struct other_files;
struct tnd_stats_vocabulary;

struct frame {
    int64_t count; /* elements; the same in every column */
    uint32_t column_count;
    struct column *columns; /* in the order of the schema */
    const struct schema *schema;
    struct scratch *scratch;
    struct frame_errors *errors;

    /* The elements that are left of those asked for, when bad ones were passed over; NULL: all. */
    const int64_t *kept;

    /* For stages that draw random numbers: of each element, how many came before it where the
     * stage stands. NULL for others. */
    const uint64_t *ordinals;

    /* Inside interleave and flat_map: the outer element's columns, one outer element for each
     * element here; NULL outside. */
    const struct frame *outer;

    /* Where this thread counts for each vocabulary of the stage (content_ops.vocabularies), through
     * content/terms/lookup_counters.h; NULL: nobody counts. */
    struct tnd_stats_vocabulary *const *vocabularies;

    /* Files of other nodes (content/records/other_files.h); NULL: all are here. */
    const struct other_files *other_files;

    /* Who notes the whole files that rows name (content/records/file_notes.h); NULL: nobody. */
    const struct file_notes *file_notes;

    const _Atomic int *stop; /* not 0: give up waiting and fail with STOPPED. May be NULL */

    void *observations; /* of `tundish analyze`, for stages that only look; NULL: nobody looks */

    /* Where the column at this index of the frame being made is wanted, or NULL. */
    void *const *destinations;
    const size_t *destination_bytes;
};

/* Room for the values of output column `index`: its memory in the slot when that is known and
 * `bytes` is its size there, else scratch. Every value must be written. */
void *frame_values(struct frame *output, uint32_t index, size_t bytes);

/* Strings that are wanted side by side (frame_values is for other dtypes): where, if they are
 * `bytes` bytes in all; else NULL. Up to 64 bytes after it may be read. */
void *frame_texts(const struct frame *output, uint32_t index, size_t bytes);

/* Declare element `element` bad, with a sentence for the user. The first one's is kept (for the
 * lowest element). The stage goes on with whatever value it likes for it: the element is never
 * delivered. */
void frame_reject(struct frame *frame, int64_t element, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Set a column to `count` scalars. */
static inline void
column_set_scalars(struct column *column, int64_t count, const void *values)
{
    column_clear(column);
    column->count = count;
    column->value_count = count;
    column->values = values;
}

/* The shape of `from` (levels, counts) with other values. */
static inline void
column_set_like(struct column *column, const struct column *from, const void *values)
{
    column_copy(column, from);
    column->values = values;
}

#endif
