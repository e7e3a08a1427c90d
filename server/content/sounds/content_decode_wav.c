/* content_decode_wav.c - tf.audio.decode_wav. */
#include <string.h>

#include "column/dims.h"
#include "content/content.h"
#include "content/sounds/wav.h"

enum { VALUES_MAX = 1 << 28 };

struct decode_wav {
    struct content_targets targets;
    int64_t samples, channels; /* -1: as in the file */
    int32_t rate;              /* index of the column for the sample rate; -1: none */
};

static tundish_status
add_rate(struct decode_wav *state, const struct stage_config *config, struct schema *schema)
{
    const struct spec_value *name = spec_get(config->stage, "sample_rate");

    state->rate = -1;
    if (name == NULL || name->kind != SPEC_TEXT)
        return TUNDISH_OK;
    if (state->targets.count != 1)
        return stage_complain(
            config, "decode_wav: sample_rate names one column, but there are %u columns of sound",
            state->targets.count);
    if (schema_find(schema, name->text) >= 0)
        return spec_complain(config->errors, name->line, name->column,
                             "sample_rate: '%s' is a column already", name->text);
    state->rate = (int32_t)schema->count;
    schema_add(schema, name->text, TUNDISH_INT32);
    return TUNDISH_OK;
}

static tundish_status
decode_wav_open(void *memory, const struct stage_config *config, struct schema *ret_schema,
                bool *ret_batch_wide)
{
    struct decode_wav *state = memory;
    tundish_status status = content_targets_open(config, ret_schema, &state->targets);

    *ret_batch_wide = false;
    state->samples = spec_int(config->stage, "desired_samples");
    state->channels = spec_int(config->stage, "desired_channels");
    if (state->channels > INT32_MAX || state->samples > INT32_MAX)
        return stage_complain(config, "decode_wav: desired_channels and desired_samples must be "
                                      "below 2147483648");
    for (uint32_t i = 0; i < state->targets.count && status == TUNDISH_OK; i++) {
        struct column_spec *column = &ret_schema->columns[state->targets.list[i].output];

        if (column->dtype != TUNDISH_STRING || column->rank != 0 || column->kind != TUNDISH_DENSE ||
            config->depth > 0)
            return stage_complain(config,
                                  "decode_wav takes the bytes of one file, but '%s' is %s of %d "
                                  "dimensions: put it before batch",
                                  column->name, tnd_dtype_name(column->dtype), column->rank);
        column->dtype = TUNDISH_FLOAT32;
        column->rank = 2;
        column->shape[0] = state->samples;
        column->shape[1] = state->channels;
    }
    return status == TUNDISH_OK ? add_rate(state, config, ret_schema) : status;
}

/* Write the wanted samples and channels: missing samples are silence, and missing channels repeat
 * the last one. */
static void
write_sound(const struct wav *wav, int64_t samples, int64_t channels, float *to)
{
    for (int64_t s = 0; s < samples; s++)
        for (int64_t c = 0; c < channels; c++)
            *to++ = s < wav->samples ? wav_value(wav, s, c < wav->channels ? c : wav->channels - 1)
                                     : 0.0F;
}

/* The dimensions of one file's sound. VALUES_MAX bounds what parameters may blow a file up to. */
static void
measure(const struct decode_wav *state, const struct wav *wav, struct frame *output, int64_t row,
        int64_t ret_dims[2])
{
    int64_t samples = state->samples >= 0 ? state->samples : wav->samples;
    int64_t channels = state->channels >= 0 ? state->channels : wav->channels;

    if (samples * channels > VALUES_MAX) {
        frame_reject(output, row, "decode_wav: %lld samples of %lld channels are too much",
                     (long long)samples, (long long)channels);
        samples = 0;
    }
    ret_dims[0] = samples;
    ret_dims[1] = channels;
}

static void
decode_column(const struct decode_wav *state, const struct content_target *target,
              const struct frame *input, struct frame *output, int32_t *rates)
{
    const struct byte_view *files = input->columns[target->input].values;
    struct column *column = &output->columns[target->output];
    size_t count = (size_t)output->count;
    struct wav *wavs = scratch_array(output->scratch, count, sizeof *wavs);
    int64_t *dims = scratch_array(output->scratch, count * 2, sizeof *dims);
    float *to;

    for (int64_t i = 0; i < output->count; i++) {
        char fault[160];

        wavs[i] = (struct wav){ 0 };
        if (!wav_open(files[i], &wavs[i], fault))
            frame_reject(output, i, "decode_wav: %s", fault);
        measure(state, &wavs[i], output, i, dims + i * 2);
        rates[i] = (int32_t)wavs[i].rate;
    }
    column_set_dims_each(column, output->count, 2, dims, output->scratch);
    to = frame_values(output, target->output, (size_t)column->value_count * sizeof *to);
    column->values = to;
    for (int64_t i = 0; i < output->count; i++) {
        write_sound(&wavs[i], dims[i * 2], dims[i * 2 + 1], to);
        to += dims[i * 2] * dims[i * 2 + 1];
    }
}

static tundish_status
decode_wav_apply(const void *memory, const struct frame *input, struct frame *output)
{
    const struct decode_wav *state = memory;
    size_t bytes = (size_t)output->count * sizeof(int32_t);
    int32_t *rates = state->rate >= 0 ? frame_values(output, (uint32_t)state->rate, bytes)
                                      : scratch_alloc(output->scratch, bytes);

    for (uint32_t i = 0; i < state->targets.count; i++)
        decode_column(state, &state->targets.list[i], input, output, rates);
    if (state->rate >= 0)
        column_set_scalars(&output->columns[state->rate], output->count, rates);
    return TUNDISH_OK;
}

static void
decode_wav_close(void *memory)
{
    struct decode_wav *state = memory;

    content_targets_close(&state->targets);
}

const struct content_ops content_decode_wav = {
    .name = "decode_wav",
    .takes_missing = true,
    .state_bytes = sizeof(struct decode_wav),
    .open = decode_wav_open,
    .apply = decode_wav_apply,
    .close = decode_wav_close,
};
