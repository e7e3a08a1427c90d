/* spectrum.h - short-time Fourier transforms: the magnitudes of overlapping pieces of a signal. */
#ifndef CONTENT_SOUNDS_SPECTRUM_H
#define CONTENT_SOUNDS_SPECTRUM_H

#include <stdbool.h>
#include <stdint.h>

#include "column/scratch.h"
#include "core/dtype.h"

/* Is the library of the transform in this build? */
bool spectrum_is_possible(void);

/* All values are of one dtype, FLOAT32 or FLOAT64. */
struct spectrum {
    tundish_dtype dtype;
    int64_t frame_length; /* samples of a frame; those beyond fft_length are left out */
    int64_t fft_length;
    void *window;            /* frame_length factors, or NULL */
    void *plan;              /* kissfft's, or */
    struct fourier *fourier; /* for float64, and for lengths with large prime factors, or */
    struct fourier_lanes *lanes;
};

/* Windows of tf.signal: hann and hamming, periodic if the length is even; NULL: none. A window
 * shorter than the frame stands in its middle. */
void spectrum_open(struct spectrum *spectrum, tundish_dtype dtype, int64_t frame_length,
                   int64_t fft_length, const char *window, int64_t window_length);
void spectrum_close(struct spectrum *spectrum); /* accepts a zeroed one */

/* Magnitudes of frames that begin `step` samples after each other, fft_length / 2 + 1 of each.
 * Beyond `available` samples there is silence. `room` is spectrum_room's; one for each thread. */
void spectrum_frames(const struct spectrum *spectrum, const void *samples, int64_t available,
                     int64_t step, int64_t frames, void *room, void *ret_magnitudes);
void *spectrum_room(const struct spectrum *spectrum, struct scratch *scratch);

#endif
