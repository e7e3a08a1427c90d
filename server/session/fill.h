/* fill.h - the content of a slice, into its slot.
 *
 * Every column may have a fixed size, or one that its references tell (a file's records as they
 * are). Then the slot's address is known before a byte is read, and any thread can make some of its
 * rows in place. Otherwise, or where a column is stored encoded, one thread makes the whole slice,
 * learns its sizes, and copies it into the slot.
 */
#ifndef SESSION_FILL_H
#define SESSION_FILL_H

#include <sys/uio.h>

#include "batch/dealer.h"
#include "batch/output.h"
#include "core/codec.h"
#include "deliver/lane.h"

struct fill_column {
    int64_t row_values;                           /* in one row; -1: not known before the data */
    size_t value_bytes;                           /* strings: of a byte */
    uint64_t (*row_bytes)(const uint64_t *words); /* strings that references tell the size of */
    struct tnd_codec codec;                       /* how values are stored */
};

/* How this stream's slices are filled. Made once, read by all threads. */
struct fill {
    const struct plan *plan;
    struct fill_column *columns;
    bool in_place; /* slices can be filled in parts */
    bool is_even;  /* references tell a slice's rows, and equally many take equally many bytes as
                    * they are */
};

/* Bytes of a slice's buffers in its slot. */
struct slice_bytes {
    uint64_t as_is, stored;
};

void fill_open(const struct plan *plan, struct fill *ret_fill);
void fill_close(struct fill *fill);

/* As fill_open, with columns stored by these codecs, one each. E_DATA: a column cannot be. */
tundish_status fill_open_stored(const struct plan *plan, const struct tnd_codec *codecs,
                                struct fill *ret_fill);

/* The same slices for trainers that expand columns on a device, where that costs nothing: integers
 * of a known range are packed, instead of under zstd unless `keeps_zstd`. False: no column would be
 * stored otherwise. */
bool fill_open_packed(const struct fill *fill, bool keeps_zstd, struct fill *ret_fill);

/* Rows of a slice that is filled in place. */
int64_t fill_rows(const struct fill *fill, const struct deal_slice *slice);

/* While a slice waits for room: ask the processor for its references, which another one wrote.
 * Those of a small batch are then here when there is room. */
void fill_bring_near(const struct deal_slice *slice);

/* In place: state the sizes of a slice in the slot, for lane_reserve. Returns how many rows one
 * thread should make at a time. */
int64_t fill_describe(const struct fill *fill, const struct deal_slice *slice, struct slot *slot);

/* In place, after the slot is reserved and before its first part: write what all parts depend
 * on. */
void fill_begin(const struct fill *fill, const struct deal_slice *slice, struct slot *slot);

/* In place: make rows [begin, end) of the slice in the reserved slot. */
tundish_status fill_part(const struct fill *fill, struct evaluation *evaluation,
                         const struct deal_slice *slice, int64_t begin, int64_t end,
                         struct slot *slot);

/* In place, after fill_part: those rows as columns, in scratch. */
struct output_column *fill_part_columns(const struct fill *fill, int64_t begin, int64_t end,
                                        const struct slot *slot, struct scratch *scratch);

/* In place: where those rows lie in the slot, a piece for each column. Returns their bytes. */
uint64_t fill_places(const struct fill *fill, int64_t begin, int64_t end, const struct slot *slot,
                     struct iovec *ret_places);

/* A whole slice that lies in a thread's scratch. */
struct filled {
    struct output_column *columns;
    void **stored; /* encoded values, or NULL: as they are */

    /* Set by the caller. The slot is reserved already, with these bytes for the values of each
     * column, so values that take as many are made there; NULL: it is not. */
    const uint64_t *reserved;
};

/* May a slice's slot be reserved before it is made, at the sizes of the slice before? */
bool fill_expects(const struct fill *fill);

/* In a slot to be reserved: state that a slice takes these bytes for the values of each column. */
void fill_expect(const struct fill *fill, const uint64_t *bytes, struct slot *slot);

/* Make the slice (an empty batch if it is not present) in evaluation->scratch, which the caller
 * resets afterwards, and state its sizes in the slot. */
tundish_status fill_make(const struct fill *fill, struct evaluation *evaluation,
                         struct tnd_codec_context *context, const struct deal_slice *slice,
                         struct slot *slot, struct filled *filled);

/* Does the slice fit the slot that was reserved? If not, no value lies in it any more. */
bool fill_fits(const struct fill *fill, struct scratch *scratch, struct filled *filled,
               struct slot *slot);

/* Does the number of values alone tell the stored size of every column? */
bool fill_is_sized(const struct fill *fill);

/* The bytes of a slice of `rows` rows: is_even. `stored` is the most where it is not sized. */
void fill_bytes_of_rows(const struct fill *fill, int64_t rows, struct slice_bytes *ret_bytes);

/* The bytes of a slice in its slot, for sizing lanes. */
tundish_status fill_measure(const struct fill *fill, struct evaluation *evaluation,
                            struct tnd_codec_context *context, const struct deal_slice *slice,
                            struct slice_bytes *ret_bytes);

/* For measuring and printing: a slice's columns as they are delivered, in evaluation->scratch; the
 * bytes of a column's values; and the codec that stores integers of a known range smaller (RAW:
 * there is none for this column). */
tundish_status fill_columns(const struct fill *fill, struct evaluation *evaluation,
                            const struct deal_slice *slice, struct output_column *columns);
uint64_t fill_values_bytes(const struct output_column *column);
struct tnd_codec fill_narrow_codec(const struct column_spec *spec);

/* Copy what fill_make made into the reserved slot. */
void fill_copy(const struct fill *fill, const struct filled *filled, struct slot *slot);

#endif
