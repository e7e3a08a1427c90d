/* check_features.c - mappings whose entries have parameters of their own. */
#include <string.h>

#include "spec/check.h"
#include "spec/name_pattern.h"
#include "spec/stage_rules.h"

/* The kind of a feature, or NULL after a complaint. */
static const struct stage_info *
feature_kind(struct check *check, const struct spec_value *key, const struct spec_value *entry)
{
    const struct spec_value *type = spec_map_get(entry, "type");
    const char *words[8];
    const char *nearest;

    if (type == NULL) {
        spec_complain(check->errors, entry->line, entry->column,
                      "the feature \"%s\" needs type: FixedLen, FixedLenSequence, VarLen or Ragged",
                      key->text);
        return NULL;
    }
    if (type->kind == SPEC_BROKEN)
        return NULL;
    for (uint32_t i = 0; i < feature_count; i++) {
        words[i] = feature_table[i].name;
        if (type->kind == SPEC_TEXT && strcmp(type->text, words[i]) == 0)
            return &feature_table[i];
    }
    nearest = type->kind == SPEC_TEXT ? spec_nearest(type->text, words, feature_count) : NULL;
    spec_complain(check->errors, type->line, type->column,
                  "type must be FixedLen, FixedLenSequence, VarLen or Ragged%s",
                  spec_hint(nearest, "").text);
    return NULL;
}

