/* compress.h - deliver.compression: auto. Columns are delivered as they are, which costs nothing,
 * as long as there is memory for that. If there is not, the columns that save the most bytes for
 * the time they take are stored smaller. In between, where lanes take a good part of what they
 * may, columns are stored smaller if encoding and decoding them costs less than the memory is
 * worth: what writing and reading those bytes takes, and the more replicas do so at a time, the
 * more. All is measured, on a slice of the stream itself; what a column is stored as stands in each
 * slot, and every reader decodes it to the same bytes.
 */
#ifndef SESSION_COMPRESS_H
#define SESSION_COMPRESS_H

#include "session/fill.h"

enum compress_why {
    WHY_ASKED,
    WHY_UNMEASURED, /* there was no first batch to measure */
    WHY_ROOMY,      /* there is memory for columns as they are */
    WHY_SCARCE,     /* there is not */
    WHY_PAYS,       /* memory is tight, and it costs less than it saves */
    WHY_COSTLY      /* memory is tight, but it would cost more */
};

/* Why a stream's columns are stored the way they are, and what was measured. */
struct compressed {
    enum compress_why why;
    uint64_t saved_bytes; /* of a slice, about */
    int64_t cost_ns;      /* to encode and decode it */
    int64_t worth_ns;     /* PAYS: a higher cost would not pay */
};

/* The bytes that an arena may take. */
struct compress_room {
    uint64_t scarce_bytes; /* there is no more */
    uint64_t spare_bytes;  /* of those, what columns stored smaller must leave free */
    uint64_t tight_bytes;  /* more is to be saved where that pays */
    uint32_t sharers;      /* replicas that read at a time */
};

/* Choose codecs for a stream of slices like this one, of `bytes`. Says in the log which columns are
 * stored smaller. Before the fill is used. */
void compress_columns(struct fill *fill, struct evaluation *evaluation,
                      struct tnd_codec_context *context, const struct deal_slice *slice,
                      const struct slice_bytes *bytes, const struct compress_room *room,
                      struct compressed *ret_compressed);

/* A sentence's end: "since memory is scarce". */
const char *compress_reason(enum compress_why why);

/* "as they are", or which columns by which codec. */
enum { COMPRESS_TEXT_BYTES = 160 };
void compress_describe(const struct fill *fill, char text[COMPRESS_TEXT_BYTES]);

#endif
