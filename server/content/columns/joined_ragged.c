/* joined_ragged.c - joining where a column is ragged: tf.concat and tf.stack of RaggedTensors.
 * Lists above the axis must be equally long in all columns. Along the axis, lists are appended to
 * each other (concat), or become the items of a new list (stack). Everything below the axis is
 * copied. */
#include <string.h>

#include "column/literal.h"
#include "content/columns/joined.h"

static const struct column_spec *
input_of(const struct joined *joined, const struct stage_config *config, uint32_t i)
{
    return &config->input->columns[joined->inputs[i]];
}

/* Compute the size of dimension k inside the ragged rows. It must be known and the same in all
 * columns, because the result has no splits for it. */
static tundish_status
join_inside(const struct joined *joined, const struct stage_config *config, int k,
            int64_t *ret_size)
{
    bool along = !joined->is_new && k == (int)joined->axis;
    int64_t size = input_of(joined, config, 0)->shape[k];

    for (uint32_t i = 1; i < joined->count; i++) {
        int64_t other = input_of(joined, config, i)->shape[k];

        if (size < 0 || other < 0 || (!along && other != size))
            return stage_complain(config,
                                  "%s: dimension %d of '%s' and '%s' must be known%s, for it is "
                                  "inside ragged rows",
                                  config->stage->info->name, k, input_of(joined, config, 0)->name,
                                  input_of(joined, config, i)->name, along ? "" : " and the same");
        size = along ? size + other : size;
    }
    *ret_size = size;
    return TUNDISH_OK;
}

tundish_status
joined_ragged_describe(const struct joined *joined, const struct stage_config *config,
                       struct column_spec *result)
{
    int ragged_rank = 1, axis = (int)joined->axis;
    const struct column_spec *first_ragged = NULL;

    for (uint32_t i = 0; i < joined->count; i++) {
        const struct column_spec *column = input_of(joined, config, i);

        if (column->kind != TUNDISH_RAGGED)
            continue;
        if (first_ragged == NULL)
            first_ragged = column;
        if (column->splits_int32 != first_ragged->splits_int32)
            return stage_complain(config,
                                  "%s: '%s' and '%s' have row splits of int32 and int64, which "
                                  "TensorFlow does not join",
                                  config->stage->info->name, first_ragged->name, column->name);
        if (column->ragged_rank > ragged_rank)
            /* The result is as ragged as the most ragged column; tf.concat converts the others
             * first. */
            ragged_rank = column->ragged_rank;
    }
    result->kind = TUNDISH_RAGGED;
    result->splits_int32 = first_ragged->splits_int32;
    result->ragged_rank = ragged_rank + (joined->is_new && axis <= ragged_rank);
    for (int k = 0; k < result->rank; k++) {
        tundish_status status = TUNDISH_OK;

        result->shape[k] = -1;
        if (joined->is_new && k == axis && (k == 0 || k > result->ragged_rank))
            result->shape[k] = joined->count;
        else if (k > result->ragged_rank)
            status =
                join_inside(joined, config, k - (joined->is_new && k > axis), &result->shape[k]);
        if (status != TUNDISH_OK)
            return status;
    }
    return TUNDISH_OK;
}

struct joining {
    const struct joined *joined;
    const struct frame *input;
    size_t bytes; /* of a value */
    int64_t *splits[RANK_MAX];
    int64_t lists[RANK_MAX]; /* of each level, so far */
    uint8_t *values;
    int64_t value_count;
};

static const struct column *
column_at(const struct joining *joining, uint32_t i)
{
    return &joining->input->columns[joining->joined->inputs[i]];
}

/* Append a list of `length` items to the result's level `level`. */
static void
add_list(struct joining *joining, uint32_t level, int64_t length)
{
    int64_t *splits = joining->splits[level];
    int64_t at = joining->lists[level]++;

    splits[at + 1] = splits[at] + length;
}

/* Copy lists [begin, end) of level `from` with all that is in them; they become lists of level
 * `to`. */
static void
copy_lists(struct joining *joining, uint32_t i, uint32_t from, int64_t begin, int64_t end,
           uint32_t to)
{
    const struct column *column = column_at(joining, i);

    for (; from < column->level_count; from++, to++) {
        const struct level *level = &column->levels[from];

        for (int64_t list = begin; list < end; list++)
            add_list(joining, to, level_length(level, list));
        begin = level_begin(level, begin);
        end = level_begin(level, end);
    }
    memcpy(joining->values + (size_t)joining->value_count * joining->bytes,
           (const uint8_t *)column->values + (size_t)begin * joining->bytes,
           (size_t)(end - begin) * joining->bytes);
    joining->value_count += end - begin;
}

/* Find in each column the first of the element's lists at the axis' level, and how many there are.
 * False: lists above the axis have different lengths. */
