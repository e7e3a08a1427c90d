/* picture.c - find a picture's format, and convert its values to the dtype. */
#include "content/images/picture.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "content/images/pixel_format.h"
#include "content/records/file_kind.h"
#include "core/status.h"

const struct picture_jpeg picture_jpeg_default = {
    .ratio = 1,
    .fancy_upscaling = true,
    .acceptable_fraction = 1.0F,
};

bool
picture_fail(const struct picture_options *options, struct picture_fault *ret_fault,
             const char *format, ...)
{
    va_list arguments;
    int used = snprintf(ret_fault->text, sizeof ret_fault->text, "%s: ", options->stage);

    va_start(arguments, format);
    vsnprintf(ret_fault->text + used, sizeof ret_fault->text - (size_t)used, format, arguments);
    va_end(arguments);
    return false;
}

bool
picture_set_size(const struct picture_options *options, uint32_t rank, const int64_t dims[4],
                 struct picture_size *ret_size, struct picture_fault *ret_fault)
{
    int64_t values = 1;

    for (uint32_t k = 0; k < rank; k++)
        if (dims[k] <= 0 || __builtin_mul_overflow(values, dims[k], &values) ||
            values > PICTURE_VALUES_MAX)
            return picture_fail(options, ret_fault,
                                "the header says %lld by %lld pixels, which is too large",
                                (long long)dims[rank - 2], (long long)dims[rank - 3]);
    ret_size->rank = rank;
    memcpy(ret_size->dims, dims, rank * sizeof *dims);
    return true;
}

static bool
begins_with(struct byte_view bytes, const char *magic, size_t size)
{
    return bytes.size >= size && memcmp(bytes.data, magic, size) == 0;
}

/* Find the format by the first bytes. NULL: the stage does not take it. */
static const struct picture_format *
find_format(const struct picture_options *options, struct byte_view bytes,
            struct picture_fault *ret_fault)
{
    const struct picture_format *format = NULL;
    const char *kind = file_kind(bytes.data, bytes.size);
    bool is_bmp = begins_with(bytes, "BM", 2);
    bool is_webp =
        begins_with(bytes, "RIFF", 4) && bytes.size >= 12 && memcmp(bytes.data + 8, "WEBP", 4) == 0;

    if (bytes.size == 0)
        picture_fail(options, ret_fault,
                     "the input is empty; expected a JPEG, JPEG XL, PNG, GIF, BMP or WebP");
    else if ((is_bmp || is_webp) && !options->takes_everything)
        picture_fail(options, ret_fault, "the bytes are a %s, which only decode_image takes",
                     is_bmp ? "BMP" : "WebP");
    else if (begins_with(bytes, "\xff\xd8\xff", 3))
        format = &picture_jpeg;
    else if (begins_with(bytes, "\211PNG\r\n\032\n", 8))
        format = &picture_png;
    else if (begins_with(bytes, "GIF8", 4))
        format = &picture_gif;
    else if (is_bmp)
        format = &picture_bmp;
    else if (is_webp)
        format = &picture_webp;
    else if (begins_with(bytes, "\xff\x0a", 2) || begins_with(bytes, "\0\0\0\x0cJXL ", 8))
        format = &picture_jxl;
    else
        picture_fail(options, ret_fault,
                     "the bytes are %s; expected a JPEG, JPEG XL, PNG, GIF, BMP or WebP",
                     kind != NULL ? kind : "not an image");
    if (format != NULL && format->read == NULL) {
        picture_fail(options, ret_fault, "the bytes are a %s, and this build has no %s",
                     format->name, format->library);
        return NULL;
    }
    return format;
}

bool
picture_measure(const struct picture_options *options, struct byte_view bytes,
                struct picture_size *ret_size, struct picture_fault *ret_fault)
{
    const struct picture_format *format = find_format(options, bytes, ret_fault);

    return format != NULL && format->measure(options, bytes, ret_size, ret_fault);
}

/* Widen 8 bits as TensorFlow does: to 16 bits by 256 (its PNG reader multiplies by 257), to floats
 * by 1/255. */
static void
widen(tundish_dtype dtype, const uint8_t *from, int64_t count, void *to)
{
    const float step = 1.0F / 255.0F;
    uint16_t *wide = to;
    float *floats = to;

    if (dtype == TUNDISH_UINT16)
        for (int64_t i = 0; i < count; i++)
            wide[i] = (uint16_t)(from[i] << 8);
    else
        for (int64_t i = 0; i < count; i++)
            floats[i] = (float)from[i] * step;
}

bool
picture_read(const struct picture_options *options, struct byte_view bytes,
             const struct picture_size *size, struct scratch *scratch, void *values,
             struct picture_fault *ret_fault)
{
    const struct picture_format *format = find_format(options, bytes, ret_fault);
    bool is_wide = format == &picture_png && options->dtype != TUNDISH_UINT8;
    bool in_place = options->dtype == (is_wide ? TUNDISH_UINT16 : TUNDISH_UINT8);
    int64_t count = 1;
    void *read = values;

    if (format == NULL)
        return false;
    for (uint32_t k = 0; k < size->rank; k++)
        count *= size->dims[k];
    if (!in_place)
        read = scratch_array(scratch, (size_t)count, is_wide ? 2 : 1);
    if (!format->read(options, bytes, size, scratch, read, ret_fault))
        return false;
    if (!in_place && !is_wide) {
        widen(options->dtype, read, count, values);
    } else if (!in_place) {
        const float step = 1.0F / 65535.0F;

        for (int64_t i = 0; i < count; i++)
            ((float *)values)[i] = (float)((const uint16_t *)read)[i] * step;
    }
    return true;
}

bool
picture_read_rows(const struct picture_options *options, struct byte_view bytes,
                  struct scratch *scratch, const struct picture_rows *rows,
                  struct picture_fault *ret_fault)
{
    const struct picture_format *format = find_format(options, bytes, ret_fault);
    struct picture_part part = { 0 };
    struct picture_size size;
    size_t row_bytes;
    uint8_t *values;

    if (format == NULL)
        return false;
    if (format->read_rows != NULL)
        return format->read_rows(options, bytes, scratch, rows, ret_fault);
    if (!format->measure(options, bytes, &size, ret_fault))
        return false;
    row_bytes = (size_t)(size.dims[1] * size.dims[2]);
    part.height = size.dims[0];
    part.width = size.dims[1];
    values = rows->begin(rows->context, &size, (size_t)size.dims[0] * row_bytes, &part);
    if (values == NULL)
        return picture_fail(options, ret_fault, "%s", tnd_error_text());
    if (!format->read(options, bytes, &size, scratch, values, ret_fault))
        return false;
    values += (size_t)part.top * row_bytes + (size_t)(part.left * size.dims[2]);
    for (int64_t y = 0; y < part.height; y++)
        rows->row(rows->context, values + (size_t)y * row_bytes);
    return true;
}
