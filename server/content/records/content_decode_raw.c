/* content_decode_raw.c - tf.io.decode_raw, and with a fixed length tf.raw_ops.DecodePaddedRaw. */
#include <string.h>

#include "content/content.h"
#include "core/status.h"

struct decode_raw {
    struct content_targets targets;
    tundish_dtype dtype;
    size_t value_bytes;
    int64_t fixed_bytes; /* -1: as long as the text is */
    bool is_swapped;
};

/* The op DecodeRaw has no unsigned types of 32 and 64 bits. */
static bool
is_raw_dtype(tundish_dtype dtype)
{
    return dtype != TUNDISH_STRING && dtype != TUNDISH_UINT32 && dtype != TUNDISH_UINT64;
}

static tundish_status
read_parameters(struct decode_raw *state, const struct stage_config *config)
{
    const struct spec_value *length = spec_get(config->stage, "fixed_length");
    const struct spec_value *type = spec_get(config->stage, "out_type");

    state->dtype = spec_dtype(config->stage, "out_type");
    state->value_bytes = tnd_dtype_bytes(state->dtype);
    state->is_swapped = !spec_bool(config->stage, "little_endian") && state->value_bytes > 1;
    state->fixed_bytes = -1;
    if (!is_raw_dtype(state->dtype))
        return spec_complain(config->errors, type->line, type->column, "decode_raw cannot give %s",
                             tnd_dtype_name(state->dtype));
    if (length == NULL || length->kind == SPEC_NULL)
        return TUNDISH_OK;
    if (state->dtype == TUNDISH_BOOL || state->dtype == TUNDISH_FLOAT16)
        return spec_complain(config->errors, type->line, type->column,
                             "decode_raw with fixed_length cannot give %s",
                             tnd_dtype_name(state->dtype));
    state->fixed_bytes = length->integer;
    if ((uint64_t)length->integer % state->value_bytes != 0)
        return spec_complain(config->errors, length->line, length->column,
                             "fixed_length %lld is not a multiple of %zu, the bytes of %s",
                             (long long)length->integer, state->value_bytes,
                             tnd_dtype_name(state->dtype));
    return TUNDISH_OK;
}

static tundish_status
decode_raw_open(void *memory, const struct stage_config *config, struct schema *ret_schema,
                bool *ret_batch_wide)
{
    struct decode_raw *state = memory;
    tundish_status status = read_parameters(state, config);

    if (status == TUNDISH_OK)
        status = content_targets_open(config, ret_schema, &state->targets);
    for (uint32_t i = 0; status == TUNDISH_OK && i < state->targets.count; i++) {
        struct column_spec *column = &ret_schema->columns[state->targets.list[i].output];

        if (column->dtype != TUNDISH_STRING || column->kind != TUNDISH_DENSE)
            return stage_complain(config, "column '%s' is %s, but decode_raw needs strings",
                                  config->input->columns[state->targets.list[i].input].name,
                                  tnd_dtype_name(column->dtype));
        if (column->rank >= RANK_MAX)
            return stage_complain(config, "column '%s' has too many dimensions", column->name);
        column->dtype = state->dtype;
        if (column->rank != RANK_UNKNOWN)
            column->shape[column->rank++] =
                state->fixed_bytes < 0 ? -1 : state->fixed_bytes / (int64_t)state->value_bytes;
        if (config->depth > 0 && state->fixed_bytes < 0)
            *ret_batch_wide = true;
    }
    return status;
}

/* The bytes of all texts, if they are equally long and one lies after the other, as records of a
 * file do; else NULL. */
static const uint8_t *
one_stretch(const struct column *texts)
{
    const struct byte_view *views = texts->values;

    for (int64_t i = 1; i < texts->value_count; i++)
        if (views[i].size != views[0].size || views[i].data != views[i - 1].data + views[0].size)
            return NULL;
    return texts->value_count > 0 ? views[0].data : NULL;
}

/* Find the number of values of each text. DecodeRaw makes one tensor, so all texts of an element
 * must be equally long. */
static bool
measure(const struct decode_raw *state, const struct column *texts, struct frame *output,
        int64_t *ret_splits)
{
    const struct byte_view *views = texts->values;
    bool is_even = true;

    ret_splits[0] = 0;
    for (int64_t e = 0; e < texts->count; e++) {
        int64_t begin, end;

        column_value_range(texts, e, e + 1, &begin, &end);
        for (int64_t i = begin; i < end; i++) {
            uint64_t bytes = views[i].size;

            if (bytes % state->value_bytes != 0)
                frame_reject(output, e,
                             "decode_raw: the text has %llu bytes, which is not a multiple of "
                             "%zu, the bytes of %s",
                             (unsigned long long)bytes, state->value_bytes,
                             tnd_dtype_name(state->dtype));
            else if (bytes != views[begin].size)
                frame_reject(output, e,
                             "decode_raw: the texts of a batch must be equally long, but one has "
                             "%llu bytes and another %llu",
                             (unsigned long long)views[begin].size, (unsigned long long)bytes);
            ret_splits[i + 1] = ret_splits[i] + (int64_t)(bytes / state->value_bytes);
            is_even = is_even && views[i].size == views[0].size;
        }
    }
    return is_even;
}

