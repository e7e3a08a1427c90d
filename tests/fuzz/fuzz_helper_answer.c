/* fuzz_helper_answer.c - a server against a helper that knows the key and answers with anything at
 * all: columns that are taken fit together, lie within the answer, and have the rows of the part.
 *
 * The input is the stream's number, whether the rows are to lie apart from the slot, and the
 * answer.
 */
#include "helper_streams.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

enum { HEAD_BYTES = 2 };

/* Read every byte, as trainers may. */
static uint64_t
sum_of(const struct slot_buffer *buffer)
{
    const uint8_t *bytes = buffer->data;
    uint64_t sum = 0;

    for (uint64_t i = 0; i < buffer->stored_bytes; i++)
        sum += bytes[i];
    return sum;
}

static void
check_steps(const struct slot_buffer *buffer, uint64_t count, uint64_t end)
{
    const uint8_t *steps = buffer->data;

    must(buffer->stored_bytes == (count + 1) * sizeof(int64_t) && load_u64(steps) == 0);
    for (uint64_t i = 0; i < count; i++)
        must(load_u64(steps + 8 * i) <= load_u64(steps + 8 * (i + 1)));
    must(load_u64(steps + 8 * count) == end);
}

static void
check_indices(const struct slot_column *column, int rank)
{
    const struct slot_buffer *indices = &column->buffers[0];

    for (uint64_t i = 0; i < indices->stored_bytes / 8; i++) {
        int64_t index = (int64_t)load_u64((const uint8_t *)indices->data + 8 * i);

        must(index >= 0 && index < column->shape[i % (uint64_t)rank]);
    }
}

/* Some columns in full; all are read. */
static void
check_whole(const struct helper_pair *pair)
{
    const struct schema *schema = &pair->session.plan->element_spec;
    const struct slot *slot = &pair->line.slots[0];
    uint64_t sum = 0;

    for (uint32_t i = 0; i < slot->column_count; i++) {
        const struct column_spec *spec = &schema->columns[i];
        const struct slot_column *column = &slot->columns[i];
        const struct slot_buffer *values = &column->buffers[column->buffer_count - 1];

        for (uint32_t k = 0; k < column->buffer_count; k++)
            sum += sum_of(&column->buffers[k]);
        if (spec->kind == TUNDISH_SPARSE)
            check_indices(column, spec->rank);
        if (spec->kind == TUNDISH_RAGGED)
            check_steps(&column->buffers[0], (uint64_t)column->shape[0],
                        load_u64((const uint8_t *)column->buffers[0].data +
                                 column->buffers[0].stored_bytes - 8));
        if (spec->dtype == TUNDISH_STRING && column->buffer_count >= 2) {
            const struct slot_buffer *offsets = values - 1;

            check_steps(offsets, offsets->stored_bytes / 8 - 1, values->decoded_bytes);
        }
        if (pair->session.plan->rows_apart)
            must(column->shape[0] <= fill_rows(&pair->session.fill, pair->step.round.slices));
    }
    must(sum != UINT64_MAX);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    struct helper_made made = { 0 };
    struct helper_pair *pair;
    tundish_status status;

    if (data_bytes < HEAD_BYTES)
        return 0;
    pair = helper_stream(data[0]);
    status = helper_pair_take(
        pair, (struct byte_view){ data + HEAD_BYTES, data_bytes - HEAD_BYTES }, data[1] & 1, &made);
    if (status != TUNDISH_OK)
        return 0;
    must(made.skipped <= pair->line.row_count && strlen(made.skipped_text) < HELPER_TEXT_BYTES);
    if (!pair->session.fill.in_place)
        check_whole(pair);
    else if ((data[1] & 1) != 0)
        (void)helper_line_is_same(&pair->line, &pair->part);
    return 0;
}
