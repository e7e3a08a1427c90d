/* scale.c - tf.Transform's scalings, in float32 (float64 where the result is).
 *
 * A column has a few numbers for each group that was learned by itself (all values, each position
 * of a row, each key, or each position for each key):
 *
 *     z-score    mean, variance  (x - mean) / sqrt(variance); a variance of 0: x - mean
 *     min-max    min, max        (x - min) / (max - min); where they are equal, sigmoid(x)
 *     gaussian   location, scale, left and right h of Tukey's hh distribution, whose inverse it is
 */
#include "content/column_wise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "column/array_loops.h"
#include "column/convert.h"
#include "column/vector.h"
#include "content/learned/keyed.h"
#include "content/learned/learning.h"
#include "content/numbers/tukey.h"
#include "core/memory.h"

enum scale_kind { SCALE_Z_SCORE, SCALE_MIN_MAX, SCALE_0_1, SCALE_GAUSSIAN };

struct scale {
    struct column_wise wise;
    enum scale_kind kind;
    bool per_key;
    uint32_t key; /* column of the input */
    float low, high;
};

enum { PARTS_MAX = 4 };

struct scaled {
    tundish_dtype dtype;      /* of the result */
    bool is_double;           /* computed in float64 */
    int64_t groups;           /* of all keys */
    int64_t positions;        /* of a row: groups learned for each key */
    double *parts[PARTS_MAX]; /* `groups` of each */
    struct vocab *keys;
};

static tundish_status
read_range(struct scale *scale, const struct stage_config *config)
{
    scale->low = 0;
    scale->high = 1;
    if (scale->kind != SCALE_MIN_MAX)
        return TUNDISH_OK;
    scale->low = (float)spec_number(config->stage, "output_min");
    scale->high = (float)spec_number(config->stage, "output_max");
    if (scale->low < scale->high)
        return TUNDISH_OK;
    return stage_complain(config, "%s: output_min %g is not below output_max %g",
                          config->stage->info->name, (double)scale->low, (double)scale->high);
}

/* The dtype that tf.Transform gives the result. With keys kept in a file it always computes
 * float32. */
static tundish_dtype
result_dtype(const struct scale *scale, const struct stage_config *config, tundish_dtype from)
{
    const struct spec_value *dtype;

    if (scale->kind == SCALE_MIN_MAX || scale->kind == SCALE_0_1)
        return TUNDISH_FLOAT32;
    if (scale->per_key && keyed_in_text(config))
        return TUNDISH_FLOAT32;
    dtype = spec_get(config->stage, "output_dtype");
    if (dtype != NULL && dtype->kind != SPEC_NULL)
        return spec_dtype(config->stage, "output_dtype");
    return tnd_dtype_is_integer(from) || from == TUNDISH_BOOL ? TUNDISH_FLOAT32 : from;
}

/* Read one of the numbers that the kind needs, for all groups. The first one read settles how many
 * groups there are. */
static tundish_status
read_part(const struct scale *scale, const struct stage_config *config, const char *column,
          const char *suffix, uint32_t part, struct scaled *scaled)
{
    const char *name = learned_name_of(config, column);
    char *whole = tnd_sprintf("%s%s", scale->per_key ? ".per_key" : "", suffix);
    struct learned_table table = { 0 };
    tundish_status status = learned_table_open(config, name, whole, TUNDISH_FLOAT64, &table);

    if (status == TUNDISH_OK && part > 0 && table.value_count != scaled->groups)
        status = stage_complain(config,
                                "%s: %s%s has %lld values and not %lld; run `tundish "
                                "analyze` again",
                                config->stage->info->name, name, whole,
                                (long long)table.value_count, (long long)scaled->groups);
    if (status == TUNDISH_OK && table.value_count < 1 && !table.has_keys)
        status =
            stage_complain(config, "%s: %s%s is empty", config->stage->info->name, name, whole);
    if (status == TUNDISH_OK && part == 0 && scale->per_key)
        status = keyed_open(config, &table, &scaled->keys);
    if (status == TUNDISH_OK) {
        scaled->groups = table.value_count;
        scaled->positions = 1;
        for (int i = table.has_keys; i < table.rank; i++)
            scaled->positions *= table.shape[i];
        scaled->parts[part] = table.values;
        table.values = NULL;
    }
    learned_table_close(&table);
    free(whole);
    return status;
}

static tundish_status
read_parts(const struct scale *scale, const struct stage_config *config, const char *column,
           struct scaled *scaled)
{
    static const char *const suffixes[][PARTS_MAX] = {
        [SCALE_Z_SCORE] = { ".mean", ".variance" },
        [SCALE_MIN_MAX] = { ".min", ".max" },
        [SCALE_0_1] = { ".min", ".max" },
        [SCALE_GAUSSIAN] = { ".location", ".scale", ".left_tail", ".right_tail" },
    };
    tundish_status status = learned_require(config, learned_name_of(config, column));

