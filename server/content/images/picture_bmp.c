/* picture_bmp.c - BMP as far as TensorFlow reads it: uncompressed, with 8, 24 or 32 bits. */
#include <stdlib.h>
#include <string.h>

#include "content/images/pixel_format.h"

struct bmp {
    int64_t offset, width, height, row_bytes;
    int stored, channels; /* bytes of a pixel in the file; values of one that comes out */
    bool top_down;
};

static int32_t
int_at(struct byte_view bytes, size_t offset)
{
    uint32_t value = 0;

    for (size_t i = 4; i-- > 0;)
        value = value << 8 | bytes.data[offset + i];
    return (int32_t)value;
}

/* Read the header, and check every size against the file before any pixel is read. A negative
 * height means rows from the top. */
static bool
read_header(const struct picture_options *options, struct byte_view bytes, struct bmp *ret_bmp,
            struct picture_fault *ret_fault)
{
    struct bmp bmp;
    int64_t height;

    if (options->channels == 1)
        return picture_fail(options, ret_fault, "a BMP has 3 or 4 channels, not 1");
    if (bytes.size < 32)
        return picture_fail(options, ret_fault, "the BMP has %zu bytes, and its header needs 32",
                            bytes.size);
    bmp.offset = int_at(bytes, 10);
    bmp.width = int_at(bytes, 18);
    height = int_at(bytes, 22);
    bmp.stored = (int16_t)(bytes.data[28] | bytes.data[29] << 8) / 8;
    bmp.height = llabs(height);
    bmp.top_down = height < 0;
    if (bmp.stored != 1 && bmp.stored != 3 && bmp.stored != 4)
        return picture_fail(options, ret_fault, "the BMP has %d bits a pixel, not 8, 24 or 32",
                            bmp.stored * 8);
    if (bmp.width <= 0 || height == 0 || bmp.offset < 0 || bmp.width * bmp.height >= INT32_MAX / 8)
        return picture_fail(options, ret_fault, "the BMP says it is %lld by %lld pixels",
                            (long long)bmp.width, (long long)height);
    /* A BMP's rows are padded to four bytes. */
    bmp.row_bytes = (bmp.stored * bmp.width + 3) / 4 * 4;
    if (bmp.offset + (bmp.height - 1) * bmp.row_bytes + bmp.width * bmp.stored >
        (int64_t)bytes.size)
        return picture_fail(options, ret_fault,
                            "the BMP says it is %lld by %lld pixels, and its %zu bytes do not hold "
                            "them",
                            (long long)bmp.width, (long long)bmp.height, bytes.size);
    bmp.channels = options->channels != 0 ? options->channels : bmp.stored;
    *ret_bmp = bmp;
    return true;
}

static bool
bmp_measure(const struct picture_options *options, struct byte_view bytes,
            struct picture_size *ret_size, struct picture_fault *ret_fault)
{
    struct bmp bmp;
    int64_t dims[4];

    if (!read_header(options, bytes, &bmp, ret_fault))
        return false;
    dims[0] = bmp.height;
    dims[1] = bmp.width;
    dims[2] = bmp.channels;
    return picture_set_size(options, 3, dims, ret_size, ret_fault);
}

static void
read_pixel(const struct bmp *bmp, const uint8_t *from, uint8_t *to)
{
    for (int c = 0; c < bmp->channels; c++) {
        if (c == 3)
            to[c] = bmp->stored == 4 ? from[3] : 255;
        else
            to[c] = bmp->stored == 1 ? from[0] : from[2 - c];
    }
}

static bool
bmp_read(const struct picture_options *options, struct byte_view bytes,
         const struct picture_size *size, struct scratch *scratch, void *values,
         struct picture_fault *ret_fault)
{
    struct bmp bmp;
    uint8_t *to = values;

    (void)size;
    (void)scratch;
    if (!read_header(options, bytes, &bmp, ret_fault))
        return false;
    for (int64_t y = 0; y < bmp.height; y++) {
        const uint8_t *from =
            bytes.data + bmp.offset + (bmp.top_down ? y : bmp.height - 1 - y) * bmp.row_bytes;

        for (int64_t x = 0; x < bmp.width; x++, from += bmp.stored, to += bmp.channels)
            read_pixel(&bmp, from, to);
    }
    return true;
}

const struct picture_format picture_bmp = {
    .name = "BMP",
    .measure = bmp_measure,
    .read = bmp_read,
};
