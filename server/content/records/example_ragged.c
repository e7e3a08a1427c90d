/* example_ragged.c - build the levels of a ragged feature, from the innermost partition
 * outwards. */
#include "content/records/example_ragged.h"

#include <string.h>

/* A larger row number is damage. Every row below it would have to be made, so this bounds the
 * memory. */
#define ROW_ID_MAX (INT64_C(1) << 22)

/* One partition that becomes a level. Offsets count items of the level below, over all records. */
struct cutting {
    const struct ragged_input *input;
    const struct feature_partition *partition;
    const struct example_values *key;
    struct frame *output;
    const int64_t *items; /* where each record's items begin; records + 1 */
    int64_t *rows;        /* where each record's rows begin; records + 1 */
    int64_t *splits;      /* of the rows; row_count + 1 */
    int64_t row_count, capacity;
    bool is_odd; /* a rejected element's rows are not as the partition says */
};

int
ragged_rank_of(const struct feature_partition *partitions, uint32_t count, bool is_batch)
{
    while (count > 0 && partitions[count - 1].type == PARTITION_UNIFORM)
        count--;
    return (int)count + (is_batch ? 1 : 0);
}

static void
append_row(struct cutting *cutting, int64_t end)
{
    if (cutting->row_count + 2 > cutting->capacity) {
        int64_t capacity = 2 * cutting->capacity + 64;
        int64_t *splits = scratch_array(cutting->output->scratch, (size_t)capacity, sizeof *splits);

        splits[0] = 0;
        if (cutting->splits != NULL)
            memcpy(splits, cutting->splits, (size_t)(cutting->row_count + 1) * sizeof *splits);
        cutting->splits = splits;
        cutting->capacity = capacity;
    }
    cutting->splits[++cutting->row_count] = end;
}

/* The values of the partition's key in one record. */
static const int64_t *
key_values(const struct cutting *cutting, int64_t record, int64_t *ret_count)
{
    const int64_t *splits = cutting->key->splits;

    *ret_count = splits[record + 1] - splits[record];
    return (const int64_t *)cutting->key->values + splits[record];
}

static void
cut_uniform(struct cutting *cutting, int64_t begin, int64_t end)
{
    int64_t length = cutting->partition->length;
    int64_t first_row = cutting->row_count;

    for (int64_t at = cutting->items[begin]; at + length <= cutting->items[end]; at += length)
        append_row(cutting, at + length);
    for (int64_t r = begin; r < end; r++)
        cutting->rows[r + 1] = first_row + (cutting->items[r + 1] - cutting->items[begin]) / length;
}

/* Rows by lengths or ends. Sums are taken without sign: hostile values wrap, and is_sound finds
 * them. */
static void
cut_by_ends(struct cutting *cutting, int64_t begin, int64_t end)
{
    enum partition_type type = cutting->partition->type;
    int64_t at = cutting->items[begin];

    for (int64_t r = begin; r < end; r++) {
        int64_t count;
        const int64_t *values = key_values(cutting, r, &count);

        for (int64_t i = type == PARTITION_SPLITS ? 1 : 0; i < count; i++) {
            at = (int64_t)((uint64_t)values[i] +
                           (uint64_t)(type == PARTITION_LENGTHS ? at : cutting->items[r]));
            append_row(cutting, at);
        }
        cutting->rows[r + 1] = cutting->row_count;
    }
}

/* Rows by starts: each ends where the next one begins, across records. */
static bool
cut_by_starts(struct cutting *cutting, int64_t begin, int64_t end)
{
    bool is_first = true;

    for (int64_t r = begin; r < end; r++) {
        int64_t count;
        const int64_t *values = key_values(cutting, r, &count);

        for (int64_t i = 0; i < count; i++) {
            int64_t start = (int64_t)((uint64_t)values[i] + (uint64_t)cutting->items[r]);

            if (!is_first)
                append_row(cutting, start);
            else if (start != cutting->items[begin])
                return false;
            is_first = false;
        }
        cutting->rows[r + 1] = cutting->row_count + (is_first ? 0 : 1);
    }
    if (!is_first)
        append_row(cutting, cutting->items[end]);
    return true;
}

/* Rows by the row number of each item. TensorFlow counts the items of each row, up to the last
 * item's row, and ignores their order. */
static bool
cut_by_row_ids(struct cutting *cutting, int64_t begin, int64_t end)
{
    int64_t at = cutting->items[begin];

    for (int64_t r = begin; r < end; r++) {
        int64_t first_row = cutting->row_count;
        int64_t count, most = 0;
        const int64_t *values = key_values(cutting, r, &count);

        for (int64_t i = 0; i < count; i++) {
            if (values[i] < 0 || values[i] > ROW_ID_MAX || values[i] > values[count - 1])
                return false;
            most = values[count - 1] + 1;
        }
        for (int64_t i = 0; i < most; i++)
            append_row(cutting, 0);
        for (int64_t i = 0; i < count; i++)
            cutting->splits[first_row + values[i] + 1]++;
        for (int64_t i = first_row + 1; i <= cutting->row_count; i++)
            cutting->splits[i] = at += cutting->splits[i];
        cutting->rows[r + 1] = cutting->row_count;
    }
    return true;
}

