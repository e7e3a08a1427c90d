/* fourier.h - the discrete Fourier transform in float64, of any length.
 *
 * kissfft, which spectrum.h takes for float32, comes with single precision only.
 */
#ifndef CONTENT_FOURIER_H
#define CONTENT_FOURIER_H

#include <complex.h>
#include <stdint.h>

struct fourier;

struct fourier *fourier_open(int64_t length);
void fourier_close(struct fourier *fourier); /* accepts NULL */

/* `from`, `to` and `room` are apart, `length` values each. Any thread may call. */
void fourier_transform(const struct fourier *fourier, const double complex *from,
                       double complex *to, double complex *room);

#endif
