/* features.c - read the parameter `features`: {a: {type: FixedLen, dtype: int64, shape: []},
 * ...}. */
#include "content/records/features.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "column/literal.h"
#include "core/memory.h"
#include "core/plural.h"
#include "spec/column_list.h"

static const char *const type_names[] = { "FixedLen", "FixedLenSequence", "VarLen", "Ragged" };

static const char *const partition_names[] = { "RowSplits", "RowLengths",  "RowStarts",
                                               "RowLimits", "ValueRowIds", "UniformRowLength" };

char *
features_shape_text(const int64_t *shape, int rank)
{
    char text[32 * RANK_MAX];
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < rank; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", i ? "," : "",
                                 (long long)shape[i]);
    return tnd_sprintf("[%s]", text);
}

/* The entry being read, and its column. */
struct entry {
    const struct stage_config *config;
    const struct spec_value *map;
    struct feature *feature;
};

#define COMPLAIN(entry, value, ...)                                                                \
    spec_complain((entry)->config->errors, (value)->line, (value)->column, __VA_ARGS__)

/* The index of a text among `count` words, or -1. */
static int
one_of(const struct spec_value *value, const char *const *words, size_t count)
{
    for (size_t i = 0; value->kind == SPEC_TEXT && i < count; i++)
        if (strcmp(value->text, words[i]) == 0)
            return (int)i;
    return -1;
}

static tundish_status
read_type(const struct entry *entry)
{
    const struct spec_value *type = spec_map_get(entry->map, "type");
    int which = type == NULL ? -1 : one_of(type, type_names, 4);

    if (which < 0)
        return COMPLAIN(entry, type == NULL ? entry->map : type,
                        "feature '%s': type must be FixedLen, FixedLenSequence, VarLen or Ragged",
                        entry->feature->column);
    entry->feature->type = (enum feature_type)which;
    return TUNDISH_OK;
}

static tundish_status
read_dtype(const struct entry *entry)
{
    const struct spec_value *value = spec_map_get(entry->map, "dtype");
    tundish_dtype dtype = (tundish_dtype)0;

    if (value != NULL && value->kind == SPEC_TEXT)
        dtype = tnd_dtype_by_name(value->text);
    if (dtype != TUNDISH_INT64 && dtype != TUNDISH_FLOAT32 && dtype != TUNDISH_STRING)
        return COMPLAIN(entry, value == NULL ? entry->map : value,
                        "feature '%s': dtype must be int64, float32 or string%s%s",
                        entry->feature->column, value && value->text ? ", not " : "",
                        value && value->text ? value->text : "");
    entry->feature->dtype = dtype;
    return TUNDISH_OK;
}

static tundish_status
read_shape(const struct entry *entry)
{
    const struct spec_value *value = spec_map_get(entry->map, "shape");
    struct feature *feature = entry->feature;

    feature->value_count = 1;
    if (feature->type != FEATURE_FIXED && feature->type != FEATURE_SEQUENCE)
        return TUNDISH_OK;
    if (value == NULL || value->kind != SPEC_LIST)
        return COMPLAIN(entry, value == NULL ? entry->map : value,
                        "feature '%s': shape must be a list, [] for a scalar", feature->column);
    if (value->count > RANK_MAX - 2)
        return COMPLAIN(entry, value, "feature '%s': shape has more than %d dimensions",
                        feature->column, RANK_MAX - 2);
    for (uint32_t i = 0; i < value->count; i++) {
        const struct spec_value *item = &value->items[i];

        if (item->kind == SPEC_NULL)
            return COMPLAIN(entry, item,
                            "feature '%s': the shape must be known; for a varying first dimension "
                            "use FixedLenSequence",
                            feature->column);
        if (item->kind != SPEC_INTEGER || item->integer < 0)
            return COMPLAIN(entry, item, "feature '%s': a dimension must be an integer from 0",
                            feature->column);
        feature->shape[feature->rank++] = item->integer;
        if (__builtin_mul_overflow(feature->value_count, item->integer, &feature->value_count) ||
            feature->value_count > INT32_MAX)
            return COMPLAIN(entry, value, "feature '%s': the shape is too large", feature->column);
    }
    if (feature->type == FEATURE_SEQUENCE && feature->value_count == 0)
        return COMPLAIN(entry, value, "feature '%s': no dimension of the shape may be 0",
                        feature->column);
    return TUNDISH_OK;
}

