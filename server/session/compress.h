/* compress.h - deliver.compression: auto. Columns are delivered as they are, which costs nobody
 * anything, as long as there is memory for that. Where there is not, those are stored smaller that
 * save the most bytes for the time they take. Both are measured, on a slice of the stream itself;
 * what a column is stored as stands in each slot, and its bytes are the same to whoever reads it.
 */
#ifndef SESSION_COMPRESS_H
#define SESSION_COMPRESS_H

#include "session/fill.h"

/* Choose codecs, until an arena for slices like this one, of `bytes`, takes no more than is
 * allowed, or there is no more to save. Says which columns in the log. Before the fill is used. */
void compress_columns(struct fill *fill, struct evaluation *evaluation,
                      struct tnd_codec_context *context, const struct deal_slice *slice,
                      const struct slice_bytes *bytes, uint64_t allowed);

#endif
