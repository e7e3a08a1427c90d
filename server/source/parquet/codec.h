/* codec.h - the codecs of pages. */
#ifndef SOURCE_PARQUET_CODEC_H
#define SOURCE_PARQUET_CODEC_H

#include <stddef.h>

#include "source/parquet/footer.h"

/* NULL, or why pages of this codec cannot be read. */
const char *parquet_codec_obstacle(uint8_t codec);

/* Unpack a page to exactly `unpacked_bytes`. False: it is damaged. */
bool parquet_unpack(uint8_t codec, struct byte_view packed, uint8_t *to, size_t unpacked_bytes);

#endif
