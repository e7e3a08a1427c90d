/* delta.h - DELTA_BINARY_PACKED: integers as differences, packed in blocks. */
#ifndef SOURCE_PARQUET_DELTA_H
#define SOURCE_PARQUET_DELTA_H

#include "source/parquet/bits.h"

/* Read exactly `count` integers; what follows them is left in *bytes. Arithmetic wraps, as
 * the format asks for. PARQUET_SLACK bytes after them are readable. False: damaged. */
bool delta_read_i64(struct byte_view *bytes, size_t count, int64_t *to);
bool delta_read_i32(struct byte_view *bytes, size_t count, int32_t *to);

#endif