static void
check_partition(struct check *check, const struct spec_value *partition)
{
    static const char *const words[] = { "RowLengths", "RowSplits",   "RowStarts",
                                         "RowLimits",  "ValueRowIds", "UniformRowLength" };
    enum { KINDS = sizeof words / sizeof words[0] };
    const struct spec_value *key, *value;
    size_t kind = 0;
    const char *nearest;

    if (partition->kind == SPEC_BROKEN)
        return;
    if (partition->kind != SPEC_MAP || partition->count != 1) {
        spec_complain(check->errors, partition->line, partition->column,
                      "expected a partition with one key, as {RowLengths: key} or "
                      "{UniformRowLength: n}");
        return;
    }
    key = &partition->keys[0];
    value = &partition->items[0];
    if (key->kind == SPEC_BROKEN || value->kind == SPEC_BROKEN)
        return;
    while (kind < KINDS && strcmp(words[kind], key->text) != 0)
        kind++;
    if (kind == KINDS) {
        nearest = spec_nearest(key->text, words, KINDS);
        spec_complain(check->errors, key->line, key->column,
                      "there is no partition \"%.60s\"; %s%s%s", key->text,
                      nearest != NULL ? "did you mean "
                                      : "expected RowLengths, RowSplits, RowStarts, RowLimits, "
                                        "ValueRowIds or UniformRowLength",
                      nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
        /* The last kind takes a number, and the others the name of a feature. */
    } else if (kind == KINDS - 1 && (value->kind != SPEC_INTEGER || value->integer < 0)) {
        spec_complain(check->errors, value->line, value->column,
                      "UniformRowLength must be an integer of at least 0");
    } else if (kind < KINDS - 1 && value->kind != SPEC_TEXT) {
        spec_complain(check->errors, value->line, value->column,
                      "%s must be a key of the record; quote it if it is a number", key->text);
    }
}

static void
check_feature(struct check *check, const struct spec_value *key, const struct spec_value *entry)
{
    const struct stage_info *kind;
    const struct spec_value *value;

    if (key->kind == SPEC_BROKEN || entry->kind == SPEC_BROKEN)
        return;
    if (entry->kind != SPEC_MAP) {
        spec_complain(check->errors, entry->line, entry->column,
                      "the feature \"%s\" must be a mapping, as {type: FixedLen, dtype: int64, "
                      "shape: []}",
                      key->text);
        return;
    }
    kind = feature_kind(check, key, entry);
    if (kind == NULL)
        return;
    check_mapping(check, kind, entry, NULL);
    /* tf.io.parse_example raises a ValueError without it. */
    if (strcmp(kind->name, "FixedLenSequence") == 0) {
        value = spec_map_get(entry, "allow_missing");
        if (value == NULL || (value->kind == SPEC_BOOL && !value->boolean))
            spec_complain(check->errors, entry->line, entry->column,
                          "the feature \"%s\" needs allow_missing: true, as FixedLenSequence does "
                          "in TensorFlow",
                          key->text);
    }
    value = strcmp(kind->name, "Ragged") == 0 ? spec_map_get(entry, "partitions") : NULL;
    for (uint32_t i = 0; value != NULL && value->kind == SPEC_LIST && i < value->count; i++)
        check_partition(check, &value->items[i]);
}

void
rule_features(struct check *check, const struct spec_stage *stage,
              const struct spec_value *features)
{
    if (features->kind != SPEC_MAP)
        return;
    for (uint32_t i = 0; i < features->count; i++) {
        const struct spec_value *key = &features->keys[i];

        check_feature(check, key, &features->items[i]);
        if (key->kind == SPEC_TEXT && name_pattern_is(key->text) &&
            spec_get(stage, "columns") == NULL)
            spec_complain(check->errors, key->line, key->column,
                          "the pattern \"%s\" matches names of `columns`, which %s does not have",
                          key->text, stage->info->name);
    }
    if (features->count == 0)
        spec_complain(check->errors, features->line, features->column,
                      "features needs at least one feature");
}

void
rule_record_defaults(struct check *check, const struct spec_stage *stage,
                     const struct spec_value *defaults)
{
    bool has_entries = defaults->kind == SPEC_LIST || defaults->kind == SPEC_MAP;

    (void)stage;
    /* A quoted "int32" is a default of type string, not a dtype. */
    for (uint32_t i = 0; has_entries && i < defaults->count; i++) {
        const struct spec_value *entry = &defaults->items[i];
        tundish_dtype dtype = entry->kind == SPEC_TEXT && !entry->quoted
                                  ? tnd_dtype_by_name(entry->text)
                                  : (tundish_dtype)0;

        if (entry->kind == SPEC_MAP)
            check_mapping(check, &section_field, entry, NULL);
        else if (entry->kind == SPEC_LIST || entry->kind == SPEC_NULL)
            spec_complain(check->errors, entry->line, entry->column,
                          "expected a dtype, a default or {values, dtype} in record_defaults");
        /* The types that tf.io.decode_csv has. */
        else if (dtype != 0 && dtype != TUNDISH_INT32 && dtype != TUNDISH_INT64 &&
                 dtype != TUNDISH_FLOAT32 && dtype != TUNDISH_FLOAT64 && dtype != TUNDISH_STRING)
            spec_complain(check->errors, entry->line, entry->column,
                          "a field of a CSV file is float32, float64, int32, int64 or string, not "
                          "%s",
                          entry->text);
    }
}

static void
check_tensor(struct check *check, const struct spec_value *entry)
{
    check_mapping(check, &section_tensor, entry, NULL);
    /* Either both or none is wrong. */
    if ((spec_map_get(entry, "values") == NULL) == (spec_map_get(entry, "npy") == NULL))
        spec_complain(check->errors, entry->line, entry->column,
                      "a column has either values or npy");
}

void
rule_values(struct check *check, const struct spec_stage *stage, const struct spec_value *columns)
{
    (void)stage;
    for (uint32_t i = 0; columns->kind == SPEC_MAP && i < columns->count; i++)
        if (columns->items[i].kind == SPEC_MAP)
            check_tensor(check, &columns->items[i]);
}

void
rule_tensors(struct check *check, const struct spec_stage *stage, const struct spec_value *tensors)
{
    if (tensors->kind != SPEC_MAP)
        return;
    for (uint32_t i = 0; i < tensors->count; i++) {
        const struct spec_value *entry = &tensors->items[i];

        if (entry->kind == SPEC_NULL)
            spec_complain(check->errors, entry->line, entry->column,
                          "expected values for the column \"%s\"", tensors->keys[i].text);
        if (entry->kind == SPEC_MAP)
            check_tensor(check, entry);
    }
    if (tensors->count == 0)
        spec_complain(check->errors, tensors->line, tensors->column, "%s needs at least one column",
                      stage->info->name);
}

void
rule_program_spec(struct check *check, const struct spec_stage *stage,
                  const struct spec_value *columns)
{
    if (columns->kind != SPEC_MAP)
        return;
    for (uint32_t i = 0; i < columns->count; i++)
        check_mapping(check, &section_program_spec, &columns->items[i], NULL);
    if (columns->count == 0)
        spec_complain(check->errors, columns->line, columns->column,
                      "spec of %s needs at least one column", stage->info->name);
}