static bool
find_lists(const struct joining *joining, int64_t element, int64_t *begins, int64_t *ret_count)
{
    const struct joined *joined = joining->joined;
    int64_t count = 1;

    for (uint32_t i = 0; i < joined->count; i++)
        begins[i] = element;
    for (uint32_t k = 0; k < joined->axis; k++) {
        const struct level *first = &column_at(joining, 0)->levels[k];
        int64_t end = level_begin(first, begins[0] + count);

        for (uint32_t i = 1; i < joined->count; i++) {
            const struct level *level = &column_at(joining, i)->levels[k];

            for (int64_t list = 0; list < count; list++)
                if (level_length(level, begins[i] + list) != level_length(first, begins[0] + list))
                    return false;
            begins[i] = level_begin(level, begins[i]);
        }
        begins[0] = level_begin(first, begins[0]);
        count = end - begins[0];
    }
    *ret_count = count;
    return true;
}

/* Copy the levels above the axis from the first column. find_lists made sure that the other
 * columns' are the same. */
static void
add_outer(struct joining *joining, int64_t element)
{
    int64_t begin = element, end = element + 1;

    for (uint32_t k = 0; k < joining->joined->axis; k++) {
        const struct level *level = &column_at(joining, 0)->levels[k];

        for (int64_t list = begin; list < end; list++)
            add_list(joining, k, level_length(level, list));
        begin = level_begin(level, begin);
        end = level_begin(level, end);
    }
}

/* Join the columns' lists number `list` of the element into one list. */
static void
join_lists(struct joining *joining, const int64_t *begins, int64_t list)
{
    const struct joined *joined = joining->joined;
    uint32_t axis = joined->axis;
    int64_t length = 0;

    if (joined->is_new) {
        add_list(joining, axis, joined->count);
        for (uint32_t i = 0; i < joined->count; i++)
            copy_lists(joining, i, axis, begins[i] + list, begins[i] + list + 1, axis + 1);
        return;
    }
    for (uint32_t i = 0; i < joined->count; i++)
        length += level_length(&column_at(joining, i)->levels[axis], begins[i] + list);
    add_list(joining, axis, length);
    for (uint32_t i = 0; i < joined->count; i++) {
        const struct level *level = &column_at(joining, i)->levels[axis];

        copy_lists(joining, i, axis + 1, level_begin(level, begins[i] + list),
                   level_begin(level, begins[i] + list + 1), axis + 1);
    }
}

/* Reserve splits and values for the worst case. A level of the result never has more lists than the
 * columns have in it and in the level above. */
static void
make_room(struct joining *joining, uint32_t rank, struct frame *output)
{
    const struct joined *joined = joining->joined;
    int64_t values = 0;

    for (uint32_t k = 0; k < rank; k++) {
        int64_t lists = joining->input->count;

        for (uint32_t i = 0; i < joined->count; i++) {
            const struct column *column = column_at(joining, i);

            lists += k > 0 ? column_list_count(column, k - 1) : 0;
            lists += k < column->level_count ? column_list_count(column, k) : 0;
        }
        joining->splits[k] =
            scratch_array(output->scratch, (size_t)lists + 1, sizeof *joining->splits[k]);
        joining->splits[k][0] = 0;
    }
    for (uint32_t i = 0; i < joined->count; i++)
        values += column_at(joining, i)->value_count;
    joining->values = frame_values(output, joined->output, (size_t)values * joining->bytes);
}

void
joined_ragged_apply(const struct joined *joined, const struct frame *input, struct frame *output)
{
    const struct column_spec *spec = &output->schema->columns[joined->output];
    struct column *column = &output->columns[joined->output];
    struct joining joining = { .joined = joined,
                               .input = input,
                               .bytes = literal_bytes(spec->dtype) };
    int64_t *begins = scratch_array(output->scratch, joined->count, sizeof *begins), count;

    make_room(&joining, (uint32_t)spec->rank, output);
    for (int64_t i = 0; i < input->count; i++) {
        if (!find_lists(&joining, i, begins, &count)) {
            frame_reject(output, i, "the lists of the columns to join differ in length");
            /* A rejected element is an empty list, so that the splits count one list for each
             * element. */
            add_list(&joining, 0, 0);
            continue;
        }
        add_outer(&joining, i);
        for (int64_t list = 0; list < count; list++)
            join_lists(&joining, begins, list);
    }
    column_clear(column);
    column->count = input->count;
    column->level_count = (uint32_t)spec->rank;
    column->value_count = joining.value_count;
    column->values = joining.values;
    for (uint32_t k = 0; k < column->level_count; k++)
        column->levels[k] = spec->shape[k] >= 0
                                ? (struct level){ .uniform = spec->shape[k] }
                                : (struct level){ .uniform = -1, .splits = joining.splits[k] };
}
