/* csv_fields.c - cut records a block at a time, then convert each column of the block. */
#include "content/records/csv_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "column/literal.h"
#include "content/records/number.h"
#include "core/memory.h"
#include "spec/column_list.h"

/* Records to cut before converting them. Their field ends stay in the first-level cache. */
enum { BLOCK = 32 };

static bool
is_csv_dtype(tundish_dtype dtype)
{
    return dtype == TUNDISH_INT32 || dtype == TUNDISH_INT64 || dtype == TUNDISH_FLOAT32 ||
           dtype == TUNDISH_FLOAT64 || dtype == TUNDISH_STRING;
}

/* {values: V, dtype: D}: V may be a scalar, a list of one, or an empty list (no default). */
static tundish_status
read_long_default(const struct stage_config *config, const struct spec_value *value,
                  struct csv_column *column)
{
    const struct spec_value *values = spec_map_get(value, "values");
    const struct spec_value *dtype = spec_map_get(value, "dtype");
    char what[256];
    int64_t count;

    if (values == NULL || dtype == NULL || dtype->kind != SPEC_TEXT || value->count != 2)
        return spec_complain(
            config->errors, value->line, value->column,
            "the default of '%s' must be the name of a dtype, a value, or {values: V, dtype: D}",
            column->name);
    column->dtype = tnd_dtype_by_name(dtype->text);
    if (!is_csv_dtype(column->dtype))
        return spec_complain(config->errors, dtype->line, dtype->column,
                             "column '%s': dtype must be int32, int64, float32, float64 or string, "
                             "not %s",
                             column->name, dtype->text);
    count = literal_count(values);
    if (count < 0 || count > 1)
        return spec_complain(config->errors, values->line, values->column,
                             "a field has only one default, but '%s' has %lld", column->name,
                             (long long)count);
    if (count == 0)
        return TUNDISH_OK;
    snprintf(what, sizeof what, "the default of '%.200s'", column->name);
    column->fallback = tnd_zalloc(1, literal_bytes(column->dtype));
    return literal_store_all(values, column->dtype, what, config->errors, column->fallback);
}

static tundish_status
read_default(const struct stage_config *config, const struct spec_value *value,
             struct csv_column *column)
{
    char what[256];

    if (value->kind == SPEC_MAP)
        return read_long_default(config, value, column);
    if (value->kind == SPEC_TEXT && is_csv_dtype(tnd_dtype_by_name(value->text))) {
        column->dtype = tnd_dtype_by_name(value->text);
        return TUNDISH_OK;
    }
    if (value->kind == SPEC_TEXT && !value->quoted && strcasecmp(value->text, "nan") == 0)
        return spec_complain(config->errors, value->line, value->column,
                             "the default of '%s' is the text %s: write .nan for a number, or "
                             "quote it",
                             column->name, value->text);
    if (value->kind == SPEC_TEXT)
        column->dtype = TUNDISH_STRING;
    else if (value->kind == SPEC_NUMBER)
        column->dtype = TUNDISH_FLOAT32;
    else if (value->kind == SPEC_INTEGER)
        column->dtype = value->integer > INT32_MAX || value->integer < INT32_MIN ? TUNDISH_INT64
                                                                                 : TUNDISH_INT32;
    else
        return spec_complain(
            config->errors, value->line, value->column,
            "the default of '%s' must be the name of a dtype, a value, or {values: V, dtype: D}",
            column->name);
    snprintf(what, sizeof what, "the default of '%.200s'", column->name);
    column->fallback = tnd_zalloc(1, literal_bytes(column->dtype));
    return literal_store(value, column->dtype, what, config->errors, column->fallback);
}

