/* half.h - float16 and bfloat16: to float exactly, from float or double to the nearest, ties to
 * even.
 */
#ifndef TND_CORE_HALF_H
#define TND_CORE_HALF_H

#include <stdint.h>

float tnd_half_to_float(uint16_t half);
uint16_t tnd_half_from_float(float value);
uint16_t tnd_half_from_double(double value);

float tnd_bfloat_to_float(uint16_t bfloat);
uint16_t tnd_bfloat_from_float(float value);
uint16_t tnd_bfloat_from_double(double value);

#endif
