/* learned_table.c - tables of numbers in JSON:
 *
 *     {"dtype": "float32", "shape": [2], "values": [1.5, "nan"], "keys": ["a", {"base64": "/w=="}]}
 *
 * The members stand in any order, each once; keys only in what was learned per key.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "column/literal.h"
#include "content/learned/learned.h"
#include "content/learned/learned_file.h"
#include "content/records/base64.h"
#include "content/records/json_string.h"
#include "content/records/number.h"
#include "core/memory.h"

/* Text as it is read. Behind `end` there are 64 zeros. */
struct reading {
    const char *begin, *at, *end;
    struct learned_table *table;
    int64_t number_count; /* of `values` */
    double *numbers;
    int64_t *integers;
    bool has_dtype, has_shape, has_values;
};

static tundish_status
wrong(const struct reading *reading, const char *what)
{
    return tnd_fail(TUNDISH_E_DATA, "byte %zu: %s", (size_t)(reading->at - reading->begin), what);
}

static void
skip_blanks(struct reading *reading)
{
    while (reading->at < reading->end && (*reading->at == ' ' || *reading->at == '\n' ||
                                          *reading->at == '\t' || *reading->at == '\r'))
        reading->at++;
}

static bool
take(struct reading *reading, char what)
{
    skip_blanks(reading);
    if (reading->at >= reading->end || *reading->at != what)
        return false;
    reading->at++;
    return true;
}

/* A text, which the caller frees. What it stands for is never longer than its JSON. */
static tundish_status
take_text(struct reading *reading, struct byte_view *ret_text)
{
    const uint8_t *begin, *at, *end = (const uint8_t *)reading->end;
    const char *problem;
    uint64_t size;
    uint8_t *text;
    bool has_escapes;

    if (!take(reading, '"'))
        return wrong(reading, "a text should stand here");
    begin = at = (const uint8_t *)reading->at;
    problem = json_string_scan(&at, end, &has_escapes);
    if (problem != NULL)
        return wrong(reading, problem);
    text = tnd_zalloc((size_t)(at - begin) + 64, 1);
    at = begin;
    problem = json_string_decode(&at, end, text, &size);
    if (problem != NULL) {
        free(text);
        return wrong(reading, problem);
    }
    reading->at = (const char *)at + 1;
    *ret_text = (struct byte_view){ text, size };
    return TUNDISH_OK;
}

static bool
is_text(struct byte_view text, const char *word)
{
    return bytes_are_equal(text, bytes_of_text(word));
}

static void
free_view(struct byte_view view)
{
    free((void *)(uintptr_t)view.data);
}

static tundish_status
take_number(struct reading *reading, double *ret_number, int64_t *ret_integer)
{
    const char *begin;
    size_t bytes;

    skip_blanks(reading);
    if (reading->at < reading->end && *reading->at == '"') {
        struct byte_view word;
        tundish_status status = take_text(reading, &word);

        if (status != TUNDISH_OK)
            return status;
        *ret_number = is_text(word, "inf") ? HUGE_VAL : is_text(word, "-inf") ? -HUGE_VAL : NAN;
        *ret_integer = 0;
        free_view(word);
        return TUNDISH_OK;
    }
    begin = reading->at;
    while (reading->at < reading->end && *reading->at != '\0' &&
           strchr("0123456789+-.eE", *reading->at) != NULL)
        reading->at++;
    bytes = (size_t)(reading->at - begin);
    if (!number_float64((const uint8_t *)begin, bytes, ret_number))
        return wrong(reading, "a number should stand here");
    if (!number_int64((const uint8_t *)begin, bytes, ret_integer))
        *ret_integer = 0;
    return TUNDISH_OK;
}

