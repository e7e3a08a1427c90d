/* fuzz_python_answer.c - what an interpreter answers: it is refused, or its columns are ones, which
 * come back when they are sent as a request; and so where it describes columns.
 *
 * The first bytes give the schema and the number of elements, the rest is the answer.
 */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"
#include "workers/python_wire.h"

enum { COLUMNS = 3 };

static const tundish_dtype dtypes[] = { TUNDISH_BOOL,  TUNDISH_UINT8,   TUNDISH_INT32,
                                        TUNDISH_INT64, TUNDISH_FLOAT64, TUNDISH_STRING };
static const uint32_t all[COLUMNS] = { 0, 1, 2 };

/* One byte a column: dtype, dimensions, which of them are known. */
static void
make_schema(struct schema *schema, const uint8_t *data)
{
    for (int i = 0; i < COLUMNS; i++) {
        char name[2] = { (char)('a' + i), '\0' };
        struct column_spec *column =
            schema_add(schema, name, dtypes[data[i] % (sizeof dtypes / sizeof *dtypes)]);

        column->rank = data[i] / 6 % 4;
        for (int k = 0; k < column->rank; k++)
            column->shape[k] = (data[i] >> (5 + k) & 1) != 0 ? k : -1;
    }
}

/* The sum of all bytes of the texts, so that each is read. */
static uint64_t
touch(const struct frame *frame)
{
    uint64_t sum = 0;

    for (int i = 0; i < COLUMNS; i++) {
        const struct byte_view *views = frame->columns[i].values;

        if (frame->schema->columns[i].dtype != TUNDISH_STRING)
            continue;
        for (int64_t k = 0; k < frame->columns[i].value_count; k++)
            for (uint64_t b = 0; b < views[k].size; b++)
                sum += views[k].data[b];
    }
    return sum;
}

static void
check_again(const struct frame *frame)
{
    struct python_request request = { .input = frame, .columns = all, .column_count = COLUMNS };
    size_t bytes = python_wire_write(&request, NULL), again_bytes;
    uint8_t *message = tnd_alloc_aligned(64, (bytes + 63) & ~(size_t)63), *again;
    struct column columns[COLUMNS];
    struct frame_errors errors = { 0 };
    struct frame back = *frame;

    memset(message, 0, bytes);
    must(python_wire_write(&request, message) == bytes);
    back.columns = columns;
    back.errors = &errors;
    must(python_wire_read(message, bytes, all, COLUMNS, &back) == TUNDISH_OK);
    must(touch(&back) == touch(frame));
    request.input = &back;
    again_bytes = python_wire_write(&request, NULL);
    must(again_bytes == bytes);
    again = tnd_alloc_aligned(64, (bytes + 63) & ~(size_t)63);
    memset(again, 0, bytes);
    must(python_wire_write(&request, again) == bytes);
    must(memcmp(again, message, bytes) == 0);
    free(again);
    free(message);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct frame_errors errors = { 0 };
    struct column columns[COLUMNS];
    struct schema schema = { 0 }, described = { 0 };
    struct frame frame = {
        .column_count = COLUMNS, .columns = columns, .schema = &schema, .errors = &errors
    };
    uint8_t *answer;

    if (bytes < COLUMNS + 1)
        return 0;
    make_schema(&schema, data);
    frame.count = data[COLUMNS] % 4 + 1;
    frame.scratch = scratch_open();
    bytes -= COLUMNS + 1;
    answer = tnd_alloc_aligned(64, (bytes + 64) & ~(size_t)63); /* as in an arena */
    memcpy(answer, data + COLUMNS + 1, bytes);
    if (python_wire_read(answer, bytes, all, COLUMNS, &frame) == TUNDISH_OK)
        check_again(&frame);
    (void)python_wire_read_columns(answer, bytes, &described);
    schema_close(&described);
    free(answer);
    scratch_close(frame.scratch);
    schema_close(&schema);
    return 0;
}
