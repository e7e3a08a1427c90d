/* learned_table.c - tables of numbers in JSON:
 *
 *     {"dtype": "float32", "shape": [2], "values": [1.5, "nan"], "keys": ["a", {"base64": "/w=="}]}
 *
 * The members stand in any order, each once; keys only in statistics per key.
 */
#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "column/literal.h"
#include "content/learned/learned.h"
#include "content/learned/learned_file.h"
#include "content/records/json_parse.h"
#include "core/memory.h"

/* Members, as features of a record. Lists may have any length. */
enum { DTYPE, SHAPE, VALUES, KEYS, MEMBERS };

static const struct {
    const char *name;
    tundish_dtype dtype;
} members[MEMBERS] = {
    [DTYPE] = { .name = "dtype", .dtype = TUNDISH_STRING },
    [SHAPE] = { .name = "shape", .dtype = TUNDISH_INT64 },
    [VALUES] = { .name = "values", .dtype = TUNDISH_FLOAT64 }, /* int64, if the first says so */
    [KEYS] = { .name = "keys", .dtype = TUNDISH_STRING },
};

/* The first `count` members; the values are asked for as `dtype`. */
static tundish_status
read_members(struct byte_view text, uint32_t count, tundish_dtype dtype, feature_parse *parse,
             struct scratch *scratch, struct example_values *ret_values)
{
    struct example_feature *features = tnd_zalloc(count, sizeof *features);
    const struct example_input input = { .records = &text, .count = 1 };
    struct frame_errors errors = { 0 };
    struct frame frame = { .count = 1, .scratch = scratch, .errors = &errors };
    struct example_parser *parser;

    for (uint32_t i = 0; i < count; i++) {
        features[i] = (struct example_feature){
            .name = tnd_strdup(members[i].name),
            .name_bytes = strlen(members[i].name),
            .dtype = i == VALUES ? dtype : members[i].dtype,
            .is_list = i != DTYPE,
            .value_count = 1,
        };
        ret_values[i] = (struct example_values){ 0 };
    }
    ret_values[DTYPE].values = scratch_alloc(scratch, sizeof(struct byte_view));
    parser = example_parser_open(features, count);
    parse(parser, &input, &frame, ret_values);
    example_parser_close(parser);
    return errors.status == TUNDISH_OK ? TUNDISH_OK : tnd_fail(errors.status, "%s", errors.text);
}

static int64_t
length_of(const struct example_values *list)
{
    return list->splits[1];
}

static tundish_status
find_dtype(const struct example_values *name, tundish_dtype *ret_dtype)
{
    static const tundish_dtype dtypes[] = { TUNDISH_INT64, TUNDISH_FLOAT32, TUNDISH_FLOAT64 };
    const struct byte_view *text = name->values;

    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (bytes_are_equal(*text, bytes_of_text(tnd_dtype_name(dtypes[i])))) {
            *ret_dtype = dtypes[i];
            return TUNDISH_OK;
        }
    return tnd_fail(TUNDISH_E_DATA, "dtype is int64, float32 or float64");
}

static tundish_status
take_shape(const struct example_values *list, struct learned_table *table)
{
    const int64_t *dims = list->values;

    if (length_of(list) > RANK_MAX)
        return tnd_fail(TUNDISH_E_DATA, "too many dimensions");
    table->rank = (int)length_of(list);
    table->value_count = 1;
    for (int i = 0; i < table->rank; i++) {
        /* The values of a damaged table are not there: each dimension and the product are bounded
         * before memory is allocated. */
        if (dims[i] < 0 || dims[i] > INT32_MAX ||
            __builtin_mul_overflow(table->value_count, dims[i], &table->value_count))
            return tnd_fail(TUNDISH_E_DATA, "a dimension out of range");
        table->shape[i] = dims[i];
    }
    return TUNDISH_OK;
}

/* Copy the keys: they are in scratch or in the text, which are freed. */
static void
take_keys(const struct example_values *list, struct learned_table *table)
{
    const struct byte_view *keys = list->values;

    table->has_keys = true;
    table->key_count = length_of(list);
    table->keys = tnd_zalloc((size_t)table->key_count + 1, sizeof *table->keys);
    for (int64_t i = 0; i < table->key_count; i++)
        table->keys[i] = literal_text((const char *)keys[i].data, keys[i].size);
}

/* Numbers are read as float64, integers as they are. */
static tundish_dtype
read_as(tundish_dtype dtype)
{
    return dtype == TUNDISH_INT64 ? TUNDISH_INT64 : TUNDISH_FLOAT64;
}

static tundish_status
take_all(const struct example_values values[MEMBERS], struct learned_table *table)
{
    tundish_status status = take_shape(&values[SHAPE], table);
    size_t count;

    if (status != TUNDISH_OK)
        return status;
    if (!values[SHAPE].is_met || !values[VALUES].is_met)
        return tnd_fail(TUNDISH_E_DATA, "dtype, shape and values are needed");
    /* The shape is compared with the number of values that were read, so it cannot claim more. */
    if (length_of(&values[VALUES]) != table->value_count)
        return tnd_fail(TUNDISH_E_DATA, "the number of values does not match the shape");
    if (values[KEYS].is_met)
        take_keys(&values[KEYS], table);
    if (table->has_keys && (table->rank < 1 || table->shape[0] != table->key_count))
        return tnd_fail(TUNDISH_E_DATA, "the number of keys does not match the shape");
    count = (size_t)table->value_count;
    table->values = tnd_zalloc(count + 1, sizeof(double));
    if (count > 0)
        convert_values(table->dtype, table->values, read_as(table->dtype), values[VALUES].values,
                       count);
    return TUNDISH_OK;
}

/* Parse the text twice: the dtype, which may come after the values, decides how they are read. */
tundish_status
learned_table_parse(const char *text, size_t text_bytes, struct learned_table *ret_table)
{
    const struct byte_view record = { (const uint8_t *)text, text_bytes };
    struct scratch *scratch = scratch_open();
    struct learned_table table = { 0 };
    struct example_values values[MEMBERS];
    tundish_status status =
        read_members(record, DTYPE + 1, TUNDISH_FLOAT64, json_parse_printed, scratch, values);

    if (status == TUNDISH_OK)
        status = find_dtype(&values[DTYPE], &table.dtype);
    if (status == TUNDISH_OK)
        status = read_members(record, MEMBERS, read_as(table.dtype), json_parse_exactly, scratch,
                              values);
    if (status == TUNDISH_OK)
        status = take_all(values, &table);
    scratch_close(scratch);
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
        free((void *)(uintptr_t)table->keys[i].data);
    free(table->keys);
    free(table->values);
    *table = (struct learned_table){ 0 };
}
