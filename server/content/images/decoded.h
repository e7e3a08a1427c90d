/* decoded.h - the columns of decode_jpeg, decode_png and decode_image: files in, pixels out. */
#ifndef CONTENT_IMAGES_DECODED_H
#define CONTENT_IMAGES_DECODED_H

#include "content/content.h"
#include "content/images/picture.h"

struct decoded {
    struct picture_options options;
    struct content_targets targets;
};

/* The rest of `open`, once the options are read: the columns, and errors that need no data. */
tundish_status decoded_open(struct decoded *decoded, const struct stage_config *config,
                            struct schema *ret_schema);

tundish_status decoded_apply(const void *state, const struct frame *input, struct frame *output);
void decoded_close(void *state);

#endif