/* Whether rows from `first` on are in order and end with the last item. This check makes every
 * later access safe. */
static bool
is_sound(const struct cutting *cutting, int64_t first, int64_t begin_item, int64_t end_item)
{
    int64_t at = begin_item;

    for (int64_t i = first + 1; i <= cutting->row_count; i++) {
        if (cutting->splits[i] < at)
            return false;
        at = cutting->splits[i];
    }
    return at == end_item;
}

static bool
cut(struct cutting *cutting, int64_t begin, int64_t end)
{
    int64_t count;

    switch (cutting->partition->type) {
    case PARTITION_UNIFORM:
        cut_uniform(cutting, begin, end);
        return true;
    case PARTITION_STARTS:
        return cut_by_starts(cutting, begin, end);
    case PARTITION_ROW_IDS:
        return cut_by_row_ids(cutting, begin, end);
    case PARTITION_SPLITS:
        /* In a batch TensorFlow drops the first split of each record without looking at it. */
        if (!cutting->input->is_batch) {
            const int64_t *values = key_values(cutting, begin, &count);

            if (count == 0 || values[0] != 0)
                return false;
        }
        break;
    case PARTITION_LENGTHS:
    case PARTITION_LIMITS:
        break;
    }
    cut_by_ends(cutting, begin, end);
    return true;
}

/* Give each record one row with all its items, so that later records stay in place. */
static void
cut_anyhow(struct cutting *cutting, int64_t first_row, int64_t begin, int64_t end)
{
    cutting->row_count = first_row;
    cutting->is_odd = true;
    for (int64_t r = begin; r < end; r++) {
        append_row(cutting, cutting->items[r + 1]);
        cutting->rows[r + 1] = cutting->row_count;
    }
}

static void
cut_element(struct cutting *cutting, int64_t element, int64_t begin, int64_t end)
{
    int64_t first_row = cutting->row_count;
    int64_t items = cutting->items[end] - cutting->items[begin];

    if (cut(cutting, begin, end) &&
        is_sound(cutting, first_row, cutting->items[begin], cutting->items[end]))
        return;
    if (cutting->partition->type == PARTITION_UNIFORM)
        frame_reject(cutting->output, element,
                     "feature '%s': %lld values cannot be cut into rows of %lld",
                     cutting->input->name, (long long)items, (long long)cutting->partition->length);
    else
        frame_reject(cutting->output, element,
                     "feature '%s': the row partition '%s' does not fit: it ends at %lld, but "
                     "there are %lld values",
                     cutting->input->name, cutting->partition->key,
                     (long long)(cutting->row_count > first_row
                                     ? cutting->splits[cutting->row_count] - cutting->items[begin]
                                     : 0),
                     (long long)items);
    cut_anyhow(cutting, first_row, begin, end);
}

void
ragged_build(const struct ragged_input *input, int64_t record_count, struct frame *output,
             struct column *column)
{
    struct level inner[RANK_MAX];
    const int64_t *items = input->values->splits;
    const struct level *elements = input->is_batch ? &column->levels[0] : NULL;

    for (uint32_t k = input->partition_count; k-- > 0;) {
        struct cutting cutting = { .input = input,
                                   .partition = &input->partitions[k],
                                   .key = input->keys[k],
                                   .output = output,
                                   .items = items };

        cutting.rows =
            scratch_array(output->scratch, (size_t)record_count + 1, sizeof *cutting.rows);
        cutting.rows[0] = 0;
        append_row(&cutting, 0);
        cutting.row_count = 0;
        for (int64_t e = 0; e < column->count; e++)
            cut_element(&cutting, e, elements == NULL ? e : level_begin(elements, e),
                        elements == NULL ? e + 1 : level_begin(elements, e + 1));
        inner[k] = (struct level){ .uniform = -1, .splits = cutting.splits };
        if (cutting.partition->type == PARTITION_UNIFORM && !cutting.is_odd)
            inner[k] = (struct level){ .uniform = cutting.partition->length };
        items = cutting.rows;
    }
    column->levels[column->level_count++] = (struct level){ .uniform = -1, .splits = items };
    for (uint32_t k = 0; k < input->partition_count; k++)
        column->levels[column->level_count++] = inner[k];
    column->value_count = input->values->splits[record_count];
    column->values = input->values->values;
}
