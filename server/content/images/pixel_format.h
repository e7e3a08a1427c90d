/* pixel_format.h - the interface of picture.c to each image format; no other file includes this. */
#ifndef CONTENT_IMAGES_PIXEL_FORMAT_H
#define CONTENT_IMAGES_PIXEL_FORMAT_H

#include "content/images/picture.h"

/* One format; without functions if its library is not in this build. Readers give uint8, or uint16
 * if `wide` (a PNG that is not wanted as uint8). */
struct picture_format {
    const char *name;
    const char *library; /* of a format that can be left out */
    bool (*measure)(const struct picture_options *options, struct byte_view bytes,
                    struct picture_size *ret_size, struct picture_fault *ret_fault);
    bool (*read)(const struct picture_options *options, struct byte_view bytes,
                 const struct picture_size *size, struct scratch *scratch, void *values,
                 struct picture_fault *ret_fault);
    /* As picture_read_rows; NULL: it can only be read whole. */
    bool (*read_rows)(const struct picture_options *options, struct byte_view bytes,
                      struct scratch *scratch, const struct picture_rows *rows,
                      struct picture_fault *ret_fault);
};

extern const struct picture_format picture_jpeg;
extern const struct picture_format picture_png;
extern const struct picture_format picture_bmp;
extern const struct picture_format picture_gif;
extern const struct picture_format picture_webp;
extern const struct picture_format picture_jxl;

/* No file becomes more values than this, whatever its header says. */
#define PICTURE_VALUES_MAX (INT64_C(1) << 30)

/* Write the sentence and return false. */
bool picture_fail(const struct picture_options *options, struct picture_fault *ret_fault,
                  const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Set a size; false if that is more than a picture may be. */
bool picture_set_size(const struct picture_options *options, uint32_t rank, const int64_t dims[4],
                      struct picture_size *ret_size, struct picture_fault *ret_fault);

#endif