static void
zero_value(tundish_dtype dtype, void *to)
{
    memset(to, 0, literal_bytes(dtype));
    if (dtype == TUNDISH_STRING)
        ((struct byte_view *)to)->data = literal_text("", 0).data;
}

/* Whether missing features become zeros, which only decode_json offers. */
static bool
gives_defaults(const struct stage_config *config)
{
    return stage_parameter(config->stage->info, "missing") >= 0 &&
           strcmp(spec_text(config->stage, "missing"), "default") == 0;
}

static tundish_status
read_default(const struct entry *entry)
{
    const struct spec_value *value = spec_map_get(entry->map, "default_value");
    struct feature *feature = entry->feature;
    int64_t wanted = feature->type == FEATURE_SEQUENCE ? 1 : feature->value_count;
    char what[256];
    void *values;
    tundish_status status = TUNDISH_OK;

    if (feature->type != FEATURE_FIXED && feature->type != FEATURE_SEQUENCE)
        return TUNDISH_OK;
    if (value != NULL && value->kind == SPEC_NULL)
        value = NULL;
    if (value == NULL && feature->type == FEATURE_FIXED && !gives_defaults(entry->config))
        return TUNDISH_OK;
    if (value != NULL && literal_count(value) != wanted)
        return COMPLAIN(entry, value, "feature '%s': default_value must have %lld value%s",
                        feature->column, (long long)wanted, TND_PLURAL(wanted));
    /* TensorFlow takes a default without values for none, so that the feature is required. */
    if (value != NULL && wanted == 0 && !gives_defaults(entry->config))
        return TUNDISH_OK;
    values = tnd_zalloc((size_t)wanted, literal_bytes(feature->dtype));
    snprintf(what, sizeof what, "feature '%.200s': default_value", feature->column);
    for (int64_t i = 0; value == NULL && i < wanted; i++)
        zero_value(feature->dtype, (uint8_t *)values + (size_t)i * literal_bytes(feature->dtype));
    if (value != NULL)
        status = literal_store_all(value, feature->dtype, what, entry->config->errors, values);
    if (status == TUNDISH_OK)
        feature->fallback = values;
    else
        free(values);
    return status;
}

static tundish_status
read_allow_missing(const struct entry *entry)
{
    const struct spec_value *value = spec_map_get(entry->map, "allow_missing");

    if (entry->feature->type != FEATURE_SEQUENCE)
        return TUNDISH_OK;
    if (value == NULL || value->kind != SPEC_BOOL || !value->boolean)
        return COMPLAIN(entry, value == NULL ? entry->map : value,
                        "feature '%s': FixedLenSequence needs allow_missing: true",
                        entry->feature->column);
    return TUNDISH_OK;
}

static bool
is_key(const struct spec_value *value)
{
    return value->kind == SPEC_TEXT && memchr(value->text, '\0', value->text_bytes) == NULL;
}

static tundish_status
read_key(const struct entry *entry)
{
    const char *name = entry->feature->type == FEATURE_RAGGED ? "value_key" : "key";
    const struct spec_value *value = spec_map_get(entry->map, name);

    if (value != NULL && value->kind == SPEC_NULL)
        value = NULL;
    if (value != NULL && !is_key(value))
        return COMPLAIN(entry, value, "feature '%s': %s must be text, without a NUL",
                        entry->feature->column, name);
    entry->feature->key = value == NULL ? tnd_strdup(entry->feature->column)
                                        : spec_for_column(value->text, entry->feature->column);
    return TUNDISH_OK;
}