/* Reverse the bytes of `count` values that were big-endian. */
static void
swap_bytes(uint8_t *values, size_t count, size_t width)
{
    for (size_t i = 0; i < count; i++, values += width)
        for (size_t k = 0; k < width / 2; k++) {
            uint8_t byte = values[k];

            values[k] = values[width - 1 - k];
            values[width - 1 - k] = byte;
        }
}

/* Cut every text to the length, or pad it with zeros. */
static void
decode_fixed(const struct decode_raw *state, const struct column *texts, struct frame *output,
             uint32_t index)
{
    const struct byte_view *views = texts->values;
    struct column *column = &output->columns[index];
    size_t wanted = (size_t)state->fixed_bytes;
    size_t all = (size_t)texts->value_count * wanted;
    uint8_t *values = frame_values(output, index, all);
    uint8_t *to = values;

    for (int64_t i = 0; i < texts->value_count; i++, to += wanted) {
        size_t bytes = views[i].size < wanted ? (size_t)views[i].size : wanted;

        if (bytes > 0)
            memcpy(to, views[i].data, bytes);
        memset(to + bytes, 0, wanted - bytes);
    }
    if (state->is_swapped)
        swap_bytes(values, all / state->value_bytes, state->value_bytes);
    column_set_like(column, texts, values);
    column->levels[column->level_count++] =
        (struct level){ .uniform = state->fixed_bytes / (int64_t)state->value_bytes };
    column->value_count = (int64_t)(all / state->value_bytes);
}

/* How many values each text has. Sets how many all have. */
static struct level
level_of_texts(const struct decode_raw *state, const struct column *texts, struct frame *output,
               int64_t *ret_total)
{
    int64_t *splits =
        scratch_array(output->scratch, (size_t)texts->value_count + 1, sizeof *splits);
    bool is_even = measure(state, texts, output, splits);

    *ret_total = splits[texts->value_count];
    return is_even && texts->value_count > 0 ? (struct level){ .uniform = splits[1] }
                                             : (struct level){ .uniform = -1, .splits = splits };
}

static void
copy_texts(const struct decode_raw *state, const struct column *texts, const struct level *level,
           uint8_t *to)
{
    const struct byte_view *views = texts->values;

    for (int64_t i = 0; i < texts->value_count; i++) {
        size_t bytes = (size_t)level_length(level, i) * state->value_bytes;

        if (bytes > 0)
            memcpy(to, views[i].data, bytes);
        to += bytes;
    }
}

static void
decode_whole(const struct decode_raw *state, const struct column *texts, struct frame *output,
             uint32_t index)
{
    const struct byte_view *views = texts->values;
    const uint8_t *stretch = one_stretch(texts);
    struct column *column = &output->columns[index];
    struct level level;
    int64_t total;
    uint8_t *values;

    if (stretch != NULL && views[0].size % state->value_bytes == 0) {
        level = (struct level){ .uniform = (int64_t)(views[0].size / state->value_bytes) };
        total = texts->value_count * level.uniform;
    } else {
        stretch = NULL;
        level = level_of_texts(state, texts, output, &total);
    }
    values = frame_values(output, index, (size_t)total * state->value_bytes);
    if (stretch != NULL)
        memcpy(values, stretch, (size_t)total * state->value_bytes);
    else
        copy_texts(state, texts, &level, values);
    if (state->is_swapped)
        swap_bytes(values, (size_t)total, state->value_bytes);
    column_set_like(column, texts, values);
    column->levels[column->level_count++] = level;
    column->value_count = total;
}

static tundish_status
decode_raw_apply(const void *memory, const struct frame *input, struct frame *output)
{
    const struct decode_raw *state = memory;

    for (uint32_t i = 0; i < state->targets.count; i++) {
        const struct column *texts = &input->columns[state->targets.list[i].input];

        if (texts->level_count == RANK_MAX)
            return tnd_fail(TUNDISH_E_DATA, "decode_raw: a text already has %d dimensions",
                            RANK_MAX);
        if (state->fixed_bytes < 0)
            decode_whole(state, texts, output, state->targets.list[i].output);
        else
            decode_fixed(state, texts, output, state->targets.list[i].output);
    }
    return TUNDISH_OK;
}

static void
decode_raw_close(void *memory)
{
    struct decode_raw *state = memory;

    content_targets_close(&state->targets);
}

const struct content_ops content_decode_raw = {
    .name = "decode_raw",
    .takes_missing = true,
    .state_bytes = sizeof(struct decode_raw),
    .open = decode_raw_open,
    .apply = decode_raw_apply,
    .close = decode_raw_close,
};
