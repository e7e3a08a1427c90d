/* decoded_resized.h - decode_jpeg (or another decoder), resize (or resizing) and perhaps a cast to
 * uint8 behind it as one: each picture is resampled row by row while it is decoded, so that what is
 * between never leaves the processor's cache. The same bytes and the same rejections come out.
 */
#ifndef CONTENT_DECODED_RESIZED_H
#define CONTENT_DECODED_RESIZED_H

#include "content/images/decoded.h"
#include "content/images/resized.h"

struct decoded_resized {
    const struct decoded *decoded;
    const struct resized *resized;
    uint32_t input, output; /* columns before the first stage and behind the last */
    bool to_bytes;          /* the cast is there */
};

/* Can a decoder and the stage of this column that stands behind it be done as one? */
bool decoded_resized_fits(const struct decoded *decoded, const struct resized *resized,
                          const struct column_spec *decoded_column);

/* `input` as before the first stage; `output` as behind the last, as in content_ops.apply. */
void decoded_resized_apply(const struct decoded_resized *both, const struct frame *input,
                           struct frame *output);

#endif
