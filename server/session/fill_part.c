/* fill_part.c - slices that are filled in place, in parts. */
#include "session/fill.h"

#include <string.h>

#include "core/must.h"

/* The size of a part: large enough to pay for the hand-over, small enough to stay in one
 * processor's cache. */
enum { PART_BYTES = 160 << 10, PART_ROWS_MIN = 64, PART_ROWS_MAX = 4096 };

/* References of small batches, which fit into the nearest cache. */
enum { NEAR_BYTES = 16 << 10, CACHE_LINE = 64 };

/* A reader of a string in place may look at this many bytes after it (frame_texts). */
enum { TEXT_SLACK = 64 };

int64_t
fill_rows(const struct fill *fill, const struct deal_slice *slice)
{
    (void)fill;
    return slice->present ? (int64_t)run_of_word(slice->words[0])->row_count : 0;
}

void
fill_bring_near(const struct deal_slice *slice)
{
    const struct run *run = slice->present ? run_of_word(slice->words[0]) : NULL;
    uint64_t bytes = run == NULL ? 0 : run->element_count * run->width * sizeof *run->words;

    for (uint64_t at = 0; at < bytes && at < NEAR_BYTES; at += CACHE_LINE)
        __builtin_prefetch((const uint8_t *)run->words + at);
}

static int64_t
rows_of_part(uint64_t bytes, int64_t rows)
{
    uint64_t row = rows > 0 ? bytes / (uint64_t)rows : 0;
    uint64_t wanted = row > 0 ? PART_BYTES / row : PART_ROWS_MAX;

    must_in_debug(rows >= 0);
    if (row > PART_BYTES / 4) /* one huge row at a time is enough */
        return 4;
    return wanted < PART_ROWS_MIN   ? PART_ROWS_MIN
           : wanted > PART_ROWS_MAX ? PART_ROWS_MAX
                                    : (int64_t)wanted;
}

static uint64_t
texts_bytes(const struct fill_column *column, const struct deal_slice *slice, int64_t rows)
{
    const struct run *run = rows > 0 ? run_of_word(slice->words[0]) : NULL;
    uint64_t bytes = 0;

    must_in_debug(column->row_bytes != NULL);
    for (int64_t i = 0; i < rows; i++)
        bytes += column->row_bytes(run->words + (size_t)i * run->width);
    return bytes;
}

int64_t
fill_describe(const struct fill *fill, const struct deal_slice *slice, struct slot *slot)
{
    const struct schema *schema = &fill->plan->element_spec;
    int64_t rows = fill_rows(fill, slice);
    uint64_t all = 0;

    must_in_debug(fill->in_place);
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct column_spec *spec = &schema->columns[i];
        const struct fill_column *column = &fill->columns[i];
        struct slot_buffer *values = slot_values(slot, i);

        slot->columns[i].shape[0] = rows;
        for (int k = 1; k < spec->rank; k++)
            slot->columns[i].shape[k] = spec->shape[k];
        values->codec = (struct tnd_codec){ 0 };
        if (column->row_bytes == NULL) {
            values->stored_bytes = (uint64_t)(rows * column->row_values) * column->value_bytes;
        } else {
            slot->columns[i].buffers[0].stored_bytes = (uint64_t)(rows + 1) * sizeof(int64_t);
            /* set_text_offsets takes the slack off again: it is room in the arena, not content. */
            values->stored_bytes = texts_bytes(column, slice, rows) + TEXT_SLACK;
        }
        values->decoded_bytes = values->stored_bytes;
        all += values->stored_bytes;
    }
    return rows_of_part(all, rows);
}

/* Where each string will lie. */
static void
set_text_offsets(const struct fill_column *column, const struct deal_slice *slice,
                 struct slot_column *slot)
{
    const struct run *run = slice->present ? run_of_word(slice->words[0]) : NULL;
    struct slot_buffer *values = &slot->buffers[slot->buffer_count - 1];
    int64_t *offsets = slot->buffers[0].data;

    must_in_debug(column->row_bytes != NULL && slot->buffer_count == 2);
    offsets[0] = 0;
    for (int64_t i = 0; i < slot->shape[0]; i++)
        offsets[i + 1] =
            offsets[i] + (int64_t)column->row_bytes(run->words + (size_t)i * run->width);
    must_in_debug(values->stored_bytes == (uint64_t)offsets[slot->shape[0]] + TEXT_SLACK);
    values->stored_bytes = values->decoded_bytes = (uint64_t)offsets[slot->shape[0]];
}

/* Offsets come first: each part then knows where its strings begin, without waiting for the parts
 * before it. */
void
fill_begin(const struct fill *fill, const struct deal_slice *slice, struct slot *slot)
{
    must_in_debug(fill->in_place);
    for (uint32_t i = 0; i < fill->plan->element_spec.count; i++)
        if (fill->columns[i].row_bytes != NULL)
            set_text_offsets(&fill->columns[i], slice, &slot->columns[i]);
}

/* Where rows [begin, end) of a column lie in the slot. */
static void *
part_of_column(const struct fill_column *column, const struct slot_column *slot, int64_t begin,
               int64_t end, size_t *ret_bytes)
{
    uint8_t *data = slot->buffers[slot->buffer_count - 1].data;
    size_t row_bytes = (size_t)column->row_values * column->value_bytes;

    must_in_debug(0 <= begin && begin <= end && end <= slot->shape[0]);
    if (column->row_bytes != NULL) {
        const int64_t *offsets = slot->buffers[0].data;

        *ret_bytes = (size_t)(offsets[end] - offsets[begin]);
        return data + offsets[begin];
    }
    *ret_bytes = (size_t)(end - begin) * row_bytes;
    return data + (size_t)begin * row_bytes;
}

