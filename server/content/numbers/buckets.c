/* buckets.c - numbers to learned buckets: the number of boundaries that are not above a number. */
#include "content/column_wise.h"

#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "content/learned/keyed.h"
#include "content/learned/learning.h"
#include "content/numbers/bins.h"
#include "content/numbers/joined_buckets.h"
#include "core/memory.h"

struct buckets {
    struct column_wise wise;
    bool per_key;
    uint32_t key; /* column of the input */
};

struct bucketed {
    int64_t groups;         /* rows of boundaries: one, or one for each position or key */
    int64_t boundary_count; /* of each */
    double *boundaries;
    float *singles;   /* if exact, and the same for all values; else NULL */
    struct bins bins; /* of them */
    struct vocab *keys;
    struct joined_buckets joined; /* of the keys */
};

/* Keep the boundaries as float32 too if that loses nothing: then float32 values take the fast path
 * of bins.h and find the same buckets. */
static void
read_singles(struct bucketed *bucketed)
{
    bool exact = bucketed->groups == 1;

    bucketed->singles = tnd_zalloc((size_t)bucketed->boundary_count + 1, sizeof(float));
    for (int64_t i = 0; exact && i < bucketed->boundary_count; i++) {
        bucketed->singles[i] = (float)bucketed->boundaries[i];
        exact = (double)bucketed->singles[i] == bucketed->boundaries[i];
    }
    if (exact) {
        bins_open(&bucketed->bins, bucketed->singles, bucketed->boundary_count);
        return;
    }
    free(bucketed->singles);
    bucketed->singles = NULL;
}

/* Read the learned boundaries of one column. The table's values move into `bucketed`. */
static tundish_status
read_boundaries(const struct buckets *buckets, const struct stage_config *config,
                const char *column, struct bucketed *bucketed)
{
    const char *name = learned_name_of(config, column);
    const char *suffix = buckets->per_key ? ".per_key.boundaries" : ".boundaries";
    struct learned_table table = { 0 };
    tundish_status status = learned_require(config, name);

    if (status == TUNDISH_OK)
        status = learned_table_open(config, name, suffix, TUNDISH_FLOAT64, &table);
    if (status == TUNDISH_OK &&
        (table.rank < 1 || (table.rank > 1 && table.value_count < 1 && !table.has_keys)))
        status = stage_complain(config, "%s: %s%s should be a list", config->stage->info->name,
                                name, suffix);
    if (status == TUNDISH_OK && buckets->per_key)
        status = keyed_open(config, &table, &bucketed->keys);
    if (status == TUNDISH_OK) {
        bucketed->boundary_count = table.shape[table.rank - 1];
        bucketed->groups = 1;
        for (int i = 0; i + 1 < table.rank; i++)
            bucketed->groups *= table.shape[i];
        bucketed->boundaries = table.values;
        table.values = NULL;
        if (buckets->per_key)
            joined_buckets_open(bucketed->boundaries, bucketed->groups, bucketed->boundary_count,
                                &bucketed->joined);
        else
            read_singles(bucketed);
    }
    learned_table_close(&table);
    return status;
}

/* Describe `column` as bucket numbers, which run from 0 to the number of boundaries. A key that was
 * not seen gives -1. */
static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    const struct buckets *buckets = state;
    struct bucketed *bucketed = own;
    tundish_status status = TUNDISH_OK;
    int64_t groups = 1;

    (void)batch_wide;
    if (buckets->per_key)
        status = keyed_check(config, column, &config->input->columns[buckets->key]);
    if (status != TUNDISH_OK)
        return status;
    if (column->dtype == TUNDISH_STRING)
        return stage_complain(config, "%s: '%s' has dtype string; expected a numeric dtype",
                              config->stage->info->name, column->name);
    status = read_boundaries(buckets, config, column->name, bucketed);
    if (status != TUNDISH_OK)
        return status;
    for (int i = (int)config->depth; i < column->rank; i++)
        /* With elementwise boundaries, value i of a row belongs to position i, so the row's size
         * must be what was learned. */
        groups = column->shape[i] < 0 ? -1 : groups * column->shape[i];
    if (!buckets->per_key && bucketed->groups != 1 &&
        (groups != bucketed->groups || column->kind != TUNDISH_DENSE))
        return stage_complain(config,
                              "%s: elementwise needs rows of %lld values, and '%s' has other rows",
                              config->stage->info->name, (long long)bucketed->groups, column->name);
    column->dtype = TUNDISH_INT64;
    column->has_range = true;
    column->minimum = buckets->per_key ? -1 : 0;
    column->maximum = bucketed->boundary_count;
    return TUNDISH_OK;
}

