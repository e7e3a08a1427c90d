/* picture_webp.c - WebP by libwebp, still and animated. */
#include <string.h>

#include "content/images/pixel_format.h"

#ifdef PICTURE_HAS_WEBP

#include <webp/decode.h>
#include <webp/demux.h>

static bool
read_features(const struct picture_options *options, struct byte_view bytes,
              WebPBitstreamFeatures *features, struct picture_fault *ret_fault)
{
    int natural;

    if (options->dtype != TUNDISH_UINT8)
        return picture_fail(options, ret_fault, "a WebP is decoded to uint8 only");
    if (options->channels == 1)
        return picture_fail(options, ret_fault, "a WebP has 3 or 4 channels, not 1");
    if (WebPGetFeatures(bytes.data, bytes.size, features) != VP8_STATUS_OK)
        return picture_fail(options, ret_fault, "the WebP's header is damaged or truncated");
    natural = features->has_alpha ? 4 : 3;
    if (!features->has_animation && options->channels != 0 && options->channels != natural)
        return picture_fail(options, ret_fault, "the WebP has %d channels, not %d", natural,
                            options->channels);
    return true;
}

/* Open an animation, which libwebp decodes to 4 channels. */
static WebPAnimDecoder *
open_animation(struct byte_view bytes, WebPAnimInfo *ret_info)
{
    WebPData data = { bytes.data, bytes.size };
    WebPAnimDecoderOptions animation;
    WebPAnimDecoder *decoder;

    if (!WebPAnimDecoderOptionsInit(&animation))
        return NULL;
    decoder = WebPAnimDecoderNew(&data, &animation);
    if (decoder != NULL && !WebPAnimDecoderGetInfo(decoder, ret_info)) {
        WebPAnimDecoderDelete(decoder);
        decoder = NULL;
    }
    return decoder;
}

static bool
measure_animation(const struct picture_options *options, struct byte_view bytes, int64_t dims[4],
                  struct picture_fault *ret_fault)
{
    WebPAnimInfo info;
    WebPAnimDecoder *decoder = open_animation(bytes, &info);

    if (decoder == NULL)
        return picture_fail(options, ret_fault, "the animated WebP cannot be opened");
    WebPAnimDecoderDelete(decoder);
    dims[0] = options->expand_animations ? info.frame_count : 1;
    dims[1] = info.canvas_height;
    dims[2] = info.canvas_width;
    dims[3] = options->channels == 3 ? 3 : 4;
    return true;
}

static bool
webp_measure(const struct picture_options *options, struct byte_view bytes,
             struct picture_size *ret_size, struct picture_fault *ret_fault)
{
    WebPBitstreamFeatures features;
    bool expands = options->expand_animations;
    int64_t dims[4] = { 1, 0, 0, 0 };

    if (!read_features(options, bytes, &features, ret_fault))
        return false;
    dims[1] = features.height;
    dims[2] = features.width;
    dims[3] = features.has_alpha ? 4 : 3;
    if (features.has_animation && !measure_animation(options, bytes, dims, ret_fault))
        return false;
    return picture_set_size(options, expands ? 4 : 3, expands ? dims : dims + 1, ret_size,
                            ret_fault);
}

static bool
read_animation(const struct picture_options *options, struct byte_view bytes,
               const struct picture_size *size, uint8_t *values, struct picture_fault *ret_fault)
{
    int64_t frames = size->rank == 4 ? size->dims[0] : 1;
    int64_t channels = size->dims[size->rank - 1];
    int64_t pixels = size->dims[size->rank - 2] * size->dims[size->rank - 3];
    WebPAnimInfo info;
    WebPAnimDecoder *decoder = open_animation(bytes, &info);
    bool ok = decoder != NULL;

    for (int64_t k = 0; ok && k < frames; k++) {
        uint8_t *frame = NULL;
        int time;

        ok = WebPAnimDecoderGetNext(decoder, &frame, &time) != 0;
        for (int64_t i = 0; ok && i < pixels; i++, values += channels)
            memcpy(values, frame + i * 4, (size_t)channels);
    }
    WebPAnimDecoderDelete(decoder);
    return ok || picture_fail(options, ret_fault, "a frame of the WebP cannot be decoded");
}

static bool
webp_read(const struct picture_options *options, struct byte_view bytes,
          const struct picture_size *size, struct scratch *scratch, void *values,
          struct picture_fault *ret_fault)
{
    WebPBitstreamFeatures features;
    int64_t row_values = size->dims[size->rank - 1] * size->dims[size->rank - 2];
    size_t value_bytes = (size_t)(row_values * size->dims[size->rank - 3]);
    uint8_t *read;

    (void)scratch;
    if (!read_features(options, bytes, &features, ret_fault))
        return false;
    if (features.has_animation)
        return read_animation(options, bytes, size, values, ret_fault);
    read = features.has_alpha
               ? WebPDecodeRGBAInto(bytes.data, bytes.size, values, value_bytes, (int)row_values)
               : WebPDecodeRGBInto(bytes.data, bytes.size, values, value_bytes, (int)row_values);
    return read != NULL ||
           picture_fail(options, ret_fault, "the WebP cannot be decoded; is it truncated?");
}

#endif

const struct picture_format picture_webp = {
    .name = "WebP",
    .library = "libwebp",
#ifdef PICTURE_HAS_WEBP
    .measure = webp_measure,
    .read = webp_read,
#endif
};