static tundish_status
read_partition(const struct entry *entry, const struct spec_value *value)
{
    struct feature *feature = entry->feature;
    struct feature_partition *partition = &feature->partitions[feature->partition_count];
    const struct spec_value *argument;
    int type = -1;

    if (value->kind == SPEC_MAP && value->count == 1)
        type = one_of(&value->keys[0], partition_names, 6);
    if (type < 0)
        return COMPLAIN(entry, value,
                        "feature '%s': a partition must be {RowSplits: KEY}, {RowLengths: KEY}, "
                        "{RowStarts: KEY}, {RowLimits: KEY}, {ValueRowIds: KEY} or "
                        "{UniformRowLength: N}",
                        feature->column);
    argument = &value->items[0];
    partition->type = (enum partition_type)type;
    if (partition->type == PARTITION_UNIFORM) {
        if (argument->kind != SPEC_INTEGER || argument->integer < 1)
            return COMPLAIN(entry, argument,
                            "feature '%s': UniformRowLength must be an integer from 1",
                            feature->column);
        partition->length = argument->integer;
    } else {
        if (!is_key(argument))
            return COMPLAIN(entry, argument, "feature '%s': %s must be a key of the record",
                            feature->column, partition_names[type]);
        partition->key = spec_for_column(argument->text, feature->column);
    }
    feature->partition_count++;
    return TUNDISH_OK;
}

static tundish_status
read_ragged(const struct entry *entry)
{
    const struct spec_value *partitions = spec_map_get(entry->map, "partitions");
    const struct spec_value *dtype = spec_map_get(entry->map, "row_splits_dtype");
    const struct spec_value *validate = spec_map_get(entry->map, "validate");
    struct feature *feature = entry->feature;
    tundish_status status = TUNDISH_OK;

    if (feature->type != FEATURE_RAGGED)
        return TUNDISH_OK;
    feature->splits_int32 = dtype == NULL || one_of(dtype, (const char *[]){ "int32" }, 1) == 0;
    if (!feature->splits_int32 && one_of(dtype, (const char *[]){ "int64" }, 1) != 0)
        return COMPLAIN(entry, dtype, "feature '%s': row_splits_dtype must be int32 or int64",
                        feature->column);
    if (validate != NULL && validate->kind != SPEC_BOOL)
        return COMPLAIN(entry, validate, "feature '%s': validate must be true or false",
                        feature->column);
    if (partitions == NULL)
        return TUNDISH_OK;
    if (partitions->kind != SPEC_LIST || partitions->count > RANK_MAX - 2)
        return COMPLAIN(entry, partitions,
                        "feature '%s': partitions must be a list of at most %d, outermost first",
                        feature->column, RANK_MAX - 2);
    feature->partitions = tnd_zalloc(partitions->count + 1, sizeof *feature->partitions);
    for (uint32_t i = 0; i < partitions->count && status == TUNDISH_OK; i++)
        status = read_partition(entry, &partitions->items[i]);
    return status;
}

static tundish_status
read_feature(const struct stage_config *config, const struct spec_value *map,
             struct feature *feature)
{
    static tundish_status (*const steps[])(const struct entry *) = {
        read_type, read_dtype, read_shape, read_default, read_allow_missing, read_key, read_ragged
    };
    const struct entry entry = { config, map, feature };
    tundish_status status = TUNDISH_OK;

    feature->line = map->line;
    feature->at_column = map->column;
    if (map->kind != SPEC_MAP)
        return COMPLAIN(&entry, map, "feature '%s' must be {type: ..., dtype: ..., ...}",
                        feature->column);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == TUNDISH_OK; i++)
        status = steps[i](&entry);
    return status;
}

