/* picture_jxl.c - JPEG XL by libjxl, as TensorFlow decodes it: 8 bits, the picture's own channels.
 *
 * libjxl is loaded when the first such picture comes: it brings libraries with it whose start costs
 * each command milliseconds.
 */
#include "content/images/pixel_format.h"

#ifdef PICTURE_HAS_JXL

#include <dlfcn.h>
#include <jxl/decode.h>
#include <jxl/version.h>
#include <pthread.h>
#include <string.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#if JPEGXL_MAJOR_VERSION == 0
#define LIBRARY "libjxl.so.0." TEXT(JPEGXL_MINOR_VERSION)
#else
#define LIBRARY "libjxl.so." TEXT(JPEGXL_MAJOR_VERSION)
#endif

#define FUNCTIONS(X)                                                                               \
    X(JxlDecoderCreate)                                                                            \
    X(JxlDecoderDestroy)                                                                           \
    X(JxlDecoderGetBasicInfo)                                                                      \
    X(JxlDecoderImageOutBufferSize)                                                                \
    X(JxlDecoderProcessInput)                                                                      \
    X(JxlDecoderSetImageOutBuffer)                                                                 \
    X(JxlDecoderSetInput)                                                                          \
    X(JxlDecoderSubscribeEvents)

/* Its functions under their own names. */
static struct {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} jxl;
static bool is_loaded;

static void
load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL), *found;

    is_loaded = library != NULL;
#define FIND(name)                                                                                 \
    found = is_loaded ? dlsym(library, #name) : NULL;                                              \
    memcpy(&jxl.name, &found, sizeof found);                                                       \
    is_loaded &= found != NULL;
    FUNCTIONS(FIND)
#undef FIND
}

/* Go on to the event, past no other. */
static bool
reach(JxlDecoder *decoder, JxlDecoderStatus event)
{
    return jxl.JxlDecoderProcessInput(decoder) == event;
}

/* The head has been read: what the pixels will be. */
static bool
take_head(const struct picture_options *options, const JxlDecoder *decoder,
          struct picture_size *ret_size, struct picture_fault *ret_fault)
{
    JxlBasicInfo info;
    int64_t dims[4] = { 0 };

    if (jxl.JxlDecoderGetBasicInfo(decoder, &info) != JXL_DEC_SUCCESS)
        return picture_fail(options, ret_fault, "the JPEG XL's header is damaged or truncated");
    if (info.have_animation)
        return picture_fail(options, ret_fault, "the JPEG XL is animated, which is not decoded");
    dims[0] = info.ysize;
    dims[1] = info.xsize;
    dims[2] = (int64_t)info.num_color_channels + (info.alpha_bits > 0);
    if (options->channels != 0 && options->channels != dims[2])
        return picture_fail(options, ret_fault, "the JPEG XL has %lld channels, not %d",
                            (long long)dims[2], options->channels);
    return picture_set_size(options, 3, dims, ret_size, ret_fault);
}

/* Open a decoder that stands after the picture's head. NULL: the bytes are bad. */
static JxlDecoder *
open_decoder(const struct picture_options *options, struct byte_view bytes,
             struct picture_size *ret_size, struct picture_fault *ret_fault)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    JxlDecoder *decoder;

    pthread_once(&once, load);
    if (!is_loaded) {
        picture_fail(options, ret_fault, "decoding JPEG XL needs " LIBRARY ", which is not there");
        return NULL;
    }
    if (options->dtype != TUNDISH_UINT8) {
        picture_fail(options, ret_fault, "a JPEG XL is decoded to uint8 only");
        return NULL;
    }
    decoder = jxl.JxlDecoderCreate(NULL);
    if (decoder == NULL) {
        picture_fail(options, ret_fault, "there is no memory for a decoder of JPEG XL");
        return NULL;
    }
    if (jxl.JxlDecoderSubscribeEvents(decoder, JXL_DEC_BASIC_INFO | JXL_DEC_FULL_IMAGE) !=
            JXL_DEC_SUCCESS ||
        jxl.JxlDecoderSetInput(decoder, bytes.data, bytes.size) != JXL_DEC_SUCCESS) {
        picture_fail(options, ret_fault, "the JPEG XL cannot be decoded");
    } else if (!reach(decoder, JXL_DEC_BASIC_INFO)) {
        /* libjxl asks for more bytes of one that is cut; told that there are none, it would write
         * to standard error. */
        picture_fail(options, ret_fault, "the JPEG XL's header is damaged or truncated");
    } else if (take_head(options, decoder, ret_size, ret_fault)) {
        return decoder;
    }
    jxl.JxlDecoderDestroy(decoder);
    return NULL;
}

static bool
jxl_measure(const struct picture_options *options, struct byte_view bytes,
            struct picture_size *ret_size, struct picture_fault *ret_fault)
{
    JxlDecoder *decoder = open_decoder(options, bytes, ret_size, ret_fault);

    if (decoder != NULL)
        jxl.JxlDecoderDestroy(decoder);
    return decoder != NULL;
}

static bool
jxl_read(const struct picture_options *options, struct byte_view bytes,
         const struct picture_size *size, struct scratch *scratch, void *values,
         struct picture_fault *ret_fault)
{
    const JxlPixelFormat format = { .num_channels = (uint32_t)size->dims[2],
                                    .data_type = JXL_TYPE_UINT8,
                                    .endianness = JXL_NATIVE_ENDIAN };
    size_t room = (size_t)(size->dims[0] * size->dims[1] * size->dims[2]), needed = 0;
    struct picture_size found;
    JxlDecoder *decoder = open_decoder(options, bytes, &found, ret_fault);
    bool is_read;

    (void)scratch;
    if (decoder == NULL)
        return false;
    is_read = reach(decoder, JXL_DEC_NEED_IMAGE_OUT_BUFFER) &&
              jxl.JxlDecoderImageOutBufferSize(decoder, &format, &needed) == JXL_DEC_SUCCESS &&
              needed == room &&
              jxl.JxlDecoderSetImageOutBuffer(decoder, &format, values, room) == JXL_DEC_SUCCESS &&
              reach(decoder, JXL_DEC_FULL_IMAGE);
    jxl.JxlDecoderDestroy(decoder);
    return is_read ||
           picture_fail(options, ret_fault, "the JPEG XL cannot be decoded; is it truncated?");
}

#endif

const struct picture_format picture_jxl = {
    .name = "JPEG XL",
    .library = "libjxl",
#ifdef PICTURE_HAS_JXL
    .measure = jxl_measure,
    .read = jxl_read,
#endif
};