/* A list of numbers; nothing is believed of how many there are. */
static tundish_status
take_numbers(struct reading *reading, double **ret_numbers, int64_t **ret_integers,
             int64_t *ret_count)
{
    int64_t count = 0, capacity = 0;

    if (!take(reading, '['))
        return wrong(reading, "a list should stand here");
    if (take(reading, ']')) {
        *ret_count = 0;
        return TUNDISH_OK;
    }
    do {
        tundish_status status;

        if (count == capacity) {
            capacity = 2 * capacity + 16;
            *ret_numbers = tnd_realloc(*ret_numbers, (size_t)capacity, sizeof **ret_numbers);
            *ret_integers = tnd_realloc(*ret_integers, (size_t)capacity, sizeof **ret_integers);
        }
        status = take_number(reading, &(*ret_numbers)[count], &(*ret_integers)[count]);
        if (status != TUNDISH_OK)
            return status;
        count++;
    } while (take(reading, ','));
    *ret_count = count;
    return take(reading, ']') ? TUNDISH_OK : wrong(reading, "a list without an end");
}

static tundish_status
take_shape(struct reading *reading)
{
    double *numbers = NULL;
    int64_t *integers = NULL;
    int64_t count = 0, product = 1;
    tundish_status status = take_numbers(reading, &numbers, &integers, &count);

    if (status == TUNDISH_OK && count > RANK_MAX)
        status = wrong(reading, "too many dimensions");
    for (int64_t i = 0; i < count && status == TUNDISH_OK; i++) {
        if (integers[i] < 0 || integers[i] > INT32_MAX ||
            __builtin_mul_overflow(product, integers[i], &product))
            status = wrong(reading, "a dimension out of range");
        reading->table->shape[i] = integers[i];
    }
    reading->table->rank = (int)count;
    reading->table->value_count = product;
    free(numbers);
    free(integers);
    return status;
}

/* In place: the bytes are fewer than their letters. */
static bool
undo_base64(struct byte_view *text)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)text->data;
    uint64_t used;

    if (!base64_decode(*text, bytes, &used))
        return false;
    memset(bytes + used, 0, text->size - used);
    text->size = used;
    return true;
}

static tundish_status
take_key(struct reading *reading, struct byte_view *ret_key)
{
    struct byte_view word;
    bool is_right;
    tundish_status status;

    if (!take(reading, '{'))
        return take_text(reading, ret_key);
    status = take_text(reading, &word);
    if (status != TUNDISH_OK)
        return status;
    is_right = is_text(word, "base64") && take(reading, ':');
    free_view(word);
    if (!is_right)
        return wrong(reading, "a key is a text or {\"base64\": ...}");
    status = take_text(reading, ret_key);
    if (status == TUNDISH_OK && (!undo_base64(ret_key) || !take(reading, '}'))) {
        free_view(*ret_key);
        status = wrong(reading, "not base64");
    }
    return status;
}

static tundish_status
take_keys(struct reading *reading)
{
    struct learned_table *table = reading->table;
    int64_t capacity = 0;

    table->has_keys = true;
    if (!take(reading, '['))
        return wrong(reading, "a list should stand here");
    if (take(reading, ']'))
        return TUNDISH_OK;
    do {
        tundish_status status;

        if (table->key_count == capacity) {
            capacity = 2 * capacity + 16;
            table->keys = tnd_realloc(table->keys, (size_t)capacity, sizeof *table->keys);
        }
        status = take_key(reading, &table->keys[table->key_count]);
        if (status != TUNDISH_OK)
            return status;
        table->key_count++;
    } while (take(reading, ','));
    return take(reading, ']') ? TUNDISH_OK : wrong(reading, "a list without an end");
}

static tundish_status
take_dtype(struct reading *reading)
{
    static const tundish_dtype dtypes[] = { TUNDISH_INT64, TUNDISH_FLOAT32, TUNDISH_FLOAT64 };
    struct byte_view word;
    tundish_status status = take_text(reading, &word);
    bool found = false;

    if (status != TUNDISH_OK)
        return status;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (is_text(word, tnd_dtype_name(dtypes[i]))) {
            reading->table->dtype = dtypes[i];
            found = true;
        }
    free_view(word);
    return found ? TUNDISH_OK : wrong(reading, "dtype is int64, float32 or float64");
}

