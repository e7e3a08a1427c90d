/* decoded_resized.h - decode_jpeg (or another decoder), resize (or resizing) and perhaps a cast to
 * uint8 after it as one: each picture is resampled row by row while it is decoded, so that the
 * pictures between the stages never leave the processor's cache. Before random_resized_crop only
 * the part that it takes is made. The bytes and the rejections are the same. */
#ifndef CONTENT_IMAGES_DECODED_RESIZED_H
#define CONTENT_IMAGES_DECODED_RESIZED_H

#include "content/images/decoded.h"

/* content_ops.look_ahead of a decoder, whose state is a struct decoded. */
tundish_status decoded_look_ahead(void *state, const struct content_step *steps, uint32_t count,
                                  struct spec_errors *errors, struct content_fused *ret_fused);

#endif