/* Read the columns. A list gives defaults by position, a mapping by name. */
static tundish_status
read_columns(const struct stage_config *config, struct csv_table *table)
{
    const struct spec_value *defaults = spec_get(config->stage, "record_defaults");
    const struct spec_value *given = spec_get(config->stage, "column_names");
    struct spec_names names = { 0 };
    tundish_status status = spec_expand_columns(given, NULL, 0, config->errors, &names);

    if (status != TUNDISH_OK)
        return status;
    if (defaults->kind == SPEC_LIST && defaults->count != names.count)
        status = spec_complain(config->errors, defaults->line, defaults->column,
                               "record_defaults has %u entries, but column_names has %zu",
                               defaults->count, names.count);
    table->columns = tnd_zalloc(names.count, sizeof *table->columns);
    for (size_t i = 0; i < names.count; i++) {
        struct csv_column *column = &table->columns[table->count++];
        const struct spec_value *value = NULL;

        column->name = tnd_strdup(names.names[i]);
        if (defaults->kind == SPEC_MAP)
            value = spec_entry_for(defaults, column->name);
        else if (i < defaults->count)
            value = &defaults->items[i];
        if (value == NULL && defaults->kind == SPEC_MAP)
            status = spec_complain(config->errors, defaults->line, defaults->column,
                                   "record_defaults has no entry for column '%s'", column->name);
        else if (value != NULL && read_default(config, value, column) != TUNDISH_OK)
            status = TUNDISH_E_PIPELINE;
    }
    spec_names_close(&names);
    return status;
}

static tundish_status
check_rising(const struct stage_config *config, const struct spec_value *list, const char *name)
{
    if (list->kind != SPEC_LIST)
        return spec_complain(config->errors, list->line, list->column,
                             "%s must be a list of field numbers", name);
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i].kind != SPEC_INTEGER || list->items[i].integer < 0 ||
            list->items[i].integer > INT32_MAX ||
            (i > 0 && list->items[i].integer <= list->items[i - 1].integer))
            return spec_complain(config->errors, list->line, list->column,
                                 "%s must be field numbers from 0, each larger than the one before",
                                 name);
    return TUNDISH_OK;
}

static bool
has_number(const struct spec_value *list, int64_t number)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i].integer == number)
            return true;
    return false;
}

/* Select all fields but the excluded ones. TensorFlow counts defaults and exclusions together as
 * the number of fields. */
static tundish_status
read_excluded(const struct stage_config *config, struct csv_table *table)
{
    const struct spec_value *list = spec_get(config->stage, "exclude_cols");
    int64_t total;
    tundish_status status;

    if (list == NULL || list->kind == SPEC_NULL)
        return TUNDISH_OK;
    if (table->rules.select != NULL)
        return spec_complain(config->errors, list->line, list->column,
                             "select_cols and exclude_cols cannot both be given");
    status = check_rising(config, list, "exclude_cols");
    if (status != TUNDISH_OK)
        return status;
    total = (int64_t)table->count + list->count;
    if (list->count > 0 && list->items[list->count - 1].integer >= total)
        return spec_complain(config->errors, list->line, list->column,
                             "exclude_cols: there is no field %lld of %lld",
                             (long long)list->items[list->count - 1].integer, (long long)total);
    table->rules.total = (uint32_t)total;
    table->rules.select = tnd_zalloc(table->count + 1, sizeof *table->rules.select);
    for (int64_t number = 0; number < total; number++)
        if (!has_number(list, number))
            table->rules.select[table->rules.select_count++] = (uint32_t)number;
    return TUNDISH_OK;
}

static tundish_status
read_selected(const struct stage_config *config, struct csv_table *table)
{
    const struct spec_value *list = spec_get(config->stage, "select_cols");
    tundish_status status;

    if (list == NULL || list->kind == SPEC_NULL)
        return TUNDISH_OK;
    status = check_rising(config, list, "select_cols");
    if (status != TUNDISH_OK)
        return status;
    if (list->count != table->count)
        return spec_complain(config->errors, list->line, list->column,
                             "select_cols has %u fields, but record_defaults and column_names "
                             "have %u",
                             list->count, table->count);
    table->rules.select = tnd_zalloc(list->count + 1, sizeof *table->rules.select);
    for (uint32_t i = 0; i < list->count; i++)
        table->rules.select[table->rules.select_count++] = (uint32_t)list->items[i].integer;
    return TUNDISH_OK;
}

static tundish_status
read_rules(const struct stage_config *config, struct csv_table *table)
{
    const struct spec_value *delimiter = spec_get(config->stage, "field_delim");
    const struct spec_value *na_value = spec_get(config->stage, "na_value");

    if (delimiter->text_bytes != 1)
        return spec_complain(config->errors, delimiter->line, delimiter->column,
                             "field_delim must be one byte, but '%s' has %zu", delimiter->text,
                             delimiter->text_bytes);
    table->rules.delimiter = (uint8_t)delimiter->text[0];
    table->rules.quotes = spec_bool(config->stage, "use_quote_delim");
    table->na_value = literal_text(na_value->text, na_value->text_bytes);
    table->cut = csv_cut_best();
    return TUNDISH_OK;
}

