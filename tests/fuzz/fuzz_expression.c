/* fuzz_expression.c - any bytes as an expression: refused with a complaint, or run over columns of
 * every kind. What comes out must have the structure that was promised. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "column/flush.h"
#include "content/expression/expression.h"
#include "core/memory.h"
#include "core/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

enum { ROWS = 3 };

static const float floats[] = { 1.5F, -2.0F, 0.0F, 3.0F, 1e30F, -1.0F, 7.0F, 8.0F, 9.0F };
static const int32_t ints[] = { 7, -3, 0, 2, 5, -1, 2147483647, 1, 4 };
static const int64_t longs[] = { 1, 0, -2, 3, 1, 2, 9, 8, 7 };
static const uint8_t bytes[] = { 1, 0, 1, 255, 7, 0, 3, 2, 1 };
static const int64_t splits[] = { 0, 2, 2, 5 };
static const char text_bytes[64 + 3] = "abc";
static const struct byte_view texts[] = { { (const uint8_t *)text_bytes, 3 },
                                          { (const uint8_t *)text_bytes, 0 },
                                          { (const uint8_t *)text_bytes, 1 } };

/* A column of rank 0, 1 (fixed), 1 (unknown or ragged) or 2. */
static void
add(struct schema *schema, struct column *columns, const char *name, tundish_dtype dtype,
    const void *values, int form)
{
    struct column_spec *spec = schema_add(schema, name, dtype);
    struct column *column = &columns[schema->count - 1];

    *column = (struct column){ .count = ROWS, .value_count = ROWS, .values = values };
    if (form == 1) {
        spec->rank = 1;
        spec->shape[0] = 3;
        column->level_count = 1;
        column->levels[0].uniform = 3;
        column->value_count = 3 * ROWS;
    } else if (form == 2 || form == 3) {
        spec->rank = 1;
        spec->shape[0] = -1;
        spec->kind = form == 2 ? TUNDISH_DENSE : TUNDISH_RAGGED;
        column->level_count = 1;
        column->levels[0] = (struct level){ .uniform = -1, .splits = splits };
        column->value_count = splits[ROWS];
    }
}

static void
check_result(const struct column_spec *spec, const struct column *column)
{
    must(column->count == ROWS);
    must(spec->rank == RANK_UNKNOWN || column->level_count == (uint32_t)spec->rank);
    must(column_list_count(column, column->level_count) == column->value_count);
    must(column->values != NULL || column->value_count == 0);
}

static void
run(const struct expression *expression, const struct schema *schema, struct column *columns)
{
    struct frame_errors errors = { 0 };
    struct column result = { 0 };
    struct scratch *scratch = scratch_open();
    struct frame input = { .count = ROWS,
                           .column_count = schema->count,
                           .columns = columns,
                           .schema = schema,
                           .scratch = scratch,
                           .errors = &errors };
    struct frame output = input;
    uint64_t mode = flush_begin();

    output.columns = &result;
    expression_apply(expression, &input, &output, 0);
    flush_end(mode);
    check_result(expression_spec(expression), &result);
    scratch_close(scratch);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    struct spec_errors complaints = { .path = "fuzz" };
    struct schema schema = { 0 };
    struct column columns[8];
    struct expression *expression = NULL;
    char *text = tnd_strndup((const char *)data, data_bytes);
    tundish_status status;

    add(&schema, columns, "x", TUNDISH_FLOAT32, floats, 0);
    add(&schema, columns, "v", TUNDISH_FLOAT32, floats, 1);
    add(&schema, columns, "i", TUNDISH_INT32, ints, 0);
    add(&schema, columns, "u", TUNDISH_INT64, longs, 2);
    add(&schema, columns, "r", TUNDISH_INT32, ints, 3);
    add(&schema, columns, "b", TUNDISH_UINT8, bytes, 1);
    add(&schema, columns, "s", TUNDISH_STRING, texts, 0);
    add(&schema, columns, "h", TUNDISH_FLOAT16, bytes, 0);
    status = expression_open(
        &(struct expression_config){
            .text = text, .line = 1, .column = 1, .input = &schema, .errors = &complaints },
        &expression);
    must((status == TUNDISH_OK) == (complaints.count == 0));
    if (status == TUNDISH_OK)
        run(expression, &schema, columns);
    expression_close(expression);
    schema_close(&schema);
    spec_errors_close(&complaints);
    free(text);
    return 0;
}
