/* fuzz_parquet_column.c - chunks of pages, of every type, encoding and codec: texts and lists lie
 * within their column, and nothing is read outside of the bytes and their slack.
 *
 * The first bytes say what the footer would: type, dtype or list, codec, levels, rows, values. */
#include <stdlib.h>
#include <string.h>

#include "core/must.h"
#include "source/parquet/bits.h"
#include "source/parquet/column.h"
#include "source/parquet/page.h"
#include "source/parquet/tuples.h"

enum { HEAD_BYTES = 6 };

static const struct {
    enum parquet_type type;
    enum parquet_change change;
    tundish_dtype dtype;
    uint32_t fixed_bytes;
} leaves[] = {
    { PARQUET_BOOLEAN, PARQUET_AS_IT_IS, TUNDISH_BOOL, 0 },
    { PARQUET_INT32, PARQUET_AS_IT_IS, TUNDISH_INT32, 0 },
    { PARQUET_INT32, PARQUET_AS_IT_IS, TUNDISH_UINT8, 0 },
    { PARQUET_INT32, PARQUET_DECIMAL, TUNDISH_INT64, 0 },
    { PARQUET_INT64, PARQUET_AS_IT_IS, TUNDISH_INT64, 0 },
    { PARQUET_INT96, PARQUET_NANOSECONDS, TUNDISH_INT64, 0 },
    { PARQUET_FLOAT, PARQUET_AS_IT_IS, TUNDISH_FLOAT32, 0 },
    { PARQUET_DOUBLE, PARQUET_AS_IT_IS, TUNDISH_FLOAT64, 0 },
    { PARQUET_BYTE_ARRAY, PARQUET_AS_IT_IS, TUNDISH_STRING, 0 },
    { PARQUET_BYTE_ARRAY, PARQUET_DECIMAL, TUNDISH_INT64, 0 },
    { PARQUET_FIXED, PARQUET_AS_IT_IS, TUNDISH_STRING, 5 },
    { PARQUET_FIXED, PARQUET_AS_IT_IS, TUNDISH_FLOAT16, 2 },
    { PARQUET_FIXED, PARQUET_DECIMAL, TUNDISH_INT64, 9 },
};

static void
check_column(const struct parquet_leaf *leaf, const struct parquet_column *column)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < column->value_count && leaf->dtype == TUNDISH_STRING; i++) {
        const uint8_t *base;
        struct parquet_text text = parquet_text_of(column, i, &base);

        for (uint32_t k = 0; k < text.bytes; k++)
            sum += base[text.offset + k];
    }
    for (uint64_t i = 0; i < column->row_count && column->splits != NULL; i++)
        must(column->splits[i] <= column->splits[i + 1]);
    must(column->splits == NULL || column->splits[column->row_count] == column->value_count);
    must(column->splits != NULL || column->value_count == column->row_count);
    must(sum != UINT64_MAX);
}

/* As tuples it has the values that it had as a column. */
static void
check_tuples(const struct parquet_leaf *leaf, struct parquet_column *column)
{
    const struct parquet_member member = { .column = column, .dtype = leaf->dtype };
    size_t width =
        column->words != NULL ? sizeof *column->numbers : parquet_value_bytes(leaf->dtype);
    const void *values = column->words != NULL ? column->numbers : column->values;
    uint64_t count = column->splits == NULL ? column->row_count : 0;
    struct parquet_row *rows = malloc((count + 1) * sizeof *rows);
    uint8_t *before = malloc(count * width + 1), *after = malloc(count * width + 1);
    struct parquet_tuples *tuples;

    if (count > 0)
        memcpy(before, values, count * width);
    for (uint64_t i = 0; i < count; i++)
        rows[i] = (struct parquet_row){ count - 1 - i, (int64_t)(count - 1 - i) };
    tuples = parquet_tuples_open(&member, 1, column->row_count);
    if (tuples->fields[0].bytes > 0) {
        parquet_tuples_expect(tuples, rows, (uint32_t)count);
        parquet_tuples_take(tuples, &tuples->fields[0], rows, (uint32_t)count, width, after);
        must(memcmp(before, after, count * width) == 0);
    }
    parquet_tuples_close(tuples);
    free(rows);
    free(before);
    free(after);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct byte_view text = { (const uint8_t *)"none", 4 };
    static const uint64_t number = 7;
    struct parquet_leaf leaf = { 0 };
    struct parquet_chunk chunk = { 0 };
    struct parquet_decode decode = { .leaf = &leaf, .chunk = &chunk, .bytes_max = 1 << 20 };
    struct parquet_column column;
    struct parquet_page page;
    size_t head_bytes;
    uint8_t *copy;

    if (bytes < HEAD_BYTES)
        return 0;
    leaf.type = leaves[data[0] % (sizeof leaves / sizeof *leaves)].type;
    leaf.change = leaves[data[0] % (sizeof leaves / sizeof *leaves)].change;
    leaf.dtype = leaves[data[0] % (sizeof leaves / sizeof *leaves)].dtype;
    leaf.fixed_bytes = leaves[data[0] % (sizeof leaves / sizeof *leaves)].fixed_bytes;
    leaf.is_list = data[1] & 1;
    leaf.defined = data[1] >> 2 & 3;
    leaf.element = leaf.is_list && leaf.defined > 0 ? 1 + (data[1] >> 4 & 1) % leaf.defined : 0;
    if (leaf.is_list && leaf.defined == 0)
        leaf.defined = leaf.element = 1;
    if (data[1] & 2)
        decode.fallback = leaf.dtype == TUNDISH_STRING ? (const void *)&text : &number;
    chunk.codec = data[2] % (PARQUET_CODECS + 1);
    chunk.value_count = data[3] | (uint64_t)data[4] << 8;
    decode.row_count = leaf.is_list ? data[5] : chunk.value_count;
    data += HEAD_BYTES;
    bytes -= HEAD_BYTES;
    copy = malloc(bytes + PARQUET_SLACK);
    memcpy(copy, data, bytes);
    memset(copy + bytes, 0, PARQUET_SLACK);
    if (parquet_page_read((struct byte_view){ copy, bytes }, &page, &head_bytes) == TUNDISH_OK)
        must(head_bytes <= bytes);
    if (parquet_column_decode(&decode, (struct byte_view){ copy, bytes }, &column) == TUNDISH_OK) {
        check_column(&leaf, &column);
        check_tuples(&leaf, &column);
        parquet_column_close(&column);
    }
    free(copy);
    return 0;
}
