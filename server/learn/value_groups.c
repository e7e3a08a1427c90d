/* value_groups.c - the groups that a statistic is computed for: all values, each position, each
 * key, or each position of each key. */
#include "learn/value_groups.h"

#include <stdlib.h>
#include <string.h>

#include "column/dims.h"
#include "content/learned/keyed.h"
#include "core/memory.h"
#include "learn/results/artifact.h"

/* Keep one axis apart, as `axis` of Keras' Normalization does; its size must be known to size the
 * result. */
static tundish_status
keep_axis(struct value_groups *groups, const struct analyzer_config *config, int64_t axis)
{
    const struct column_spec *column = config->column;
    int64_t k = axis < 0 ? axis + column->rank : axis;
    char text[128];

    if (column->rank == RANK_UNKNOWN || column->kind != TUNDISH_DENSE || k < 0 ||
        k >= column->rank || column->shape[k] < 0)
        return stage_complain(
            config->content,
            "%s: '%s' has no axis %lld whose size is known (shape %s); axis: null uses one mean "
            "for all",
            config->content->stage->info->name, column->name, (long long)axis,
            column->rank < 0 ? "unknown" : dims_text(column->shape, (uint32_t)column->rank, text));
    groups->axes |= 1U << k;
    return TUNDISH_OK;
}

static tundish_status
keep_axes(struct value_groups *groups, const struct analyzer_config *config)
{
    const struct spec_value *axis = spec_get(config->content->stage, "axis");
    tundish_status status = TUNDISH_OK;

    if (axis->kind == SPEC_INTEGER)
        return keep_axis(groups, config, axis->integer);
    for (uint32_t i = 0; axis->kind == SPEC_LIST && i < axis->count && status == TUNDISH_OK; i++)
        status = keep_axis(groups, config, axis->items[i].integer);
    return status;
}

/* Keep all axes of a row apart: tf.Transform's reduce_instance_dims=False. */
static tundish_status
keep_positions(struct value_groups *groups, const struct analyzer_config *config)
{
    const struct column_spec *column = config->column;

    for (int k = (int)config->content->depth; k < column->rank; k++) {
        if (column->shape[k] < 0 || column->kind != TUNDISH_DENSE)
            break;
        groups->axes |= 1U << k;
    }
    if (column->rank >= 0 && column->kind == TUNDISH_DENSE &&
        __builtin_popcount(groups->axes) == column->rank - (int)config->content->depth)
        return TUNDISH_OK;
    return stage_complain(
        config->content,
        "%s: elementwise needs rows of a known shape, and the shape of '%s' is unknown",
        config->content->stage->info->name, column->name);
}

tundish_status
value_groups_open(struct value_groups *groups, const struct analyzer_config *config)
{
    const struct spec_stage *stage = config->content->stage;
    bool elementwise = spec_has_value(stage, "elementwise") && spec_bool(stage, "elementwise");
    tundish_status status = TUNDISH_OK;

    if (spec_has_value(stage, "axis"))
        status = keep_axes(groups, config);
    if (elementwise)
        status = keep_positions(groups, config);
    if (spec_has_value(stage, "key")) {
        uint32_t key;

        if (status == TUNDISH_OK)
            status = content_column_named(config->content, "key", &key);
        if (status == TUNDISH_OK)
            status =
                keyed_check(config->content, config->column, &config->content->input->columns[key]);
        /* Keys are exact: a statistic for each of them cannot be dropped. */
        groups->key_memory.limit_bytes = INT64_MAX;
        groups->keys = terms_open(&groups->key_memory, -1);
    }
    for (int k = 0; k < config->column->rank; k++)
        if ((groups->axes >> k & 1) != 0)
            groups->shape[groups->rank++] = config->column->shape[k];
    return status;
}

void
value_groups_close(struct value_groups *groups)
{
    terms_close(groups->keys);
    *groups = (struct value_groups){ 0 };
}

/* Positions of one key, or of all values without a key. */
static int64_t
position_count(const struct value_groups *groups)
{
    return dims_product(groups->shape, groups->rank);
}

int64_t
value_groups_count(const struct value_groups *groups)
{
    return (groups->keys != NULL ? terms_count(groups->keys) : 1) * position_count(groups);
}

/* The group of each value: a key's positions are adjacent, in the order of the values in an
 * element. */
static tundish_status
find_keys(struct value_groups *groups, const struct samples *samples, int64_t *ret_groups)
{
    const struct byte_view *keys = samples->key->values;
    int64_t at = 0, key_at = 0, positions = position_count(groups);

    for (int64_t e = 0; e < samples->column->count; e++) {
        int64_t each = keyed_values_each(samples->key, samples->column, e), key_end, unused;

        if (each < 0)
            return tnd_fail(TUNDISH_E_DATA, "the values and keys of an element do not match");
        column_value_range(samples->key, e, e + 1, &unused, &key_end);
        for (; key_at < key_end; key_at++) {
            int64_t key = terms_number(groups->keys, terms_at(groups->keys, keys[key_at]));

            for (int64_t i = 0; i < each; i++)
                ret_groups[at++] = key * positions + i % positions;
        }
    }
    return TUNDISH_OK;
}

