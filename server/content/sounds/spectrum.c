/* spectrum.c - windows, and the Fourier transform: in float32 by fourier_lanes.h, and where that
 * does not take the length by kissfft; by fourier.h in float64 and for lengths that are hard.
 * The complex transform of kissfft is used although signals are real: it does not write to its
 * plan, so all threads share one. */
#include "content/sounds/spectrum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "content/sounds/fourier.h"
#include "content/sounds/fourier_lanes.h"
#include "core/memory.h"
#include "core/must.h"

/* A periodic window as tf.signal.hann_window makes it: an odd length counts one less. */
static double *
make_window64(const char *name, int64_t length, int64_t frame_length)
{
    double a = strcmp(name, "hann") == 0 ? 0.5 : 0.54, b = 1 - a;
    double *frame = tnd_zalloc((size_t)frame_length, sizeof *frame);
    double *window = frame + (frame_length - length) / 2;
    double n = (double)(length % 2 == 0 ? length : length - 1);

    for (int64_t i = 0; i < length; i++)
        window[i] = length == 1 ? 1.0 : a - b * cos(2 * M_PI * (double)i / n);
    return frame;
}

static void
frame64(const struct spectrum *spectrum, const double *samples, int64_t count, double complex *room,
        double *ret_magnitudes)
{
    double complex *in = room, *out = in + spectrum->fft_length;
    const double *window = spectrum->window;

    for (int64_t i = 0; i < spectrum->fft_length; i++)
        in[i] = i >= count ? 0 : window != NULL ? samples[i] * window[i] : samples[i];
    fourier_transform(spectrum->fourier, in, out, out + spectrum->fft_length);
    for (int64_t i = 0; i <= spectrum->fft_length / 2; i++)
        ret_magnitudes[i] = cabs(out[i]);
}

/* The window in float32, since tf.signal computes it in the dtype of the signal. */
static float *
make_window32(const char *name, int64_t length, int64_t frame_length)
{
    bool is_hann = strcmp(name, "hann") == 0;
    float a = is_hann ? 0.5F : 0.54F, b = is_hann ? 0.5F : 0.46F;
    float *frame = tnd_zalloc((size_t)frame_length, sizeof *frame);
    float *window = frame + (frame_length - length) / 2;
    float n = (float)(length % 2 == 0 ? length : length - 1);

    for (int64_t i = 0; i < length; i++)
        window[i] = length == 1 ? 1.0F : a - b * cosf((float)(2 * M_PI) * (float)i / n);
    return frame;
}

#ifdef SOUND_HAS_KISSFFT

#include <kiss_fft.h>

bool
spectrum_is_possible(void)
{
    return true;
}

static void *
make_plan32(int64_t length)
{
    void *plan = kiss_fft_alloc((int)length, 0, NULL, NULL);

    tnd_must_have(plan != NULL);
    return plan;
}

static void
close_plan32(void *plan)
{
    kiss_fft_free(plan);
}

static void
frame32(const struct spectrum *spectrum, const float *samples, int64_t count, void *room,
        float *ret_magnitudes)
{
    kiss_fft_cpx *in = room, *out = in + spectrum->fft_length;
    const float *window = spectrum->window;

    memset(in, 0, (size_t)spectrum->fft_length * sizeof *in);
    for (int64_t i = 0; i < count; i++)
        in[i].r = window != NULL ? samples[i] * window[i] : samples[i];
    kiss_fft(spectrum->plan, in, out);
    for (int64_t i = 0; i <= spectrum->fft_length / 2; i++)
        ret_magnitudes[i] = sqrtf(out[i].r * out[i].r + out[i].i * out[i].i);
}

#else

bool
spectrum_is_possible(void)
{
    return false;
}

static void *
make_plan32(int64_t length)
{
    (void)length;
    return NULL;
}

static void
close_plan32(void *plan)
{
    (void)plan;
}

/* Compute the magnitudes of one frame. Samples beyond the signal's end count as zeros. */
static void
frame32(const struct spectrum *spectrum, const float *samples, int64_t count, void *room,
        float *ret_magnitudes)
{
    (void)spectrum;
    (void)samples;
    (void)count;
    (void)room;
    (void)ret_magnitudes;
    must(!"a stage that needs this is refused when it is planned");
}

#endif

/* One frame of float32, of which float64 is the better transform. */
static void
frame_hard(const struct spectrum *spectrum, const float *samples, int64_t count,
           double complex *room, float *ret_magnitudes)
{
    double complex *in = room, *out = in + spectrum->fft_length;
    const float *window = spectrum->window;

    for (int64_t i = 0; i < spectrum->fft_length; i++)
        in[i] = i >= count ? 0 : (double)(window != NULL ? samples[i] * window[i] : samples[i]);
    fourier_transform(spectrum->fourier, in, out, out + spectrum->fft_length);
    for (int64_t i = 0; i <= spectrum->fft_length / 2; i++)
        ret_magnitudes[i] = (float)cabs(out[i]);
}

