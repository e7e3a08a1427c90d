/* tuples.c - see tuples.h. Loops of constant widths, without a call for each value. */
#include "source/parquet/tuples.h"

#include <stdlib.h>

#include "core/memory.h"

enum {
    BLOCK = 128, /* rows: their tuples stay in the cache while columns come */
    LINE_BYTES = 64,
    FEW_WORDS = 4096 /* integers that were made of fewer are in the cache soon */
};

#define WIDTHS(from, to, call)                                                                     \
    switch ((from) << 4 | (to)) {                                                                  \
        PAIR(1, 1, call)                                                                           \
        PAIR(1, 2, call)                                                                           \
        PAIR(1, 4, call)                                                                           \
        PAIR(1, 8, call)                                                                           \
        PAIR(2, 2, call)                                                                           \
        PAIR(2, 4, call)                                                                           \
        PAIR(2, 8, call)                                                                           \
        PAIR(4, 4, call)                                                                           \
        PAIR(4, 8, call)                                                                           \
        PAIR(8, 8, call)                                                                           \
    }
#define PAIR(from, to, call)                                                                       \
    case (from) << 4 | (to):                                                                       \
        call((from), (to));                                                                        \
        break;

/* The bytes of a column's value, and whether it is an integer, whose range is worth a look. */
static size_t
width_of(const struct parquet_member *member)
{
    return member->column->words != NULL ? sizeof(uint32_t) : parquet_value_bytes(member->dtype);
}

static void *
values_of(const struct parquet_member *member)
{
    return member->column->words != NULL ? (void *)member->column->numbers : member->column->values;
}

static bool
is_integer(tundish_dtype dtype)
{
    switch (dtype) {
    case TUNDISH_INT8:
    case TUNDISH_INT16:
    case TUNDISH_INT32:
    case TUNDISH_INT64:
    case TUNDISH_UINT8:
    case TUNDISH_UINT16:
    case TUNDISH_UINT32:
    case TUNDISH_UINT64:
        return true;
    default:
        return false;
    }
}

/* As signed ones, also those that are not: sums wrap, so a base and what is above it give the same
 * bits. */
#define FIND_RANGE(type)                                                                           \
    do {                                                                                           \
        const type *numbers = values;                                                              \
        type least = numbers[0], most = numbers[0];                                                \
                                                                                                   \
        for (uint64_t i = 1; i < count; i++) {                                                     \
            least = numbers[i] < least ? numbers[i] : least;                                       \
            most = numbers[i] > most ? numbers[i] : most;                                          \
        }                                                                                          \
        *ret_base = (uint64_t)(int64_t)least;                                                      \
        return (uint64_t)(int64_t)most - (uint64_t)(int64_t)least;                                 \
    } while (0)

static uint64_t
range_of(const void *values, uint64_t count, size_t width, uint64_t *ret_base)
{
    if (width == 1)
        FIND_RANGE(int8_t);
    if (width == 2)
        FIND_RANGE(int16_t);
    if (width == 4)
        FIND_RANGE(int32_t);
    FIND_RANGE(int64_t);
}

static uint32_t
bytes_for(uint64_t highest)
{
    return highest <= UINT8_MAX ? 1 : highest <= UINT16_MAX ? 2 : highest <= UINT32_MAX ? 4 : 8;
}

static struct parquet_field
field_of(const struct parquet_member *member, uint64_t row_count)
{
    const struct parquet_column *column = member->column;
    struct parquet_field field = { .bytes = (uint32_t)width_of(member) };

    if (column->splits != NULL || row_count == 0)
        field.bytes = 0;
    else if (column->words != NULL)
        field.bytes = bytes_for(column->words->words.count - 1);
    else if (is_integer(member->dtype))
        field.bytes = bytes_for(range_of(column->values, row_count, field.bytes, &field.base));
    return field;
}

/* The integers that were made of words are a field of their range, though few rows may have all of
 * it. */
static struct parquet_field
made_field_of(const struct parquet_member *member)
{
    const struct parquet_words *words = member->column->words;
    struct parquet_field field = { .key = member->key };

    if (member->made != NULL && member->column->splits == NULL && words->words.count > FEW_WORDS)
        field.bytes = bytes_for(
            range_of(member->made, words->words.count, sizeof *member->made, &field.base));
    return field;
}

static inline __attribute__((always_inline)) void
put_width(const uint8_t *from, size_t from_bytes, uint64_t count, uint64_t base, size_t bytes,
          uint8_t *to, uint32_t stride)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t value = 0;

        memcpy(&value, from + i * from_bytes, from_bytes);
        value -= base;
        memcpy(to + i * stride, &value, bytes);
    }
}

