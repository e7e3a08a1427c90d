/* content_decode_png.c - tf.io.decode_png, which takes JPEG and GIF as well. */
#include <string.h>

#include "content/images/decoded_resized.h"

static tundish_status
decode_png_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                bool *ret_batch_wide)
{
    struct decoded *decoded = state;

    *ret_batch_wide = false;
    decoded->options.channels = (int)spec_int(config->stage, "channels");
    decoded->options.dtype =
        strcmp(spec_text(config->stage, "dtype"), "uint16") == 0 ? TUNDISH_UINT16 : TUNDISH_UINT8;
    decoded->options.jpeg = picture_jpeg_default;
    return decoded_open(decoded, config, ret_schema);
}

const struct content_ops content_decode_png = {
    .name = "decode_png",
    .takes_missing = true,
    .state_bytes = sizeof(struct decoded),
    .open = decode_png_open,
    .apply = decoded_apply,
    .close = decoded_close,
    .look_ahead = decoded_look_ahead,
};
