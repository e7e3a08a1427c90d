/* split.h - BYTE_STREAM_SPLIT: first the first bytes of all values, then the second ones ... */
#ifndef SOURCE_PARQUET_SPLIT_H
#define SOURCE_PARQUET_SPLIT_H

#include <stddef.h>

#include "core/bytes.h"

/* Put `count` values of `width` bytes together. `from` has count * width bytes. */
void split_join(const uint8_t *from, size_t count, size_t width, uint8_t *to);

#endif
