/* content_decode_image.c - tf.io.decode_image: the first bytes decide the format. */
#include <string.h>

#include "content/images/decoded_resized.h"

static tundish_dtype
dtype_of(const char *name)
{
    if (strcmp(name, "uint16") == 0)
        return TUNDISH_UINT16;
    return strcmp(name, "float32") == 0 ? TUNDISH_FLOAT32 : TUNDISH_UINT8;
}

static tundish_status
decode_image_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                  bool *ret_batch_wide)
{
    struct decoded *decoded = state;

    *ret_batch_wide = false;
    decoded->options.channels = (int)spec_int(config->stage, "channels");
    decoded->options.dtype = dtype_of(spec_text(config->stage, "dtype"));
    decoded->options.takes_everything = true;
    decoded->options.expand_animations = spec_bool(config->stage, "expand_animations");
    decoded->options.jpeg = picture_jpeg_default;
    return decoded_open(decoded, config, ret_schema);
}

const struct content_ops content_decode_image = {
    .name = "decode_image",
    .takes_missing = true,
    .state_bytes = sizeof(struct decoded),
    .open = decode_image_open,
    .apply = decoded_apply,
    .close = decoded_close,
    .look_ahead = decoded_look_ahead,
};