tundish_status
csv_table_open(const struct stage_config *config, bool is_dataset, struct csv_table *ret_table)
{
    tundish_status status = read_columns(config, ret_table);
    tundish_status rules = read_rules(config, ret_table);
    tundish_status selected = read_selected(config, ret_table);

    ret_table->rules.is_dataset = is_dataset;
    if (selected == TUNDISH_OK && is_dataset)
        selected = read_excluded(config, ret_table);
    return status != TUNDISH_OK ? status : rules != TUNDISH_OK ? rules : selected;
}

void
csv_table_close(struct csv_table *table)
{
    for (uint32_t i = 0; i < table->count; i++) {
        literal_free(table->columns[i].fallback, table->columns[i].dtype, 1);
        free(table->columns[i].name);
    }
    free(table->columns);
    free(table->rules.select);
    free((void *)(uintptr_t)table->na_value.data);
    *table = (struct csv_table){ 0 };
}

struct reading {
    const struct csv_table *table;
    const struct csv_records *records;
    struct frame *frame;
    void *const *values;
    uint32_t *ends; /* BLOCK rows of `stride` */
    int64_t stride;
    struct byte_view *fields; /* of a record that is not plain */
};

static int64_t
element_of(const struct reading *reading, int64_t record)
{
    const struct column *column = reading->records->column;

    return column == NULL ? record : column_element_of(column, record);
}

static void
where(const struct reading *reading, int64_t record, char *text, size_t bytes)
{
    const struct csv_records *records = reading->records;
    int64_t begin, end;

    if (records->where != NULL) {
        records->where(records->context, record, text, bytes);
    } else if (records->column != NULL && records->column->level_count > 0) {
        column_value_range(records->column, element_of(reading, record),
                           element_of(reading, record) + 1, &begin, &end);
        snprintf(text, bytes, " in record %lld of the batch", (long long)(record - begin));
    } else {
        snprintf(text, bytes, " in the record");
    }
}

static void
reject_count(const struct reading *reading, int64_t record, int64_t count)
{
    char position[512];

    where(reading, record, position, sizeof position);
    frame_reject(reading->frame, element_of(reading, record),
                 "Expect %u fields but have %lld%s: name a column for each field, or say with "
                 "select_cols which fields the columns are",
                 reading->table->count, (long long)count, position);
}

/* A byte order mark is invisible where the sentence is read. */
static void
reject_value(const struct reading *reading, int64_t record, uint32_t c, struct byte_view field)
{
    const struct csv_column *column = &reading->table->columns[c];
    bool has_mark = field.size >= 3 && memcmp(field.data, "\xef\xbb\xbf", 3) == 0;
    char position[512];

    where(reading, record, position, sizeof position);
    if (has_mark)
        field = (struct byte_view){ field.data + 3, field.size - 3 };
    frame_reject(
        reading->frame, element_of(reading, record), "Field %u ('%s')%s is not a valid %s: %.*s%s",
        c, column->name, position, tnd_dtype_name(column->dtype),
        (int)(field.size < 200 ? field.size : 200), (const char *)field.data,
        has_mark ? " after a byte order mark (BOM): save the file as UTF-8 without a BOM" : "");
}

/* Reject a record for a missing field or a bad value, in TensorFlow's words. */
static void
reject_field(const struct reading *reading, int64_t record, uint32_t c, struct byte_view field)
{
    const struct csv_table *table = reading->table;
    const struct csv_column *column = &table->columns[c];
    char position[512];

    where(reading, record, position, sizeof position);
    if (field.size == 0 || bytes_are_equal(field, table->na_value))
        frame_reject(reading->frame, element_of(reading, record),
                     "Field %u ('%s') is required but missing%s%s%.*s: record_defaults gives it no "
                     "default to stand in",
                     c, column->name, position, field.size > 0 ? ", being " : "", (int)field.size,
                     (const char *)field.data);
    else
        reject_value(reading, record, c, field);
}