static void
put_block(const struct parquet_tuples *tuples, uint32_t index, const struct parquet_member *member,
          uint64_t begin, uint64_t count)
{
    const struct parquet_field *field = &tuples->fields[index];
    size_t width = width_of(member);
    const uint8_t *from = (const uint8_t *)values_of(member) + begin * width;
    uint8_t *to = tuples->tuples + begin * tuples->stride + field->at;

#define PUT(bytes, width_) put_width(from, width_, count, field->base, bytes, to, tuples->stride)
    WIDTHS(field->bytes, width, PUT)
#undef PUT
}

static void
put_made(const struct parquet_tuples *tuples, uint32_t index, const struct parquet_member *member,
         uint64_t begin, uint64_t count)
{
    const struct parquet_field *field = parquet_tuples_made(tuples, index);
    uint8_t *to = tuples->tuples + begin * tuples->stride + field->at;
    int32_t made[BLOCK];

    if (field->bytes == 0)
        return;
    for (uint64_t i = 0; i < count; i++)
        made[i] = member->made[member->column->numbers[begin + i]];
#define PUT(bytes, width_)                                                                         \
    put_width((const uint8_t *)made, width_, count, field->base, bytes, to, tuples->stride)
    WIDTHS(field->bytes, sizeof *made, PUT)
#undef PUT
}

/* The content of tuples now. */
static void
drop_values(const struct parquet_member *member)
{
    struct parquet_column *column = member->column;

    column->bytes -= column->value_count * width_of(member);
    free(column->values);
    free(column->numbers);
    column->values = NULL;
    column->numbers = NULL;
}

struct parquet_tuples *
parquet_tuples_open(const struct parquet_member *members, uint32_t count, uint64_t row_count)
{
    struct parquet_tuples *tuples =
        tnd_zalloc(1, sizeof *tuples + 2 * (size_t)count * sizeof *tuples->fields);

    tuples->count = count;
    for (uint32_t i = 0; i < count; i++) {
        tuples->fields[i] = field_of(&members[i], row_count);
        tuples->fields[count + i] = made_field_of(&members[i]);
    }
    for (uint32_t i = 0; i < 2 * count; i++) {
        tuples->fields[i].at = tuples->stride;
        tuples->stride += tuples->fields[i].bytes;
    }
    tuples->bytes = row_count * tuples->stride;
    tuples->tuples = tnd_alloc_scattered(tuples->bytes);
    for (uint64_t begin = 0; begin < row_count; begin += BLOCK) {
        uint64_t some = row_count - begin < BLOCK ? row_count - begin : BLOCK;

        for (uint32_t i = 0; i < count; i++) {
            put_block(tuples, i, &members[i], begin, some);
            put_made(tuples, i, &members[i], begin, some);
        }
    }
    for (uint32_t i = 0; i < count; i++)
        if (tuples->fields[i].bytes > 0)
            drop_values(&members[i]);
    return tuples;
}

void
parquet_tuples_close(struct parquet_tuples *tuples)
{
    if (tuples == NULL)
        return;
    if (!tuples->is_spilled)
        free(tuples->tuples);
    free(tuples);
}

void
parquet_tuples_expect(const struct parquet_tuples *tuples, const struct parquet_row *rows,
                      uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *tuple = tuples->tuples + rows[i].row * tuples->stride;

        for (uint32_t at = 0; at < tuples->stride; at += LINE_BYTES)
            __builtin_prefetch(tuple + at);
        __builtin_prefetch(tuple + tuples->stride - 1);
    }
}

static inline __attribute__((always_inline)) void
take_width(const struct parquet_tuples *tuples, const struct parquet_field *field,
           const struct parquet_row *rows, uint32_t count, size_t bytes, size_t width, uint8_t *to)
{
    const uint8_t *from = tuples->tuples + field->at;
    uint64_t stride = tuples->stride, base = field->base;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t value = 0;

        memcpy(&value, from + rows[i].row * stride, bytes);
        value += base;
        memcpy(to + (size_t)rows[i].to * width, &value, width);
    }
}

void
parquet_tuples_take(const struct parquet_tuples *tuples, const struct parquet_field *field,
                    const struct parquet_row *rows, uint32_t count, size_t width, void *to)
{
#define TAKE(bytes, width_) take_width(tuples, field, rows, count, bytes, width_, to)
    WIDTHS(field->bytes, width, TAKE)
#undef TAKE
}
