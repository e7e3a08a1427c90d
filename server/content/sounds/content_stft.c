/* content_stft.c - the magnitude of tf.signal.stft along the last dimension. */
#include <stdio.h>

#include "content/column_wise.h"
#include "content/sounds/signals.h"
#include "content/sounds/spectrum.h"

struct stft {
    struct column_wise wise;
    struct spectrum of_float32, of_float64;
    int64_t frame_length, fft_length, step;
    bool pad_end;
};

static int64_t
frame_count(const struct stft *state, int64_t samples)
{
    if (state->pad_end)
        return (samples + state->step - 1) / state->step;
    return samples < state->frame_length ? 0 : (samples - state->frame_length) / state->step + 1;
}

/* The dimensions of a spectrum. Without any frame TensorFlow fails if frames would be padded,
 * because it pads only frames that exist. */
static bool
dims_of(const void *memory, int64_t samples, int64_t ret_dims[2], char ret_fault[160])
{
    const struct stft *state = memory;

    ret_dims[0] = samples < 0 ? -1 : frame_count(state, samples);
    ret_dims[1] = state->fft_length / 2 + 1;
    if (ret_dims[0] != 0 || state->frame_length >= state->fft_length)
        return true;
    snprintf(ret_fault, 160,
             "stft: there are fewer samples than frame_length (%lld); use pad_end: true",
             (long long)state->frame_length);
    return false;
}

/* Open a spectrum for each dtype that a column has. */
static void
open_spectrum(struct stft *state, const struct stage_config *config, tundish_dtype dtype)
{
    const struct spec_value *window = spec_get(config->stage, "window");
    struct spectrum *spectrum = dtype == TUNDISH_FLOAT64 ? &state->of_float64 : &state->of_float32;

    if (spectrum->plan == NULL)
        spectrum_open(spectrum, dtype, state->frame_length, state->fft_length,
                      window->kind == SPEC_TEXT ? window->text : NULL, state->frame_length);
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    (void)own;
    if (column->dtype != TUNDISH_FLOAT32 && column->dtype != TUNDISH_FLOAT64)
        return stage_complain(config, "stft: '%s' is %s; expected float32 or float64 (use cast)",
                              column->name, tnd_dtype_name(column->dtype));
    open_spectrum(state, config, column->dtype);
    return signals_open_column(config, state, dims_of, column, batch_wide);
}

static tundish_status
read_lengths(void *memory, const struct stage_config *config)
{
    struct stft *state = memory;
    const struct spec_value *fft = spec_get(config->stage, "fft_length");
    int64_t frame_length = spec_int(config->stage, "frame_length"), fft_length = 1;

    if (!spectrum_is_possible())
        return stage_complain(config, "stage stft is not in this build: kissfft was missing");
    state->step = spec_int(config->stage, "frame_step");
    state->pad_end = spec_bool(config->stage, "pad_end");
    if (frame_length > 1 << 24 || state->step > INT32_MAX)
        return stage_complain(config, "stft: frame_length and frame_step are too large");
    /* tf.signal.stft's default: the smallest power of two that holds a frame. */
    while (fft_length < frame_length)
        fft_length *= 2;
    if (fft != NULL && fft->kind == SPEC_INTEGER)
        fft_length = fft->integer;
    if (fft_length > 1 << 24)
        return stage_complain(config, "stft: fft_length is too large");
    state->frame_length = frame_length;
    state->fft_length = fft_length;
    return TUNDISH_OK;
}

/* Transform all frames of one signal. */
static uint8_t *
transform(const struct stft *state, const struct spectrum *spectrum, const uint8_t *samples,
          int64_t count, void *room, uint8_t *to)
{
    int64_t frames = frame_count(state, count);

    spectrum_frames(spectrum, samples, count, state->step, frames, room, to);
    return to + (size_t)(frames * (state->fft_length / 2 + 1)) * tnd_dtype_bytes(spectrum->dtype);
}

/* Transform every signal of a column. Signals are contiguous along the last dimension. */
static void
transform_column(const struct stft *state, const struct spectrum *spectrum,
                 const struct column *from, struct scratch *scratch, uint8_t *to)
{
    void *room = spectrum_room(spectrum, scratch);
    const uint8_t *samples = from->values;

    for (int64_t e = 0; e < from->count; e++) {
        int64_t length, signals = signals_of(from, e, &length);

        for (int64_t s = 0; s < signals; s++) {
            to = transform(state, spectrum, samples, length, room, to);
            samples += (size_t)length * tnd_dtype_bytes(spectrum->dtype);
        }
    }
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct stft *stft = state;
    bool is_double = map->spec->dtype == TUNDISH_FLOAT64;
    uint8_t *to;

    signals_set_dims(map->from, stft, dims_of, map->output, map->to);
    to = frame_values(map->output, map->at,
                      (size_t)map->to->value_count * tnd_dtype_bytes(map->spec->dtype));
    map->to->values = to;
    transform_column(stft, is_double ? &stft->of_float64 : &stft->of_float32, map->from,
                     map->output->scratch, to);
}

static void
close_spectra(void *memory)
{
    struct stft *state = memory;

    spectrum_close(&state->of_float32);
    spectrum_close(&state->of_float64);
}

static const struct column_wise_ops columns = {
    .read = read_lengths,
    .describe = describe,
    .map = map_column,
    .close = close_spectra,
};

const struct content_ops content_stft = {
    .name = "stft",
    .takes_missing = true,
    .state_bytes = sizeof(struct stft),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
