/* content_mel_spectrogram.c - keras.layers.MelSpectrogram. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "content/column_wise.h"
#include "content/sounds/signals.h"
#include "content/sounds/spectrum.h"
#include "core/memory.h"

enum { FRAMES_TOGETHER = 4 };

/* The lines whose weight in a bin is not 0. */
struct band {
    int64_t first, count;
};

struct mel_spectrogram {
    struct column_wise wise;
    struct spectrum spectrum;
    int64_t stride, bins, lines; /* lines: of the spectrum */
    struct band *bands;          /* of each bin */
    double *weights;             /* of their lines, band after band */
    bool decibels;
    float range, exponent, least_power, reference; /* reference: in decibels */
};

/* The mel scale of HTK, with the constants that Keras uses. */
static float
mel_of(float hertz)
{
    return 1127.0F * logf(1.0F + hertz / 700.0F);
}

/* Step k of `count` from low to high. The last is high to the bit, as in tf.linspace. */
static float
step_between(float low, float high, int64_t count, int64_t k)
{
    return k == count ? high : low + (high - low) / (float)count * (float)k;
}

/* The weights of triangles: each runs from the centre of the one below to the centre of the one
 * above. The line at 0 Hz has no weight. */
static void
make_bands(struct mel_spectrogram *layer, float nyquist, float lowest, float highest)
{
    float low = mel_of(lowest), high = mel_of(highest);
    int64_t steps = layer->bins + 1;
    size_t used = 0;

    layer->bands = tnd_zalloc((size_t)layer->bins, sizeof *layer->bands);
    for (int64_t k = 0; k < layer->bins; k++) {
        float lower = step_between(low, high, steps, k);
        float centre = step_between(low, high, steps, k + 1);
        float upper = step_between(low, high, steps, k + 2);

        for (int64_t i = 1; i < layer->lines; i++) {
            float mel = mel_of(step_between(0.0F, nyquist, layer->lines - 1, i));
            float rise = (mel - lower) / (centre - lower), fall = (upper - mel) / (upper - centre);
            float weight = rise < fall ? rise : fall;

            if (!(weight > 0))
                continue;
            if (layer->bands[k].count == 0)
                layer->bands[k].first = i;
            layer->bands[k].count = i - layer->bands[k].first + 1;
            layer->weights = tnd_grow(layer->weights, used, sizeof *layer->weights);
            layer->weights[used++] = (double)weight;
        }
    }
}

static int64_t
frame_count(const struct mel_spectrogram *layer, int64_t samples)
{
    int64_t fft = layer->spectrum.fft_length, padded = samples + 2 * (fft / 2);

    return padded < fft ? 0 : (padded - fft) / layer->stride + 1;
}

static bool
dims_of(const void *state, int64_t samples, int64_t ret_dims[2], char ret_fault[160])
{
    const struct mel_spectrogram *layer = state;

    ret_dims[0] = layer->bins;
    ret_dims[1] = samples < 0 ? -1 : frame_count(layer, samples);
    if (samples < 0 || samples > layer->spectrum.fft_length / 2)
        return true;
    snprintf(ret_fault, 160,
             "mel_spectrogram: %lld samples are too few to be mirrored by half an fft_length of "
             "%lld",
             (long long)samples, (long long)layer->spectrum.fft_length);
    return false;
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    const struct mel_spectrogram *layer = state;
    tundish_status status = signals_open_column(config, layer, dims_of, column, batch_wide);

    (void)own;
    /* The loudest value of the whole batch decides what is too quiet. */
    *batch_wide |= config->depth > 0 && layer->decibels;
    column->dtype = TUNDISH_FLOAT32;
    column->has_range = false;
    return status;
}

static tundish_status
read_parameters(void *state, const struct stage_config *config)
{
    struct mel_spectrogram *layer = state;
    const struct spec_value *length = spec_get(config->stage, "sequence_length");
    const struct spec_value *window = spec_get(config->stage, "window");
    const struct spec_value *most = spec_get(config->stage, "max_freq");
    int64_t fft_length = spec_int(config->stage, "fft_length"), frame_length = fft_length;
    double rate = spec_number(config->stage, "sampling_rate");
    double highest =
        most != NULL && most->kind != SPEC_NULL ? spec_number(config->stage, "max_freq") : 0;

    if (!spectrum_is_possible())
        return stage_complain(config,
                              "stage mel_spectrogram is not in this build: kissfft was missing");
    if (length != NULL && length->kind == SPEC_INTEGER)
        frame_length = length->integer;
    if (fft_length < frame_length)
        return stage_complain(config,
                              "mel_spectrogram: fft_length (%lld) must not be less than "
                              "sequence_length (%lld)",
                              (long long)fft_length, (long long)frame_length);
    layer->stride = spec_int(config->stage, "sequence_stride");
    layer->bins = spec_int(config->stage, "num_mel_bins");
    layer->lines = fft_length / 2 + 1;
    if (fft_length > 1 << 24 || layer->stride > INT32_MAX || layer->bins > 1 << 16)
        return stage_complain(config, "mel_spectrogram: fft_length, sequence_stride or "
                                      "num_mel_bins is too large");
    /* Keras' default for max_freq is sampling_rate // 2. */
    if (highest == 0)
        highest = floor(rate / 2);
    layer->decibels = spec_bool(config->stage, "power_to_db");
    layer->range = (float)spec_number(config->stage, "top_db");
    layer->exponent = (float)spec_number(config->stage, "mag_exp");
    layer->least_power = (float)spec_number(config->stage, "min_power");
    layer->reference = fabsf((float)spec_number(config->stage, "ref_power"));
    layer->reference =
        layer->reference > layer->least_power ? layer->reference : layer->least_power;
    layer->reference = 10.0F * (logf(layer->reference) / logf(10.0F));
    spectrum_open(&layer->spectrum, TUNDISH_FLOAT32, fft_length, fft_length,
                  window->kind == SPEC_TEXT ? window->text : NULL, frame_length);
    make_bands(layer, (float)rate / 2.0F, (float)spec_number(config->stage, "min_freq"),
               (float)highest);
    return TUNDISH_OK;
}