static tundish_status
take_member(struct reading *reading)
{
    struct byte_view name;
    tundish_status status = take_text(reading, &name);
    bool *seen = NULL;

    if (status != TUNDISH_OK)
        return status;
    seen = is_text(name, "dtype")    ? &reading->has_dtype
           : is_text(name, "shape")  ? &reading->has_shape
           : is_text(name, "values") ? &reading->has_values
           : is_text(name, "keys")   ? &reading->table->has_keys
                                     : NULL;
    free_view(name);
    if (seen == NULL || *seen || !take(reading, ':'))
        return wrong(reading, "members are dtype, shape, values and keys, each once");
    *seen = true;
    if (seen == &reading->has_dtype)
        return take_dtype(reading);
    if (seen == &reading->has_shape)
        return take_shape(reading);
    if (seen == &reading->has_values)
        return take_numbers(reading, &reading->numbers, &reading->integers, &reading->number_count);
    return take_keys(reading);
}

/* From what was read to values of the dtype. */
static tundish_status
settle(struct reading *reading)
{
    struct learned_table *table = reading->table;
    size_t count = (size_t)table->value_count;

    if (!reading->has_dtype || !reading->has_shape || !reading->has_values)
        return wrong(reading, "dtype, shape and values are needed");
    if (reading->number_count != table->value_count)
        return wrong(reading, "there are not as many values as the shape says");
    if (table->has_keys && (table->rank < 1 || table->shape[0] != table->key_count))
        return wrong(reading, "there are not as many keys as the shape says");
    table->values = tnd_zalloc(count + 1, sizeof(double));
    if (table->dtype == TUNDISH_INT64)
        memcpy(table->values, reading->integers, count * sizeof *reading->integers);
    else
        convert_values(table->dtype, table->values, TUNDISH_FLOAT64, reading->numbers, count);
    return TUNDISH_OK;
}

tundish_status
learned_table_parse(const char *text, size_t text_bytes, struct learned_table *ret_table)
{
    struct learned_table table = { 0 };
    struct reading reading = {
        .begin = text, .at = text, .end = text + text_bytes, .table = &table
    };
    tundish_status status = TUNDISH_OK;

    if (!take(&reading, '{'))
        status = wrong(&reading, "an object should stand here");
    else
        do
            status = take_member(&reading);
        while (status == TUNDISH_OK && take(&reading, ','));
    if (status == TUNDISH_OK && !take(&reading, '}'))
        status = wrong(&reading, "an object without an end");
    skip_blanks(&reading);
    if (status == TUNDISH_OK && reading.at != reading.end)
        status = wrong(&reading, "something follows the object");
    if (status == TUNDISH_OK)
        status = settle(&reading);
    free(reading.numbers);
    free(reading.integers);
    if (status == TUNDISH_OK)
        *ret_table = table;
    else
        learned_table_close(&table);
    return status;
}

static tundish_status
open_checked(const struct stage_config *config, const char *path, struct learned_table *ret_table)
{
    struct learned_file file = { 0 };
    struct learned_table table = { 0 };
    tundish_status status = learned_file_read(path, &file);

    if (status != TUNDISH_OK)
        return status;
    learned_file_note(config, &file);
    status = learned_table_parse((const char *)file.bytes, file.byte_count, &table);
    if (status != TUNDISH_OK)
        tnd_fail_while(status, "%s", path);
    else
        status = learned_file_check(config, path, learned_bytes_hash(file.bytes, file.byte_count));
    learned_file_close(&file);
    if (status == TUNDISH_OK)
        *ret_table = table;
    else
        learned_table_close(&table);
    return status;
}

static void
convert_table(struct learned_table *table, tundish_dtype dtype)
{
    size_t count = (size_t)table->value_count;
    void *values = tnd_zalloc(count + 1, sizeof(double));

    convert_values(dtype, values, table->dtype, table->values, count);
    free(table->values);
    table->values = values;
    table->dtype = dtype;
}

tundish_status
learned_table_open(const struct stage_config *config, const char *name, const char *suffix,
                   tundish_dtype dtype, struct learned_table *ret_table)
{
    char *path = learned_path(config->learned, name, suffix);
    tundish_status status = open_checked(config, path, ret_table);

    free(path);
    if (status != TUNDISH_OK)
        return learned_complain_of(config);
    if (ret_table->dtype != dtype)
        convert_table(ret_table, dtype);
    return TUNDISH_OK;
}

void
learned_table_close(struct learned_table *table)
{
    for (int64_t i = 0; i < table->key_count; i++)
        free_view(table->keys[i]);
    free(table->keys);
    free(table->values);
    *table = (struct learned_table){ 0 };
}
