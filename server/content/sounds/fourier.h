/* fourier.h - the discrete Fourier transform in float64, of any length.
 *
 * kissfft, which spectrum.h takes for float32, comes with single precision only, and takes n * n
 * steps for a prime length n.
 */
#ifndef CONTENT_SOUNDS_FOURIER_H
#define CONTENT_SOUNDS_FOURIER_H

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

struct fourier;

struct fourier *fourier_open(int64_t length);
void fourier_close(struct fourier *fourier); /* accepts NULL */

/* Are the prime factors of this length so large that the definition would take much longer than
 * the transforms of a power of two that give the same? */
bool fourier_is_hard(int64_t length);

/* `from` and `to` hold `length` values, `room` as many as fourier_room says; they lie apart. Any
 * thread may call. */
int64_t fourier_room(const struct fourier *fourier);
void fourier_transform(const struct fourier *fourier, const double complex *from,
                       double complex *to, double complex *room);

#endif