    for (uint32_t i = 0; i < PARTS_MAX && suffixes[scale->kind][i] != NULL; i++)
        if (status == TUNDISH_OK)
            status = read_part(scale, config, column, suffixes[scale->kind][i], i, scaled);
    return status;
}

/* Elementwise, a row must have as many values as were learned. */
static tundish_status
check_groups(const struct stage_config *config, const struct scaled *scaled,
             const struct column_spec *column)
{
    int64_t positions = 1;

    if (!spec_bool(config->stage, "elementwise"))
        return scaled->positions == 1
                   ? TUNDISH_OK
                   : stage_complain(config, "%s: one value should have been learned for '%s'",
                                    config->stage->info->name, column->name);
    for (int i = (int)config->depth; i < column->rank; i++)
        positions = column->shape[i] < 0 || positions < 0 ? -1 : positions * column->shape[i];
    if (column->kind == TUNDISH_DENSE && positions == scaled->positions)
        return TUNDISH_OK;
    return stage_complain(config,
                          "%s: elementwise needs rows of %lld values, and '%s' has other rows",
                          config->stage->info->name, (long long)scaled->positions, column->name);
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    const struct scale *scale = state;
    struct scaled *scaled = own;
    tundish_status status = TUNDISH_OK;

    (void)batch_wide;
    if (scale->per_key)
        status = keyed_check(config, column, &config->input->columns[scale->key]);
    if (status != TUNDISH_OK)
        return status;
    if (column->dtype == TUNDISH_STRING)
        return stage_complain(config, "%s: '%s' has dtype string; expected a numeric dtype",
                              config->stage->info->name, column->name);
    scaled->dtype = result_dtype(scale, config, column->dtype);
    scaled->is_double = scaled->dtype == TUNDISH_FLOAT64;
    if (tnd_dtype_is_integer(scaled->dtype) || scaled->dtype == TUNDISH_STRING ||
        scaled->dtype == TUNDISH_BOOL)
        return stage_complain(config, "%s: output_dtype must be a float",
                              config->stage->info->name);
    status = read_parts(scale, config, column->name, scaled);
    if (status == TUNDISH_OK)
        status = check_groups(config, scaled, column);
    column->dtype = scaled->dtype;
    column->has_range = false;
    for (int64_t i = 0; scale->kind == SCALE_Z_SCORE && status == TUNDISH_OK && i < scaled->groups;
         i++)
        /* Take the root once, in the precision of the result: tf.sqrt rounds to it before the
         * division. */
        scaled->parts[1][i] = scaled->is_double ? sqrt(scaled->parts[1][i])
                                                : (double)sqrtf((float)scaled->parts[1][i]);
    return status;
}

static tundish_status
read_parameters(struct scale *scale, enum scale_kind kind, bool per_key,
                const struct stage_config *config)
{
    tundish_status status;

    scale->kind = kind;
    scale->per_key = per_key;
    status = read_range(scale, config);
    return status == TUNDISH_OK && per_key ? content_column_named(config, "key", &scale->key)
                                           : status;
}

/* The group of value i; -1 for a key that was not seen. */
static inline int64_t
group_of(const struct scaled *scaled, const int64_t *lines, int64_t i)
{
    int64_t position = scaled->positions == 1 ? 0 : i % scaled->positions;

    return lines == NULL ? position : lines[i] < 0 ? -1 : lines[i] * scaled->positions + position;
}

#define Z_SCORES(type)                                                                             \
    for (int64_t i = 0; i < count; i++) {                                                          \
        int64_t at = group_of(scaled, lines, i);                                                   \
        type mean = at < 0 ? 0 : (type)scaled->parts[0][at];                                       \
        type deviation = at < 0 ? 0 : (type)scaled->parts[1][at];                                  \
        type above = ((const type *)x)[i] - mean;                                                  \
                                                                                                   \
        ((type *)y)[i] = deviation != 0 ? above / deviation : above;                               \
    }

static void
z_scores(const struct scaled *scaled, const int64_t *lines, const void *x, void *y, int64_t count)
{
    /* The fast path: one mean and one deviation for all. Dividing by 1 leaves x - mean, which is
     * the result where the variance is 0. */
    if (!scaled->is_double && lines == NULL && scaled->groups == 1) {
        float deviation = (float)scaled->parts[1][0];

        array_normalize_loop(x, (size_t)count, (float)scaled->parts[0][0],
                             deviation != 0 ? deviation : 1, y);
    } else if (scaled->is_double) {
        Z_SCORES(double)
    } else {
        Z_SCORES(float)
    }
}

