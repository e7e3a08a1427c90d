/* resample.h - an image, or a part of one, brought to another size as tf.image.resize does it.
 *
 * Pixel centres are at halves. Values go through float32 without contraction, in TensorFlow's
 * order, so that the bits are TensorFlow's on every CPU path.
 */
#ifndef CONTENT_IMAGES_RESAMPLE_H
#define CONTENT_IMAGES_RESAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "column/scratch.h"

enum resample_method {
    RESAMPLE_BILINEAR,
    RESAMPLE_NEAREST,
    RESAMPLE_BICUBIC,
    RESAMPLE_AREA,
    RESAMPLE_LANCZOS3,
    RESAMPLE_LANCZOS5,
    RESAMPLE_GAUSSIAN,
    RESAMPLE_MITCHELLCUBIC,
    RESAMPLE_METHODS
};

/* By TensorFlow's name; false: there is none. */
bool resample_method_of(const char *name, enum resample_method *ret_method);

/* Memory for one image after the other: grown when needed, given back with the scratch. */
struct resample_work {
    struct scratch *scratch;
    struct {
        void *data;
        size_t capacity;
    } room[6];
};

/* `bytes` bytes of room `index`, which keep until it is asked for again. */
void *resample_room(struct resample_work *work, unsigned index, size_t bytes);

struct resample {
    enum resample_method method;
    bool antialias;
    int64_t from_height, from_width; /* of the part; both sides at least 1 */
    int64_t to_height, to_width;
    int64_t channels;
    int64_t row_values; /* from one row of the source to the next */
};

/* For uint8 or float32; `from` points to the part's first value, and 64 bytes after the source can
 * be read. Not for NEAREST. */
void resample_bytes(const struct resample *resample, struct resample_work *work,
                    const uint8_t *from, float *to);
void resample_floats(const struct resample *resample, struct resample_work *work, const float *from,
                     float *to);

/* NEAREST moves values of any dtype. */
void resample_nearest(const struct resample *resample, struct resample_work *work, const void *from,
                      size_t value_bytes, void *to);

/* BILINEAR without antialias of uint8 rows that come one after the other, from the part's first to
 * its last: what resample_bytes gives, in `to` or (the other is NULL), cut down to bytes as tf.cast
 * does it, in `to_bytes`. 64 bytes after each row can be read. One at a time for one `work`. */
struct resample_rows;

struct resample_rows *resample_rows_open(const struct resample *resample,
                                         struct resample_work *work, float *to, uint8_t *to_bytes);
void resample_rows_next(struct resample_rows *rows, const uint8_t *row);

#endif
