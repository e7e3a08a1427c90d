/* content_stft.c - the magnitude of tf.signal.stft along the last dimension. */
#include <string.h>

#include "content/content.h"
#include "column/convert.h"
#include "column/dims.h"
#include "sound/spectrum.h"

struct stft {
    struct content_targets targets;
    struct spectrum spectrum;
    int64_t step;
    bool pad_end;
};

static int64_t
frame_count(const struct stft *state, int64_t samples)
{
    if (state->pad_end)
        return (samples + state->step - 1) / state->step;
    return samples < state->spectrum.frame_length
               ? 0
               : (samples - state->spectrum.frame_length) / state->step + 1;
}

static tundish_status
open_column(const struct stft *state, const struct content_config *config,
            struct column_spec *column)
{
    int64_t samples;

    if (column->dtype != TUNDISH_FLOAT32)
        return content_complain(config, "stft: '%s' is %s, and float32 is needed (cast makes it)",
                                column->name, tnd_dtype_name(column->dtype));
    if (column->kind != TUNDISH_DENSE || column->rank < 1 || column->rank >= RANK_MAX)
        return content_complain(config, "stft: '%s' must be dense, of 1 to %d dimensions",
                                column->name, RANK_MAX - 1);
    samples = column->shape[column->rank - 1];
    column->shape[column->rank - 1] = samples < 0 ? -1 : frame_count(state, samples);
    column->shape[column->rank++] = state->spectrum.fft_length / 2 + 1;
    return TUNDISH_OK;
}

static tundish_status
stft_open(void *memory, const struct content_config *config, struct schema *ret_schema,
          bool *ret_batch_wide)
{
    struct stft *state = memory;
    const struct spec_value *fft = spec_get(config->stage, "fft_length");
    const struct spec_value *window = spec_get(config->stage, "window");
    int64_t frame_length = spec_int(config->stage, "frame_length"), fft_length = 1;
    tundish_status status;

    *ret_batch_wide = false;
    if (!spectrum_is_possible())
        return content_complain(config, "stage stft is not in this build: kissfft was missing");
    state->step = spec_int(config->stage, "frame_step");
    state->pad_end = spec_bool(config->stage, "pad_end");
    if (frame_length > 1 << 24 || state->step > INT32_MAX)
        return content_complain(config, "stft: frame_length and frame_step are too large");
    while (fft_length < frame_length)
        fft_length *= 2;
    if (fft != NULL && fft->kind == SPEC_INTEGER)
        fft_length = fft->integer;
    if (fft_length > 1 << 24)
        return content_complain(config, "stft: fft_length is too large");
    spectrum_open(&state->spectrum, frame_length, fft_length,
                  window->kind == SPEC_TEXT ? window->text : NULL, frame_length);
    status = content_targets_open(config, ret_schema, &state->targets);
    for (uint32_t i = 0; i < state->targets.count && status == TUNDISH_OK; i++)
        status = open_column(state, config, &ret_schema->columns[state->targets.list[i].output]);
    return status;
}

/* The shapes: the last dimension becomes two. */
static void
set_shape(const struct stft *state, const struct column *from, struct frame *output,
          struct column *column)
{
    struct scratch *scratch = output->scratch;
    uint32_t rank = from->level_count;
    int64_t *dims = scratch_array(scratch, (size_t)from->count * (rank + 1), sizeof *dims);

    for (int64_t i = 0; i < from->count; i++) {
        int64_t own[RANK_MAX];

        column_dims(from, i, own);
        own[rank] = state->spectrum.fft_length / 2 + 1;
        own[rank - 1] = frame_count(state, own[rank - 1]);
        /* No frame at all is none of the spectrum either, but TensorFlow fills up only frames. */
        if (own[rank - 1] == 0 && state->spectrum.frame_length < state->spectrum.fft_length)
            frame_reject(output, i,
                         "stft: there are fewer samples than frame_length (%lld); "
                         "pad_end fills up",
                         (long long)state->spectrum.frame_length);
        memcpy(dims + i * (rank + 1), own, (rank + 1) * sizeof *dims);
    }
    column_set_dims_each(column, from->count, rank + 1, dims, scratch);
}

static float *
transform(const struct stft *state, const float *samples, int64_t count, void *room, float *to)
{
    int64_t frames = frame_count(state, count);

    for (int64_t f = 0; f < frames; f++) {
        spectrum_frame(&state->spectrum, samples + f * state->step, count - f * state->step, room,
                       to);
        to += state->spectrum.fft_length / 2 + 1;
    }
    return to;
}

static tundish_status
stft_apply(const void *memory, const struct frame *input, struct frame *output)
{
    const struct stft *state = memory;
    void *room = spectrum_room(&state->spectrum, output->scratch);

    for (uint32_t i = 0; i < state->targets.count; i++) {
        const struct content_target *target = &state->targets.list[i];
        const struct column *from = &input->columns[target->input];
        struct column *column = &output->columns[target->output];
        const float *samples = from->values;
        float *to;

        set_shape(state, from, output, column);
        to = frame_values(output, target->output, (size_t)column->value_count * sizeof *to);
        column->values = to;
        for (int64_t e = 0; e < from->count; e++) {
            int64_t dims[RANK_MAX], length, signals;

            column_dims(from, e, dims);
            length = dims[from->level_count - 1];
            signals = dims_product(dims, from->level_count - 1);
            for (int64_t s = 0; s < signals; s++, samples += length)
                to = transform(state, samples, length, room, to);
        }
    }
    return TUNDISH_OK;
}

static void
stft_close(void *memory)
{
    struct stft *state = memory;

    spectrum_close(&state->spectrum);
    content_targets_close(&state->targets);
}

const struct content_ops content_stft = {
    .name = "stft",
    .state_bytes = sizeof(struct stft),
    .open = stft_open,
    .apply = stft_apply,
    .close = stft_close,
};