/* Without `columns`, the keys of `features` name the columns. */
static tundish_status
names_of_keys(const struct stage_config *config, const struct spec_value *features,
              struct spec_names *ret_names)
{
    for (uint32_t i = 0; i < features->count; i++) {
        struct spec_names some = { 0 };
        tundish_status status =
            spec_expand_columns(&features->keys[i], NULL, 0, config->errors, &some);

        if (status != TUNDISH_OK)
            return status;
        ret_names->names = tnd_realloc(ret_names->names, ret_names->count + some.count + 1,
                                       sizeof *ret_names->names);
        for (size_t k = 0; k < some.count; k++)
            ret_names->names[ret_names->count++] = some.names[k];
        free(some.names);
    }
    return TUNDISH_OK;
}

/* Complain of entries that apply to no column. */
static tundish_status
check_entries_used(const struct stage_config *config, const struct spec_value *features,
                   const bool *is_used)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < features->count; i++)
        if (!is_used[i])
            status = spec_complain(config->errors, features->keys[i].line, features->keys[i].column,
                                   "feature '%s' matches none of columns", features->keys[i].text);
    return status;
}

static tundish_status
read_all(const struct stage_config *config, const struct spec_value *features,
         const struct spec_names *names, struct feature_list *list)
{
    bool *is_used = tnd_zalloc(features->count, sizeof *is_used);
    tundish_status status = TUNDISH_OK;

    list->features = tnd_zalloc(names->count, sizeof *list->features);
    for (size_t i = 0; i < names->count; i++) {
        const struct spec_value *map = spec_entry_for(features, names->names[i]);
        struct feature *feature = &list->features[list->count++];
        tundish_status each;

        feature->column = tnd_strdup(names->names[i]);
        if (map != NULL)
            is_used[map - features->items] = true;
        each = map != NULL ? read_feature(config, map, feature)
                           : stage_complain(config, "features has no entry for column '%s'",
                                            feature->column);
        if (each != TUNDISH_OK)
            status = each;
    }
    if (check_entries_used(config, features, is_used) != TUNDISH_OK)
        status = TUNDISH_E_PIPELINE;
    free(is_used);
    return status;
}

tundish_status
features_open(const struct stage_config *config, struct feature_list *ret_list)
{
    const struct spec_value *features = spec_get(config->stage, "features");
    const struct spec_value *columns = spec_get(config->stage, "columns");
    struct spec_names names = { 0 };
    tundish_status status;

    if (features == NULL || features->kind != SPEC_MAP || features->count == 0)
        return stage_complain(config, "features must not be empty: {NAME: {type: ...}}");
    status = columns == NULL ? names_of_keys(config, features, &names)
                             : spec_expand_columns(columns, NULL, 0, config->errors, &names);
    if (status == TUNDISH_OK)
        status = read_all(config, features, &names, ret_list);
    spec_names_close(&names);
    return status;
}

void
features_close(struct feature_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        struct feature *feature = &list->features[i];

        literal_free(feature->fallback, feature->dtype,
                     feature->type == FEATURE_SEQUENCE ? 1 : feature->value_count);
        for (uint32_t k = 0; k < feature->partition_count; k++)
            free(feature->partitions[k].key);
        free(feature->partitions);
        free(feature->column);
        free(feature->key);
    }
    free(list->features);
    *list = (struct feature_list){ 0 };
}

tundish_status
features_serialized(const struct stage_config *config, uint32_t *ret_index)
{
    const struct spec_value *serialized = spec_get(config->stage, "serialized");
    const char *name = serialized == NULL ? "value" : serialized->text;
    int32_t index = schema_find(config->input, name);

    if (index < 0 && serialized == NULL && config->input->count == 1)
        index = 0;
    if (index < 0)
        return spec_complain(config->errors, serialized ? serialized->line : config->stage->line,
                             serialized ? serialized->column : config->stage->column,
                             "there is no column '%s' to parse; name one with serialized", name);
    if (config->input->columns[index].dtype != TUNDISH_STRING ||
        config->input->columns[index].kind != TUNDISH_DENSE)
        return stage_complain(config, "column '%s' is %s, but parsing needs strings",
                              config->input->columns[index].name,
                              tnd_dtype_name(config->input->columns[index].dtype));
    *ret_index = (uint32_t)index;
    return TUNDISH_OK;
}