/* Samples of a frame that begins where `left` are left. */
static int64_t
sample_count(const struct spectrum *spectrum, int64_t available)
{
    int64_t count = spectrum->frame_length;

    count = count < spectrum->fft_length ? count : spectrum->fft_length;
    count = count < available ? count : available;
    return count > 0 ? count : 0;
}

/* Some frames, FOURIER_LANES at most. */
static void
frames_in_lanes(const struct spectrum *spectrum, const float *samples, int64_t available,
                int64_t step, int64_t frames, struct lanes_complex *room, float *ret_magnitudes)
{
    int64_t half = spectrum->fft_length / 2;
    lanes_values *magnitudes = (lanes_values *)(room + spectrum->fft_length);
    const float *window = spectrum->window;

    memset(room, 0, (size_t)half * sizeof *room);
    for (int64_t f = 0; f < frames; f++) {
        int64_t count = sample_count(spectrum, available - f * step);
        float *lane = (float *)room + f;

        for (int64_t i = 0; i < count; i++)
            lane[i * FOURIER_LANES] =
                window != NULL ? samples[f * step + i] * window[i] : samples[f * step + i];
    }
    fourier_lanes_magnitudes(spectrum->lanes, room, magnitudes);
    for (int64_t f = 0; f < frames; f++)
        for (int64_t i = 0; i <= half; i++)
            *ret_magnitudes++ = ((const float *)magnitudes)[i * FOURIER_LANES + f];
}

void *
spectrum_room(const struct spectrum *spectrum, struct scratch *scratch)
{
    int64_t values = 2 * spectrum->fft_length;

    if (spectrum->lanes != NULL)
        return scratch_array(scratch, (size_t)values, sizeof(struct lanes_complex));
    values += spectrum->fourier != NULL ? fourier_room(spectrum->fourier) : 0;
    return scratch_array(scratch, (size_t)values, sizeof(double complex));
}

static void
frame_alone(const struct spectrum *spectrum, const void *samples, int64_t count, void *room,
            void *ret_magnitudes)
{
    if (spectrum->dtype == TUNDISH_FLOAT64)
        frame64(spectrum, samples, count, room, ret_magnitudes);
    else if (spectrum->fourier != NULL)
        frame_hard(spectrum, samples, count, room, ret_magnitudes);
    else
        frame32(spectrum, samples, count, room, ret_magnitudes);
}

void
spectrum_frames(const struct spectrum *spectrum, const void *samples, int64_t available,
                int64_t step, int64_t frames, void *room, void *ret_magnitudes)
{
    size_t value_bytes = tnd_dtype_bytes(spectrum->dtype);
    size_t frame_bytes = (size_t)(spectrum->fft_length / 2 + 1) * value_bytes;
    int64_t together = spectrum->lanes != NULL ? FOURIER_LANES : 1;

    for (int64_t f = 0; f < frames; f += together) {
        const uint8_t *from = (const uint8_t *)samples + (size_t)(f * step) * value_bytes;
        uint8_t *to = (uint8_t *)ret_magnitudes + (size_t)f * frame_bytes;
        int64_t left = available - f * step;

        if (spectrum->lanes != NULL)
            frames_in_lanes(spectrum, (const float *)(const void *)from, left, step,
                            frames - f < together ? frames - f : together, room,
                            (float *)(void *)to);
        else
            frame_alone(spectrum, from, sample_count(spectrum, left), room, to);
    }
}

void
spectrum_open(struct spectrum *spectrum, tundish_dtype dtype, int64_t frame_length,
              int64_t fft_length, const char *window, int64_t window_length)
{
    bool is_double = dtype == TUNDISH_FLOAT64;

    *spectrum =
        (struct spectrum){ .dtype = dtype, .frame_length = frame_length, .fft_length = fft_length };
    if (window != NULL && is_double)
        spectrum->window = make_window64(window, window_length, frame_length);
    else if (window != NULL)
        spectrum->window = make_window32(window, window_length, frame_length);
    if (!is_double && fourier_lanes_takes(fft_length))
        spectrum->lanes = fourier_lanes_open(fft_length);
    else if (is_double || fourier_is_hard(fft_length))
        spectrum->fourier = fourier_open(fft_length);
    else
        spectrum->plan = make_plan32(fft_length);
}

void
spectrum_close(struct spectrum *spectrum)
{
    free(spectrum->window);
    fourier_close(spectrum->fourier);
    fourier_lanes_close(spectrum->lanes);
    if (spectrum->plan != NULL)
        close_plan32(spectrum->plan);
    *spectrum = (struct spectrum){ 0 };
}