static inline bool
is_missing(struct byte_view na_value, struct byte_view field)
{
    return field.size == 0 ||
           (field.size == na_value.size && memcmp(field.data, na_value.data, field.size) == 0);
}

/* Store a field, or its default, at `to`. False: neither is possible. One body for each dtype keeps
 * the dispatch out of the loop over a column. */
#define DEFINE_STORE(name, type, convert)                                                          \
    static inline bool store_##name(struct byte_view na_value, const type *fallback,               \
                                    struct byte_view field, type *to)                              \
    {                                                                                              \
        if (!is_missing(na_value, field))                                                          \
            return convert;                                                                        \
        if (fallback != NULL)                                                                      \
            *to = *fallback;                                                                       \
        return fallback != NULL;                                                                   \
    }

DEFINE_STORE(int32, int32_t, number_int32(field.data, field.size, to))
DEFINE_STORE(int64, int64_t, number_int64(field.data, field.size, to))
DEFINE_STORE(float32, float, number_float32(field.data, field.size, to))
DEFINE_STORE(float64, double, number_float64(field.data, field.size, to))
DEFINE_STORE(string, struct byte_view, (*to = field, true))

static bool
store(const struct reading *reading, uint32_t c, int64_t record, struct byte_view field)
{
    const struct csv_column *column = &reading->table->columns[c];
    struct byte_view na_value = reading->table->na_value;
    void *values = reading->values[c];

    switch (column->dtype) {
    case TUNDISH_INT32:
        return store_int32(na_value, column->fallback, field, (int32_t *)values + record);
    case TUNDISH_INT64:
        return store_int64(na_value, column->fallback, field, (int64_t *)values + record);
    case TUNDISH_FLOAT32:
        return store_float32(na_value, column->fallback, field, (float *)values + record);
    case TUNDISH_FLOAT64:
        return store_float64(na_value, column->fallback, field, (double *)values + record);
    default:
        return store_string(na_value, column->fallback, field, (struct byte_view *)values + record);
    }
}

/* Zero the values of a rejected record. It is never delivered, but later stages still read it;
 * zeroed strings are empty. */
static void
blank(const struct reading *reading, int64_t record)
{
    for (uint32_t c = 0; c < reading->table->count; c++) {
        size_t bytes = literal_bytes(reading->table->columns[c].dtype);

        memset((uint8_t *)reading->values[c] + (size_t)record * bytes, 0, bytes);
    }
}

/* Read a record that is not plain, or that is wrong, in one go. */
static void
read_record(const struct reading *reading, int64_t record)
{
    const struct csv_table *table = reading->table;
    const char *problem = NULL;
    char position[512];
    int64_t count = csv_fields(&table->rules, reading->records->records[record],
                               reading->frame->scratch, reading->fields, table->count, &problem);

    if (count != table->count) {
        where(reading, record, position, sizeof position);
        if (count < 0)
            frame_reject(reading->frame, element_of(reading, record), "%s%s", problem, position);
        else
            reject_count(reading, record, count);
        blank(reading, record);
        return;
    }
    for (uint32_t c = 0; c < table->count; c++)
        if (!store(reading, c, record, reading->fields[c])) {
            reject_field(reading, record, c, reading->fields[c]);
            blank(reading, record);
            return;
        }
}

/* The plain records of a block. */
struct block {
    int64_t count;
    int64_t records[BLOCK]; /* their numbers */
    const uint8_t *data[BLOCK];
    bool is_bad[BLOCK]; /* some field could not be converted */
};

/* Convert field `number` of each record in the block to column c. Field ends start with UINT32_MAX,
 * as if a delimiter were at position -1: adding 1 wraps to 0. */
