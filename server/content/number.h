/* number.h - numbers from text, as tf.io.decode_csv and tf.strings.to_number take them.
 *
 * Blanks around and one sign are allowed. Integers are decimal digits and must fit. Floats are
 * decimal or hexadecimal with an optional exponent, inf, infinity or nan in any case; they are
 * rounded once, to nearest even, and what is too large becomes infinite. Nothing else may stand
 * in the text. The text has 64 readable bytes behind it.
 */
#ifndef CONTENT_NUMBER_H
#define CONTENT_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

bool number_int32(const uint8_t *text, uint64_t size, int32_t *ret_number);
bool number_int64(const uint8_t *text, uint64_t size, int64_t *ret_number);
bool number_float32(const uint8_t *text, uint64_t size, float *ret_number);
bool number_float64(const uint8_t *text, uint64_t size, double *ret_number);

#endif