/* The group of each value by its position. `index` counts like an odometer; `group` follows it by
 * the strides of the kept axes, so no value needs a division. */
static void
find_positions(const struct value_groups *groups, const struct column *column, int64_t *ret_groups)
{
    int64_t at = 0;

    for (int64_t e = 0; e < column->count; e++) {
        int64_t dims[RANK_MAX], index[RANK_MAX] = { 0 }, strides[RANK_MAX] = { 0 };
        int64_t stride = 1, begin, end, group = 0;

        column_dims(column, e, dims);
        column_value_range(column, e, e + 1, &begin, &end);
        for (uint32_t k = column->level_count; k-- > 0;)
            if ((groups->axes >> k & 1) != 0) {
                strides[k] = stride;
                stride *= dims[k];
            }
        for (int64_t v = begin; v < end; v++) {
            ret_groups[at++] = group;
            for (uint32_t k = column->level_count; k-- > 0;) {
                group += strides[k];
                if (++index[k] < dims[k])
                    break;
                group -= strides[k] * dims[k];
                index[k] = 0;
            }
        }
    }
}

tundish_status
value_groups_find(struct value_groups *groups, const struct samples *samples,
                  const int64_t **ret_groups)
{
    int64_t *found;

    if (groups->keys == NULL && groups->axes == 0) {
        *ret_groups = NULL;
        return TUNDISH_OK;
    }
    found = scratch_array(samples->scratch, (size_t)samples->column->value_count, sizeof *found);
    *ret_groups = found;
    if (groups->keys != NULL)
        return find_keys(groups, samples, found);
    find_positions(groups, samples->column, found);
    return TUNDISH_OK;
}

struct numbered {
    const struct term *term;
    int64_t number;
};

static int
compare_keys(const void *a, const void *b)
{
    return term_compare_text(((const struct numbered *)a)->term,
                             ((const struct numbered *)b)->term);
}

static int64_t *
value_groups_sorted(const struct value_groups *groups)
{
    uint32_t count = groups->keys != NULL ? terms_count(groups->keys) : 0;
    struct numbered *list;
    int64_t *numbers;

    if (groups->keys == NULL)
        return NULL;
    /* Keys are numbered as they are met; the artifact has them sorted, so that it depends only on
     * the set of keys. */
    list = tnd_zalloc((size_t)count + 1, sizeof *list);
    numbers = tnd_zalloc((size_t)count + 1, sizeof *numbers);
    for (uint32_t i = 0; i < count; i++)
        list[i] = (struct numbered){ &terms_list(groups->keys)[i], i };
    qsort(list, count, sizeof *list, compare_keys);
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = list[i].number;
    free(list);
    return numbers;
}

static tundish_status
write_keyed(const struct value_groups *groups, const struct analyzer_config *config,
            const char *suffix, struct artifact_table *table, int64_t each)
{
    int64_t count = terms_count(groups->keys);
    int64_t width = position_count(groups) * (each > 0 ? each : 1);
    int64_t *numbers = value_groups_sorted(groups);
    struct byte_view *keys = tnd_zalloc((size_t)count + 1, sizeof *keys);
    double *sorted = tnd_zalloc((size_t)(count * width) + 1, sizeof *sorted);
    int64_t *sorted_integers = tnd_zalloc((size_t)(count * width) + 1, sizeof *sorted_integers);
    char *whole = tnd_sprintf(".per_key%s", suffix);
    tundish_status status;

    for (int64_t i = 0; i < count; i++) {
        keys[i] = terms_list(groups->keys)[numbers[i]].text;
        for (int64_t k = 0; k < width; k++)
            if (table->integers != NULL)
                sorted_integers[i * width + k] = table->integers[numbers[i] * width + k];
            else
                sorted[i * width + k] = table->numbers[numbers[i] * width + k];
    }
    table->numbers = sorted;
    table->integers = sorted_integers;
    table->keys = keys;
    status = artifact_write_table(config->folder, config->name, whole, table);
    free(whole);
    free(numbers);
    free(keys);
    free(sorted);
    free(sorted_integers);
    return status;
}

tundish_status
value_groups_write(const struct value_groups *groups, const struct analyzer_config *config,
                   const char *suffix, tundish_dtype dtype, int64_t each, const double *numbers,
                   const int64_t *integers)
{
    int64_t shape[RANK_MAX + 2];
    struct artifact_table table = {
        .dtype = dtype, .shape = shape, .numbers = numbers, .integers = integers
    };

    if (groups->keys != NULL)
        shape[table.rank++] = terms_count(groups->keys);
    for (uint32_t i = 0; i < groups->rank; i++)
        shape[table.rank++] = groups->shape[i];
    if (each > 0)
        shape[table.rank++] = each;
    if (groups->keys != NULL)
        return write_keyed(groups, config, suffix, &table, each);
    return artifact_write_table(config->folder, config->name, suffix, &table);
}