#define DEFINE_COLUMN(name, type)                                                                  \
    static void column_##name(const struct reading *reading, struct block *block, uint32_t c,      \
                              uint32_t number)                                                     \
    {                                                                                              \
        const struct byte_view na_value = reading->table->na_value;                                \
        const type *fallback = reading->table->columns[c].fallback;                                \
        const uint32_t *ends = reading->ends + number;                                             \
        type *to = reading->values[c];                                                             \
                                                                                                   \
        for (int64_t i = 0; i < block->count; i++, ends += reading->stride) {                      \
            uint32_t begin = ends[0] + 1;                                                          \
            struct byte_view field = { block->data[i] + begin, ends[1] - begin };                  \
                                                                                                   \
            if (!store_##name(na_value, fallback, field, &to[block->records[i]]))                  \
                block->is_bad[i] = true;                                                           \
        }                                                                                          \
    }

DEFINE_COLUMN(int32, int32_t)
DEFINE_COLUMN(int64, int64_t)
DEFINE_COLUMN(float32, float)
DEFINE_COLUMN(float64, double)
/* Strings with "" as default: an empty field is itself, so there is nothing to check. */
static void
column_plain_string(const struct reading *reading, const struct block *block, uint32_t c,
                    uint32_t number)
{
    const uint32_t *ends = reading->ends + number;
    struct byte_view *to = reading->values[c];

    for (int64_t i = 0; i < block->count; i++, ends += reading->stride) {
        uint32_t begin = ends[0] + 1;

        to[block->records[i]] = (struct byte_view){ block->data[i] + begin, ends[1] - begin };
    }
}

static bool
is_plain_string(const struct csv_table *table, uint32_t c)
{
    const struct byte_view *fallback = table->columns[c].fallback;

    return table->na_value.size == 0 && fallback != NULL && fallback->size == 0;
}

DEFINE_COLUMN(string, struct byte_view)

static void
convert_block(const struct reading *reading, struct block *block)
{
    const struct csv_table *table = reading->table;

    for (uint32_t c = 0; c < table->count; c++) {
        uint32_t number = table->rules.select == NULL ? c : table->rules.select[c];

        switch (table->columns[c].dtype) {
        case TUNDISH_INT32:
            column_int32(reading, block, c, number);
            break;
        case TUNDISH_INT64:
            column_int64(reading, block, c, number);
            break;
        case TUNDISH_FLOAT32:
            column_float32(reading, block, c, number);
            break;
        case TUNDISH_FLOAT64:
            column_float64(reading, block, c, number);
            break;
        default:
            if (is_plain_string(table, c))
                column_plain_string(reading, block, c, number);
            else
                column_string(reading, block, c, number);
            break;
        }
    }
    for (int64_t i = 0; i < block->count; i++)
        if (block->is_bad[i])
            read_record(reading, block->records[i]);
}

/* Whether a plain record of `count` fields has the wanted ones. */
static bool
has_fields(const struct csv_table *table, int64_t count)
{
    if (table->rules.select == NULL)
        return count == table->count;
    return count > (int64_t)table->rules.select[table->rules.select_count - 1] &&
           (table->rules.total == 0 || count <= (int64_t)table->rules.total);
}

/* Cut records from `begin` on. Read those that are not plain at once, and leave the others in the
 * block. */
static void
cut_block(const struct reading *reading, int64_t begin, int64_t end, struct block *block)
{
    const struct csv_table *table = reading->table;
    const struct byte_view *records = reading->records->records;

    block->count = 0;
    for (int64_t r = begin; r < end; r++) {
        uint32_t *ends = &reading->ends[block->count * reading->stride];

        ends[0] = UINT32_MAX;
        if (records[r].size == 0 || !has_fields(table, table->cut(&table->rules, records[r],
                                                                  ends + 1, reading->stride - 1))) {
            read_record(reading, r);
            continue;
        }
        block->records[block->count] = r;
        block->data[block->count] = records[r].data;
        block->is_bad[block->count++] = false;
    }
}

void
csv_table_read(const struct csv_table *table, const struct csv_records *records,
               struct frame *frame, void *const *values)
{
    struct reading reading = {
        .table = table, .records = records, .frame = frame, .values = values
    };
    struct block block;
    int64_t fields = table->count;

    if (table->rules.select != NULL)
        fields = (int64_t)table->rules.select[table->rules.select_count - 1] + 1;
    reading.stride = fields + 64 + 1; /* up to 64 ends are written before they are counted */
    reading.ends = scratch_array(frame->scratch, BLOCK * (size_t)reading.stride + CSV_CUT_SLACK,
                                 sizeof *reading.ends);
    reading.fields = scratch_array(frame->scratch, table->count, sizeof *reading.fields);
    for (int64_t begin = 0; begin < records->count; begin += BLOCK) {
        cut_block(&reading, begin, begin + BLOCK < records->count ? begin + BLOCK : records->count,
                  &block);
        convert_block(&reading, &block);
    }
}