static void
min_max(const struct scale *scale, const struct scaled *scaled, const int64_t *lines,
        const float *x, float *y, int64_t count)
{
    /* The fast path: one range for all, and not empty. */
    if (lines == NULL && scaled->groups == 1 &&
        (float)scaled->parts[0][0] < (float)scaled->parts[1][0]) {
        array_rescale_loop(x, (size_t)count, (float)scaled->parts[0][0], (float)scaled->parts[1][0],
                           scale->low, scale->high, y);
        return;
    }
    /* Where minimum and maximum are equal, tft.scale_by_min_max takes the sigmoid of x. Compute it
     * for all values, since the vector kernel costs little. */
    vector_kernel(VECTOR_SIGMOID, TUNDISH_FLOAT32)->run(y, x, NULL, NULL, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = group_of(scaled, lines, i);
        float least = at < 0 ? 0 : (float)scaled->parts[0][at];
        float most = at < 0 ? 0 : (float)scaled->parts[1][at];
        float part = least < most ? (x[i] - least) / (most - least) : y[i];

        y[i] = part * (scale->high - scale->low) + scale->low;
    }
}

#define GAUSSIANS(type)                                                                            \
    for (int64_t i = 0; i < count; i++) {                                                          \
        int64_t at = group_of(scaled, lines, i);                                                   \
        double above = (double)(type)(((const type *)x)[i] - (type)scaled->parts[0][at]);          \
        double size = scaled->parts[1][at];                                                        \
                                                                                                   \
        ((type *)y)[i] = (type)tukey_inverse(size != 0 ? above / size : above,                     \
                                             scaled->parts[2][at], scaled->parts[3][at]);          \
    }

static void
gaussians(const struct scaled *scaled, const int64_t *lines, const void *x, void *y, int64_t count)
{
    if (scaled->is_double) {
        GAUSSIANS(double)
    } else {
        GAUSSIANS(float)
    }
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct scale *scale = state;
    const struct scaled *scaled = map->own;
    struct scratch *scratch = map->output->scratch;
    tundish_dtype computed = scaled->is_double ? TUNDISH_FLOAT64 : TUNDISH_FLOAT32;
    int64_t count = map->from->value_count;
    const void *x = convert_column(computed, map->spec->dtype, map->from, scratch);
    void *values =
        frame_values(map->output, map->at, (size_t)count * tnd_dtype_bytes(scaled->dtype));
    void *y = scaled->dtype == computed
                  ? values
                  : scratch_array(scratch, (size_t)count, tnd_dtype_bytes(computed));
    const int64_t *lines = NULL;

    if (scale->per_key)
        lines = keyed_lines(scaled->keys, &map->input->columns[scale->key], map->from, map->output);
    if (scale->kind == SCALE_Z_SCORE)
        z_scores(scaled, lines, x, y, count);
    else if (scale->kind == SCALE_GAUSSIAN)
        gaussians(scaled, lines, x, y, count);
    else
        min_max(scale, scaled, lines, x, y, count);
    if (y != values)
        convert_values(scaled->dtype, values, computed, y, (size_t)count);
    column_set_like(map->to, map->from, values);
}

static void
close_scaled(void *own)
{
    struct scaled *scaled = own;

    for (uint32_t k = 0; k < PARTS_MAX; k++)
        free(scaled->parts[k]);
    vocab_close(scaled->keys);
}

#define SCALE(stage_, kind_, per_key_, learned_)                                                   \
    static tundish_status stage_##_read(void *state, const struct stage_config *config)            \
    {                                                                                              \
        return read_parameters(state, kind_, per_key_, config);                                    \
    }                                                                                              \
                                                                                                   \
    static const struct column_wise_ops stage_##_columns = {                                       \
        .own_bytes = sizeof(struct scaled),                                                        \
        .sorts = true,                                                                             \
        .read = stage_##_read,                                                                     \
        .describe = describe,                                                                      \
        .map = map_column,                                                                         \
        .close_own = close_scaled,                                                                 \
    };                                                                                             \
                                                                                                   \
    static const struct content_learning stage_##_learning = { .kind = learned_ };                 \
                                                                                                   \
    const struct content_ops content_##stage_ = {                                                  \
        .name = #stage_,                                                                           \
        .takes_missing = true,                                                                     \
        .learning = &stage_##_learning,                                                            \
        .state_bytes = sizeof(struct scale),                                                       \
        .columns = &stage_##_columns,                                                              \
        .open = column_wise_open,                                                                  \
        .apply = column_wise_apply,                                                                \
        .close = column_wise_close,                                                                \
    }

SCALE(scale_to_z_score, SCALE_Z_SCORE, false, LEARNED_MOMENTS);
SCALE(scale_to_z_score_per_key, SCALE_Z_SCORE, true, LEARNED_MOMENTS);
SCALE(scale_by_min_max, SCALE_MIN_MAX, false, LEARNED_EXTREMES);
SCALE(scale_by_min_max_per_key, SCALE_MIN_MAX, true, LEARNED_EXTREMES);
SCALE(scale_to_0_1, SCALE_0_1, false, LEARNED_EXTREMES);
SCALE(scale_to_0_1_per_key, SCALE_0_1, true, LEARNED_EXTREMES);
SCALE(scale_to_gaussian, SCALE_GAUSSIAN, false, LEARNED_TAILS);
