/* content_cast.c - columns in another dtype. */
#include "column/convert.h"
#include "content/column_wise.h"

struct cast {
    struct column_wise wise;
    tundish_dtype dtype;
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
read_dtype(void *state, const struct stage_config *config)
{
    struct cast *cast = state;

    cast->dtype = spec_dtype(config->stage, "dtype");
    return TUNDISH_OK;
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    const struct cast *cast = state;

    (void)own;
    (void)batch_wide;
    if (!convert_is_possible(column->dtype, cast->dtype))
        return stage_complain(config, "cast: '%s' is %s, which cannot become %s%s", column->name,
                              tnd_dtype_name(column->dtype), tnd_dtype_name(cast->dtype),
                              cast->dtype == TUNDISH_STRING ? "; as_string can"
                                                            : "; string_to_number can");
    column->has_range &= keeps_range(column, cast->dtype);
    column->dtype = cast->dtype;
    return TUNDISH_OK;
}

static void
convert(const void *state, const struct column_map *map)
{
    const struct cast *cast = state;
    size_t count = (size_t)map->from->value_count;
    void *values;

    /* Share the input's values: nothing writes into a column that a stage passed on. */
    if (map->spec->dtype == cast->dtype) {
        *map->to = *map->from;
        return;
    }
    values = frame_values(map->output, map->at, count * tnd_dtype_bytes(cast->dtype));
    convert_values(cast->dtype, values, map->spec->dtype, map->from->values, count);
    column_set_like(map->to, map->from, values);
}

static const struct column_wise_ops columns = {
    .read = read_dtype,
    .describe = describe,
    .map = convert,
};

const struct content_ops content_cast = {
    .name = "cast",
    .converts = true,
    .takes_missing = true,
    .keeps_pixels = true,
    .state_bytes = sizeof(struct cast),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