static tundish_status
read_key(void *state, const struct stage_config *config)
{
    struct buckets *buckets = state;

    buckets->per_key = true;
    return content_column_named(config, "key", &buckets->key);
}

/* Binary search for the first boundary above `x`. The negated comparison sends NaN to the end,
 * where TensorFlow's upper_bound sends it too. */
static int64_t
bucket_of(const double *boundaries, int64_t count, double x)
{
    int64_t low = 0;

    while (count > 0) {
        int64_t half = count / 2;
        bool goes_right = !(x < boundaries[low + half]);

        low = goes_right ? low + half + 1 : low;
        count = goes_right ? count - half - 1 : half;
    }
    return low;
}

/* Buckets of values with a key each. tf.Transform compares these in float32, whatever dtype they
 * have. */
static void
bucket_by_key(const struct buckets *buckets, const struct column_map *map, int64_t *numbers)
{
    const struct bucketed *bucketed = map->own;
    const float *x =
        convert_column(TUNDISH_FLOAT32, map->spec->dtype, map->from, map->output->scratch);
    const int64_t *lines =
        keyed_lines(bucketed->keys, &map->input->columns[buckets->key], map->from, map->output);

    for (int64_t k = 0; k < map->from->value_count; k++)
        numbers[k] = lines[k] < 0 ? -1 : joined_buckets_find(&bucketed->joined, lines[k], x[k]);
}

/* Buckets of values without keys. Integers are compared as float32, as in TensorFlow: large ones
 * round first. */
static void
bucket_values(const struct bucketed *bucketed, const struct column *from, tundish_dtype dtype,
              struct scratch *scratch, int64_t *numbers)
{
    const float *narrow = NULL;
    const double *wide = NULL;

    if (dtype != TUNDISH_FLOAT64 && bucketed->singles != NULL) {
        bins_find_as(&bucketed->bins, dtype, from->values, (size_t)from->value_count, TUNDISH_INT64,
                     numbers);
        return;
    }
    if (dtype == TUNDISH_FLOAT64)
        wide = from->values;
    else
        narrow = convert_column(TUNDISH_FLOAT32, dtype, from, scratch);
    for (int64_t k = 0; k < from->value_count; k++) {
        int64_t group = k % bucketed->groups;

        numbers[k] =
            bucket_of(&bucketed->boundaries[group * bucketed->boundary_count],
                      bucketed->boundary_count, wide != NULL ? wide[k] : (double)narrow[k]);
    }
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct buckets *buckets = state;
    int64_t *numbers =
        frame_values(map->output, map->at, (size_t)map->from->value_count * sizeof *numbers);

    if (buckets->per_key)
        bucket_by_key(buckets, map, numbers);
    else
        bucket_values(map->own, map->from, map->spec->dtype, map->output->scratch, numbers);
    column_set_like(map->to, map->from, numbers);
}

static void
close_bucketed(void *own)
{
    struct bucketed *bucketed = own;

    free(bucketed->boundaries);
    bins_close(&bucketed->bins);
    free(bucketed->singles);
    vocab_close(bucketed->keys);
    joined_buckets_close(&bucketed->joined);
}

static const struct content_learning learning = { .kind = LEARNED_QUANTILES };

#define BUCKETS(stage_, read_)                                                                     \
    static const struct column_wise_ops stage_##_columns = {                                       \
        .own_bytes = sizeof(struct bucketed),                                                      \
        .sorts = true,                                                                             \
        .read = read_,                                                                             \
        .describe = describe,                                                                      \
        .map = map_column,                                                                         \
        .close_own = close_bucketed,                                                               \
    };                                                                                             \
                                                                                                   \
    const struct content_ops content_##stage_ = {                                                  \
        .name = #stage_,                                                                           \
        .takes_missing = true,                                                                     \
        .learning = &learning,                                                                     \
        .state_bytes = sizeof(struct buckets),                                                     \
        .columns = &stage_##_columns,                                                              \
        .open = column_wise_open,                                                                  \
        .apply = column_wise_apply,                                                                \
        .close = column_wise_close,                                                                \
    }

BUCKETS(bucketize, NULL);
BUCKETS(bucketize_per_key, read_key);
