/* fourier_lanes.h - the discrete Fourier transform in float32 of four real frames side by side. The
 * length is a power of two. A frame's values do not depend on its neighbours.
 */
#ifndef CONTENT_SOUNDS_FOURIER_LANES_H
#define CONTENT_SOUNDS_FOURIER_LANES_H

#include <stdbool.h>
#include <stdint.h>

enum { FOURIER_LANES = 4, FOURIER_LANES_LEAST = 8 };

/* A value of each frame. */
typedef float lanes_values __attribute__((vector_size(FOURIER_LANES * sizeof(float))));

struct lanes_complex {
    lanes_values re, im;
};

struct fourier_lanes;

bool fourier_lanes_takes(int64_t length);
struct fourier_lanes *fourier_lanes_open(int64_t length);
void fourier_lanes_close(struct fourier_lanes *fourier); /* accepts NULL */

/* `room` holds `length` values. Its first half are the samples, those at even places as real parts
 * and those at odd ones as imaginary parts. ret_magnitudes holds length / 2 + 1. Any thread may
 * call. */
void fourier_lanes_magnitudes(const struct fourier_lanes *fourier, struct lanes_complex *room,
                              lanes_values *ret_magnitudes);

#endif