struct rooms {
    void *spectrum;
    float *padded, *lines;
};

/* Pad by reflection; the end samples are not repeated. */
static void
pad(const float *samples, int64_t count, int64_t by, float *to)
{
    for (int64_t i = 0; i < by; i++) {
        to[i] = samples[by - i];
        to[by + count + i] = samples[count - 2 - i];
    }
    memcpy(to + by, samples, (size_t)count * sizeof *to);
}

/* Raise to the power. False: not all of them are finite. */
static bool
make_powers(const struct mel_spectrogram *layer, float *lines)
{
    float zeros = 0;

    for (int64_t i = 0; i < layer->lines; i++) {
        lines[i] = layer->exponent == 2.0F ? lines[i] * lines[i] : powf(lines[i], layer->exponent);
        zeros += lines[i] * 0.0F;
    }
    return zeros == 0;
}

/* Sums run in double, and round once. Lines that are not finite count where their weight is 0, too:
 * the sum is NaN then. */
static void
make_frame(const struct mel_spectrogram *layer, const float *lines, bool are_finite, float *to,
           int64_t frames)
{
    const double *weights = layer->weights;

    for (int64_t k = 0; k < layer->bins; k++) {
        const struct band *band = &layer->bands[k];
        double sum = 0;

        for (int64_t i = 0; i < band->count; i++)
            sum += (double)lines[band->first + i] * weights[i];
        for (int64_t i = 0; i < layer->lines && !are_finite; i++)
            if (i < band->first || i >= band->first + band->count)
                sum += (double)lines[i] * 0.0;
        weights += band->count;
        to[k * frames] = (float)sum;
    }
}

/* Transform one signal to [bins, frames]. */
static void
make_signal(const struct mel_spectrogram *layer, const float *samples, int64_t count,
            struct rooms *rooms, float *to)
{
    int64_t by = layer->spectrum.fft_length / 2, frames = frame_count(layer, count);

    pad(samples, count, by, rooms->padded);
    for (int64_t f = 0; f < frames; f++) {
        float *lines = rooms->lines + f % FRAMES_TOGETHER * layer->lines;

        if (f % FRAMES_TOGETHER == 0)
            spectrum_frames(&layer->spectrum, rooms->padded + f * layer->stride,
                            count + 2 * by - f * layer->stride, layer->stride,
                            frames - f < FRAMES_TOGETHER ? frames - f : FRAMES_TOGETHER,
                            rooms->spectrum, lines);
        make_frame(layer, lines, make_powers(layer, lines), to + f, frames);
    }
}

/* Convert to decibels, relative to the loudest value of all signals in the element. */
static void
to_decibels(const struct mel_spectrogram *layer, float *values, int64_t count)
{
    float loudest = -INFINITY, quietest;

    for (int64_t i = 0; i < count; i++) {
        /* The least power keeps the logarithm finite. */
        float power = values[i] > layer->least_power ? values[i] : layer->least_power;

        values[i] = 10.0F * (logf(power) / logf(10.0F)) - layer->reference;
        loudest = values[i] > loudest ? values[i] : loudest;
    }
    quietest = loudest - layer->range;
    for (int64_t i = 0; i < count; i++)
        values[i] = values[i] > quietest ? values[i] : quietest;
}

static void
make_element(const struct mel_spectrogram *layer, const float *samples, int64_t signals,
             int64_t length, struct scratch *scratch, float *to)
{
    int64_t by = layer->spectrum.fft_length / 2, made = layer->bins * frame_count(layer, length);
    struct rooms rooms = {
        .spectrum = spectrum_room(&layer->spectrum, scratch),
        .padded = scratch_array(scratch, (size_t)(length + 2 * by), sizeof(float)),
        .lines = scratch_array(scratch, (size_t)(FRAMES_TOGETHER * layer->lines), sizeof(float)),
    };

    for (int64_t s = 0; s < signals; s++)
        make_signal(layer, samples + s * length, length, &rooms, to + s * made);
    if (layer->decibels)
        to_decibels(layer, to, signals * made);
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct mel_spectrogram *layer = state;
    const struct column *from = map->from;
    struct scratch *scratch = map->output->scratch;
    const float *samples = convert_column(TUNDISH_FLOAT32, map->spec->dtype, from, scratch);
    float *to;

    signals_set_dims(from, layer, dims_of, map->output, map->to);
    to = frame_values(map->output, map->at, (size_t)map->to->value_count * sizeof *to);
    map->to->values = to;
    for (int64_t e = 0; e < from->count; e++) {
        int64_t length, signals = signals_of(from, e, &length);

        if (length > layer->spectrum.fft_length / 2) {
            make_element(layer, samples, signals, length, scratch, to);
            to += signals * layer->bins * frame_count(layer, length);
        }
        samples += signals * length;
    }
}

static void
close_spectrum(void *state)
{
    struct mel_spectrogram *layer = state;

    spectrum_close(&layer->spectrum);
    free(layer->bands);
    free(layer->weights);
}

static const struct column_wise_ops columns = {
    .read = read_parameters,
    .describe = describe,
    .map = map_column,
    .close = close_spectrum,
};

const struct content_ops content_mel_spectrogram = {
    .name = "mel_spectrogram",
    .takes_missing = true,
    .state_bytes = sizeof(struct mel_spectrogram),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
