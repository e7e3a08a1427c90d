/* content_cast.c - columns in another dtype. */
#include "column/convert.h"
#include "content/content.h"

struct cast {
    tundish_dtype dtype;
    struct content_targets targets;
};

/* Whether `dtype` holds every value of the column's known range. Only then does the range stay
 * true: a value outside wraps around, as in tf.cast. */
static bool
keeps_range(const struct column_spec *column, tundish_dtype dtype)
{
    int64_t bits = (int64_t)tnd_dtype_bytes(dtype) * 8;
    bool is_signed = dtype == TUNDISH_INT8 || dtype == TUNDISH_INT16 || dtype == TUNDISH_INT32 ||
                     dtype == TUNDISH_INT64;
    int64_t most = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - is_signed)) - 1;

    return tnd_dtype_is_integer(dtype) && column->maximum <= most &&
           column->minimum >= (is_signed ? -most - 1 : 0);
}

static tundish_status
cast_open(void *state, const struct stage_config *config, struct schema *ret_schema,
          bool *ret_batch_wide)
{
    struct cast *cast = state;
    tundish_status status;

    *ret_batch_wide = false;
    cast->dtype = spec_dtype(config->stage, "dtype");
    status = content_targets_open(config, ret_schema, &cast->targets);
    if (status != TUNDISH_OK)
        return status;
    for (uint32_t i = 0; i < cast->targets.count; i++) {
        struct column_spec *column = &ret_schema->columns[cast->targets.list[i].output];

        if (!convert_is_possible(column->dtype, cast->dtype))
            status = stage_complain(
                config, "cast: '%s' is %s, which cannot become %s%s", column->name,
                tnd_dtype_name(column->dtype), tnd_dtype_name(cast->dtype),
                cast->dtype == TUNDISH_STRING ? "; as_string can" : "; string_to_number can");
        column->has_range &= keeps_range(column, cast->dtype);
        column->dtype = cast->dtype;
    }
    return status;
}

static tundish_status
cast_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct cast *cast = state;

    for (uint32_t i = 0; i < cast->targets.count; i++) {
        const struct content_target *target = &cast->targets.list[i];
        const struct column *from = &input->columns[target->input];
        tundish_dtype dtype = input->schema->columns[target->input].dtype;
        void *values;

        /* Share the input's values: nothing writes into a column that a stage passed on. */
        if (dtype == cast->dtype) {
            output->columns[target->output] = *from;
            continue;
        }
        values = frame_values(output, target->output,
                              (size_t)from->value_count * tnd_dtype_bytes(cast->dtype));
        convert_values(cast->dtype, values, dtype, from->values, (size_t)from->value_count);
        column_set_like(&output->columns[target->output], from, values);
    }
    return TUNDISH_OK;
}

static void
cast_close(void *state)
{
    struct cast *cast = state;

    content_targets_close(&cast->targets);
}

const struct content_ops content_cast = {
    .name = "cast",
    .converts = true,
    .takes_missing = true,
    .keeps_pixels = true,
    .state_bytes = sizeof(struct cast),
    .open = cast_open,
    .apply = cast_apply,
    .close = cast_close,
};
