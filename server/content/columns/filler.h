/* filler.h - one value of some dtype, and many copies of it: paddings and defaults. */
#ifndef CONTENT_COLUMNS_FILLER_H
#define CONTENT_COLUMNS_FILLER_H

#include "core/bytes.h"
#include "spec/spec.h"

struct filler {
    tundish_dtype dtype;
    size_t bytes; /* of one value in memory */
    union {
        uint8_t raw[16];
        uint16_t half; /* float16, bfloat16 */
        float float32;
        double float64;
        struct byte_view text; /* owned */
    } value;
};

/* Take it from `value` (a parameter called `what`); where that is absent or null, 0, false or "".
 * As for TensorFlow, true is 1 and false 0 where numbers are asked for. */
tundish_status filler_open(const struct spec_value *value, tundish_dtype dtype, const char *what,
                           struct spec_errors *errors, struct filler *ret_filler);
void filler_close(struct filler *filler);

/* Write `count` copies. */
void filler_repeat(const struct filler *filler, void *to, int64_t count);

/* Is the value at `value` the same? (0 and -0 are.) */
bool filler_equals(const struct filler *filler, const void *value);

#endif
