/* tundish_tensor.h - the columns of batches: their types, and where their values lie.
 *
 * Part of tundish.h, which includes it.
 */
#ifndef TUNDISH_TENSOR_H
#define TUNDISH_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stored in slots and in saved places: a value is never reused. */
typedef enum tundish_dtype {
    TUNDISH_BOOL = 1,
    TUNDISH_UINT8 = 2,
    TUNDISH_INT8 = 3,
    TUNDISH_UINT16 = 4,
    TUNDISH_INT16 = 5,
    TUNDISH_UINT32 = 6,
    TUNDISH_INT32 = 7,
    TUNDISH_UINT64 = 8,
    TUNDISH_INT64 = 9,
    TUNDISH_FLOAT16 = 10,
    TUNDISH_BFLOAT16 = 11,
    TUNDISH_FLOAT32 = 12,
    TUNDISH_FLOAT64 = 13,
    TUNDISH_STRING = 14
} tundish_dtype;

/* The layout of a column's values. Stored in slots. */
typedef enum tundish_kind {
    TUNDISH_DENSE = 1,
    TUNDISH_RAGGED = 2,
    TUNDISH_SPARSE = 3
} tundish_kind;

/* The order in which deliver.widen writes a column's values. Stored in lanes. */
typedef enum tundish_layout {
    TUNDISH_AS_STORED = 0,
    TUNDISH_NCHW = 1 /* images, dimensions batch, height, width, channels: channels before height */
} tundish_layout;

#define TUNDISH_RANK_MAX 8 /* most dimensions of a tensor */

/* The type of one column of every batch. The struct may grow at the end, so index an array of them
 * with tundish_column_spec_at. */
typedef struct tundish_column_spec {
    const char *name;
    tundish_dtype dtype;
    tundish_kind kind;
    uint32_t rank;
    uint32_t ragged_rank;            /* RAGGED: dimensions 1 .. ragged_rank are ragged; else 0 */
    int64_t shape[TUNDISH_RANK_MAX]; /* -1: varies between batches, or ragged */
    tundish_dtype splits_dtype;      /* RAGGED: dtype of TensorFlow's row_splits; here int64 */
    /* deliver.widen: for tundish_tensor_widen. Scale and offset have one entry, or one for each
     * index of the last dimension. widen_dtype 0: not configured. */
    tundish_dtype widen_dtype;
    uint32_t widen_scale_count, widen_offset_count;
    const double *widen_scale, *widen_offset;
    tundish_layout widen_layout;
} tundish_column_spec;

typedef struct tundish_spec {
    uint32_t column_count;
    uint32_t column_bytes; /* sizeof(tundish_column_spec) in the library */
    const tundish_column_spec *columns;
} tundish_spec;

/* One column of one batch.
 *
 * dense   data has element_count values in row-major order.
 * ragged  row_splits[0 .. ragged_rank - 1], outermost first; row_splits[k] has row_split_counts[k]
 *         entries, which start at 0; the last is the number of lists of the next level (for the
 *         innermost level: of inner values). Ragged dimensions are -1 in shape; the dimensions
 *         after them are the shape of an inner value.
 * sparse  element_count values in data, rank coordinates for each in indices.
 *
 * Strings, of any kind: value i is the bytes string_offsets[i] .. string_offsets[i + 1] of data,
 * without a NUL. Offsets, splits and indices are sorted. data is aligned to 64 bytes, read-only. */
typedef struct tundish_tensor {
    const char *name;
    tundish_dtype dtype;
    tundish_kind kind;
    uint32_t rank, ragged_rank;
    const int64_t *shape;   /* sparse: of the dense tensor */
    uint64_t element_count; /* values in data */
    uint64_t data_bytes;
    const void *data;                 /* never NULL */
    const int64_t *string_offsets;    /* element_count + 1, or NULL */
    const int64_t *const *row_splits; /* or NULL */
    const uint64_t *row_split_counts;
    const int64_t *indices; /* element_count * rank, or NULL */
} tundish_tensor;

/* A column by index, or NULL. Uses the library's size of the struct, not the header's. */
static inline const tundish_column_spec *
tundish_column_spec_at(const tundish_spec *spec, uint32_t index)
{
    if (index >= spec->column_count)
        return NULL;
    return (const tundish_column_spec *)(const void *)((const char *)spec->columns +
                                                       (size_t)index * spec->column_bytes);
}

#ifdef __cplusplus
}
#endif
#endif
