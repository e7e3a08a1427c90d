/* npy.h - arrays as NumPy saves them (.npy, versions 1 to 3). */
#ifndef SOURCE_ROWS_NPY_H
#define SOURCE_ROWS_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "column/schema.h"

enum npy_text { NPY_NO_TEXT, NPY_BYTES, NPY_UCS4 };

struct npy_header {
    tundish_dtype dtype;
    enum npy_text text;  /* of a STRING: how its characters are stored */
    uint64_t item_bytes; /* of one value in the file */
    bool is_big_endian;
    bool fortran_order;
    int rank;
    int64_t shape[RANK_MAX];
    int64_t value_count;
    uint64_t data_offset; /* where the values begin */
};

/* Read the header of a file's first `bytes` bytes (all of it, or NPY_HEADER_MAX at least). On
 * success value_count * item_bytes does not overflow. E_DATA with a sentence about the error,
 * which does not name the file. */
#define NPY_HEADER_MAX (64 << 10)
tundish_status npy_read_header(const uint8_t *data, size_t bytes, struct npy_header *ret_header);

/* Turn the values as they lie in the file, in place, into little-endian ones. */
void npy_order_bytes(const struct npy_header *header, uint8_t *items);

/* The same values in rows (C order): `from` is in Fortran order. */
void npy_transpose(const struct npy_header *header, const uint8_t *from, uint8_t *to);

#endif
