/* picture.h - pixels out of the bytes of an image file, as TensorFlow's decode ops make them.
 *
 * The format is told by the first bytes, whatever stage asks. Everything in the bytes is hostile:
 * sizes are checked against what the bytes can hold before any memory is asked for.
 *
 * Two steps, so that the pixels can be written where they are wanted: measure, then read. Any
 * thread may call; nothing is kept between calls.
 */
#ifndef CONTENT_IMAGES_PICTURE_H
#define CONTENT_IMAGES_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "column/scratch.h"
#include "core/bytes.h"
#include "core/dtype.h"

struct picture_jpeg {
    int ratio; /* 1, 2, 4, 8 */
    bool fancy_upscaling;
    bool try_recover_truncated;
    bool accurate_dct;
    float acceptable_fraction;

    /* Not 0: shrink to the fewest eighths that still cover this. */
    int64_t cover_height, cover_width;
};

struct picture_options {
    const char *stage;      /* for sentences: decode_jpeg */
    int channels;           /* 0: as they are */
    tundish_dtype dtype;    /* UINT8, UINT16 or FLOAT32 */
    bool takes_everything;  /* BMP and WebP too: decode_image */
    bool expand_animations; /* GIF and WebP give [frames, height, width, channels] */
    struct picture_jpeg jpeg;
};

/* The options of decode_image for a JPEG. */
extern const struct picture_jpeg picture_jpeg_default;

struct picture_size {
    uint32_t rank; /* 3: height, width, channels; 4: frames before them */
    int64_t dims[4];
};

/* The fault of a file, as a sentence that begins with the stage. */
struct picture_fault {
    char text[320];
};

/* The dimensions that picture_read will fill. False: the bytes are bad. */
bool picture_measure(const struct picture_options *options, struct byte_view bytes,
                     struct picture_size *ret_size, struct picture_fault *ret_fault);

/* The pixels, of options->dtype, row-major; `size` is picture_measure's. Scratch holds what is
 * needed meanwhile. False: the bytes are bad, and the pixels have no meaning. */
bool picture_read(const struct picture_options *options, struct byte_view bytes,
                  const struct picture_size *size, struct scratch *scratch, void *values,
                  struct picture_fault *ret_fault);

/* A part of a picture, in pixels. */
struct picture_part {
    int64_t top, left, height, width;
};

/* The receiver of a picture, or of a part of it, that comes row by row: uint8, from the top. */
struct picture_rows {
    /* Called before the first row, and again if the rows start over from the top: `bytes` bytes of
     * memory for the file, with 64 readable ones after them. *part is the whole picture, and may be
     * set to a part that lies within it. NULL: there is no memory, as tnd_error_text says. */
    uint8_t *(*begin)(void *context, const struct picture_size *size, size_t bytes,
                      struct picture_part *part);
    /* A row of the part, with 64 readable bytes after it. */
    void (*row)(void *context, const uint8_t *row);
    void *context;
};

/* Measure and read in one: for options of UINT8 that give 3 dimensions. False: the bytes are bad,
 * which may become known after any row. */
bool picture_read_rows(const struct picture_options *options, struct byte_view bytes,
                       struct scratch *scratch, const struct picture_rows *rows,
                       struct picture_fault *ret_fault);

#endif