uint64_t
fill_places(const struct fill *fill, int64_t begin, int64_t end, const struct slot *slot,
            struct iovec *ret_places)
{
    uint64_t all = 0;

    must_in_debug(fill->in_place);
    for (uint32_t i = 0; i < fill->plan->element_spec.count; i++) {
        ret_places[i].iov_base = part_of_column(&fill->columns[i], &slot->columns[i], begin, end,
                                                &ret_places[i].iov_len);
        all += ret_places[i].iov_len;
    }
    return all;
}

static struct byte_view *
texts_of_part(const struct slot_column *slot, int64_t begin, int64_t end, struct scratch *scratch)
{
    const int64_t *offsets = slot->buffers[0].data;
    const uint8_t *data = slot->buffers[slot->buffer_count - 1].data;
    struct byte_view *texts = scratch_array(scratch, (size_t)(end - begin), sizeof *texts);

    must_in_debug(0 <= begin && begin <= end);
    for (int64_t i = begin; i < end; i++)
        texts[i - begin] = (struct byte_view){ .data = data + offsets[i],
                                               .size = (size_t)(offsets[i + 1] - offsets[i]) };
    return texts;
}

struct output_column *
fill_part_columns(const struct fill *fill, int64_t begin, int64_t end, const struct slot *slot,
                  struct scratch *scratch)
{
    const struct schema *schema = &fill->plan->element_spec;
    struct output_column *columns = scratch_array(scratch, schema->count, sizeof *columns);

    must_in_debug(fill->in_place && begin < end);
    for (uint32_t i = 0; i < schema->count; i++) {
        const struct fill_column *column = &fill->columns[i];
        bool has_texts = column->row_bytes != NULL;
        size_t bytes;

        columns[i] = (struct output_column){
            .spec = &schema->columns[i],
            .rank = schema->columns[i].rank,
            .value_count = (end - begin) * (has_texts ? 1 : column->row_values),
            .values = has_texts ? (void *)texts_of_part(&slot->columns[i], begin, end, scratch)
                                : part_of_column(column, &slot->columns[i], begin, end, &bytes),
        };
        memcpy(columns[i].shape, slot->columns[i].shape, sizeof columns[i].shape);
        columns[i].shape[0] = end - begin;
    }
    return columns;
}

/* Stages write to the destination if they can. Values that were made elsewhere are copied. */
static tundish_status
copy_values(const char *name, const struct column *column, size_t value_bytes, void *to,
            size_t bytes)
{
    if ((size_t)column->value_count * value_bytes != bytes)
        return tnd_fail(TUNDISH_E_DATA, "column '%s' has %lld values; expected %zu", name,
                        (long long)column->value_count, bytes / value_bytes);
    if (column->values != to && bytes > 0)
        memcpy(to, column->values, bytes);
    return TUNDISH_OK;
}

/* The file may have changed since its index was made, so compare each length with the one that the
 * slot has room for. */
static tundish_status
bring_texts(const char *name, const struct column *column, int64_t begin, int64_t end,
            const struct slot_column *slot)
{
    const struct byte_view *texts = column->values;
    const int64_t *offsets = slot->buffers[0].data;
    uint8_t *data = slot->buffers[slot->buffer_count - 1].data;

    if (column->value_count != end - begin)
        return tnd_fail(TUNDISH_E_DATA, "column '%s' has %lld values; expected %lld", name,
                        (long long)column->value_count, (long long)(end - begin));
    for (int64_t i = begin; i < end; i++) {
        const struct byte_view *text = &texts[i - begin];

        if (text->size != (uint64_t)(offsets[i + 1] - offsets[i]))
            return tnd_fail(TUNDISH_E_DATA, "column '%s': a row has %llu bytes; expected %lld",
                            name, (unsigned long long)text->size,
                            (long long)(offsets[i + 1] - offsets[i]));
        if (text->data != data + offsets[i] && text->size > 0)
            memcpy(data + offsets[i], text->data, text->size);
    }
    return TUNDISH_OK;
}

tundish_status
fill_part(const struct fill *fill, struct evaluation *evaluation, const struct deal_slice *slice,
          int64_t begin, int64_t end, struct slot *slot)
{
    const struct plan_node *root = fill->plan->graph->root;
    const struct run *run = run_of_word(slice->words[0]);
    struct run part = run_part(run, (uint64_t)begin, (uint64_t)(end - begin));
    uint64_t word = run_word(&part);
    uint32_t count = root->schema.count;
    void **destinations = scratch_array(evaluation->scratch, count, sizeof *destinations);
    size_t *bytes = scratch_array(evaluation->scratch, count, sizeof *bytes);
    struct evaluate_request request = {
        .words = &word,
        .stride = 1,
        .count = 1,
        .destinations = destinations,
        .destination_bytes = bytes,
    };
    struct frame frame;
    tundish_status status;

    must_in_debug(fill->in_place && slice->present);
    must_in_debug(0 <= begin && begin < end && (uint64_t)end <= run->row_count);
    for (uint32_t i = 0; i < count; i++)
        destinations[i] =
            part_of_column(&fill->columns[i], &slot->columns[i], begin, end, &bytes[i]);
    status = evaluate(evaluation, root, &request, &frame);
    for (uint32_t i = 0; i < count && status == TUNDISH_OK; i++) {
        const char *name = root->schema.columns[i].name;

        status = fill->columns[i].row_bytes != NULL
                     ? bring_texts(name, &frame.columns[i], begin, end, &slot->columns[i])
                     : copy_values(name, &frame.columns[i], fill->columns[i].value_bytes,
                                   destinations[i], bytes[i]);
    }
    return status;
}
