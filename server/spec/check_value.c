/* check_value.c - does a value fit its parameter? */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/memory.h"
#include "core/must.h"
#include "spec/check.h"
#include "spec/describe.h"
#include "spec/file_name.h"
#include "spec/quantity.h"
#include "spec/scalar.h"
#include "spec/yaml_reader.h"

static bool
is_scalar(const struct spec_value *value)
{
    return value->kind == SPEC_BOOL || value->kind == SPEC_INTEGER || value->kind == SPEC_NATURAL ||
           value->kind == SPEC_NUMBER || value->kind == SPEC_TEXT;
}

/* Words of other languages and this file's: the booleans of YAML 1.1, Python's types. */
static const char *
other_name(uint32_t types, const char *word)
{
    static const struct {
        uint32_t type;
        const char *elsewhere, *here;
    } names[] = {
        { TYPE_BOOL, "yes", "true" },
        { TYPE_BOOL, "on", "true" },
        { TYPE_BOOL, "no", "false" },
        { TYPE_BOOL, "off", "false" },
        { TYPE_DTYPE, "int", "int32" },
        { TYPE_DTYPE, "float", "float32" },
        { TYPE_DTYPE, "str", "string" },
        { TYPE_DTYPE, "double", "float64" },
        { TYPE_DTYPE, "half", "float16" },
        { TYPE_DTYPE, "bytes", "string" },
        { TYPE_AUTOTUNE, "auto", "AUTOTUNE" },
        { TYPE_AUTOTUNE, "tf.data.AUTOTUNE", "AUTOTUNE" },
        { TYPE_AUTOTUNE, "tf.data.experimental.AUTOTUNE", "AUTOTUNE" },
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (types & names[i].type && strcasecmp(word, names[i].elsewhere) == 0)
            return names[i].here;
    return NULL;
}

/* The word nearest to this one among those that may stand here, or NULL. */
static const char *
nearest_word(struct check *check, const struct parameter_info *parameter, const char *word)
{
    const char *words[64];
    const char *other = other_name(parameter->types, word);
    size_t count = 0;

    if (other != NULL)
        return other;
    if (parameter->types & TYPE_DTYPE)
        for (int dtype = TUNDISH_BOOL; dtype <= TUNDISH_STRING; dtype++)
            words[count++] = tnd_dtype_name((tundish_dtype)dtype);
    if (parameter->types & TYPE_BOOL) {
        words[count++] = "true";
        words[count++] = "false";
    }
    if (parameter->types & TYPE_AUTOTUNE)
        words[count++] = "AUTOTUNE";
    for (const char *at = parameter->choices; at != NULL && count < 64;) {
        size_t bytes = strcspn(at, "|");

        words[count++] = spec_memory_text(check->memory, at, bytes);
        at = at[bytes] == '|' ? at + bytes + 1 : NULL;
    }
    return spec_nearest(word, words, count);
}

/* Complain about `value`, which is the parameter's value or an item of it. */
static void
refuse(struct check *check, const struct stage_info *owner, const struct parameter_info *parameter,
       const struct spec_value *value)
{
    char found[80];
    char *text;
    size_t text_bytes;
    const char *nearest = NULL;
    FILE *out = open_memstream(&text, &text_bytes);

    tnd_must_have(out != NULL);
    fprintf(out, "%s of %s must be ", parameter->name, owner->name);
    describe_parameter(parameter, out);
    fprintf(out, ", not %s", describe_value(value, found, sizeof found));
    if (value->kind == SPEC_TEXT)
        nearest = nearest_word(check, parameter, value->text);
    if (nearest != NULL && *nearest != '\0')
        fprintf(out, "; did you mean %s?", nearest);
    /* YAML reads 12 as a number and true as a boolean, wherever a text was meant. */
    else if (is_scalar(value) && value->kind != SPEC_TEXT && parameter->choices == NULL &&
             parameter->types &
                 (TYPE_TEXT | TYPE_TEXTS | TYPE_PATHS | TYPE_COLUMNS | TYPE_TEXT_MAP))
        fputs("; quote it if it is a text", out);
    else if (value->kind == SPEC_TEXT && value->quoted &&
             parameter->types & (TYPE_INTEGER | TYPE_NUMBER | TYPE_BOOL))
        fputs("; remove the quotes if it is not a text", out);
    else if (value->kind == SPEC_MAP && parameter->types & TYPE_DATASET)
        fputs("; put `- ` before each stage", out);
    tnd_must_have(fclose(out) == 0);
    spec_complain(check->errors, value->line, value->column, "%s", text);
    free(text);
}

static bool
is_choice(const char *choices, const char *word)
{
    size_t word_bytes = strlen(word);

    for (const char *at = choices;;) {
        size_t bytes = strcspn(at, "|");

        if (bytes == word_bytes && memcmp(at, word, bytes) == 0)
            return true;
        if (at[bytes] == '\0')
            return false;
        at += bytes + 1;
    }
}

static bool
is_in_range(const struct parameter_info *parameter, const struct spec_value *value)
{
    /* An empty range means any value. */
    if (parameter->minimum > parameter->maximum || value->kind == SPEC_VARIABLE)
        return true;
    if (value->kind == SPEC_INTEGER)
        return value->integer >= parameter->minimum && value->integer <= parameter->maximum;
    /* A natural is above INT64_MAX, so it fits only where there is no upper bound. */
    if (value->kind == SPEC_NATURAL)
        return parameter->maximum == INT64_MAX;
    return value->number >= (double)parameter->minimum &&
           (parameter->maximum == INT64_MAX || value->number <= (double)parameter->maximum);
}

static bool
is_integer(const struct parameter_info *parameter, const struct spec_value *value)
{
    /* Choices of integers are compared as written: 08 is not 8. */
    if (parameter->choices != NULL && value->kind == SPEC_INTEGER &&
        (parameter->types & TYPE_TEXT) == 0)
        return is_choice(parameter->choices, value->text);
    return value->kind == SPEC_INTEGER && is_in_range(parameter, value);
}

static bool
is_number(const struct parameter_info *parameter, const struct spec_value *value)
{
    return (value->kind == SPEC_INTEGER || value->kind == SPEC_NATURAL ||
            value->kind == SPEC_NUMBER) &&
           is_in_range(parameter, value);
}

static bool
is_text(const struct parameter_info *parameter, const struct spec_value *value)
{
    return value->kind == SPEC_TEXT &&
           (parameter->choices == NULL || is_choice(parameter->choices, value->text));
}

/* Does the value fit one of the alternatives that are not lists or mappings? */
static bool
fits_scalar(const struct parameter_info *parameter, const struct spec_value *value)
{
    uint32_t types = parameter->types;

    if (value->kind == SPEC_VARIABLE)
        return true; /* refuse_variables has complained where none may be */
    return (types & TYPE_NULL && value->kind == SPEC_NULL) ||
           (types & TYPE_BOOL && value->kind == SPEC_BOOL) ||
           (types & TYPE_INTEGER && is_integer(parameter, value)) ||
           (types & TYPE_NUMBER && is_number(parameter, value)) ||
           (types & TYPE_TEXT && is_text(parameter, value)) ||
           (types & (TYPE_FILE_NAME | TYPE_PATHS | TYPE_COLUMNS | TYPE_EXPRESSION) &&
            value->kind == SPEC_TEXT) ||
           (types & TYPE_DTYPE && value->kind == SPEC_TEXT && tnd_dtype_by_name(value->text)) ||
           (types & TYPE_DURATION && quantity_duration_ns(value, NULL)) ||
           (types & TYPE_SIZE && quantity_bytes(value, NULL));
}

static bool
fits_item(const struct parameter_info *parameter, const struct spec_value *item)
{
    uint32_t types = parameter->types;

    /* The items of TYPE_LIST may be anything; the stage checks them. */
    if (types & TYPE_LIST || item->kind == SPEC_BROKEN)
        return true;
    if (item->kind == SPEC_VARIABLE)
        return true;
    return (types & TYPE_INTEGERS && item->kind == SPEC_INTEGER && is_in_range(parameter, item)) ||
           (types & TYPE_NUMBERS && is_number(parameter, item)) ||
           (types & (TYPE_TEXTS | TYPE_PATHS | TYPE_COLUMNS) && item->kind == SPEC_TEXT) ||
           (types & TYPE_SHAPE &&
            /* -1 is tf.TensorShape's unknown dimension, as null is. */
            (item->kind == SPEC_NULL || (item->kind == SPEC_INTEGER && item->integer >= -1)));
}

static bool
takes_lists(const struct parameter_info *parameter)
{
    return (parameter->types & (TYPE_LIST | TYPE_INTEGERS | TYPE_NUMBERS | TYPE_TEXTS | TYPE_PATHS |
                                TYPE_COLUMNS | TYPE_SHAPE)) != 0;
}

/* Names of files and columns, and expressions, end at a NUL; other texts go on. */
static void
refuse_nul(struct check *check, const struct stage_info *owner,
           const struct parameter_info *parameter, const struct spec_value *value)
{
    uint32_t names =
        TYPE_FILE_NAME | TYPE_PATHS | TYPE_COLUMNS | TYPE_EXPRESSION | TYPE_EXPRESSIONS;

    if (value->kind == SPEC_TEXT && parameter->types & names &&
        memchr(value->text, '\0', value->text_bytes) != NULL)
        spec_complain(check->errors, value->line, value->column, "%s of %s holds a NUL",
                      parameter->name, owner->name);
}

/* An expression is the text as written, whatever type YAML gave it. */
static struct spec_value
expression_text(struct check *check, const struct spec_value *value)
{
    struct spec_value text = *value;

    text.kind = SPEC_TEXT;
    if (value->kind == SPEC_VARIABLE)
        text.text = value->has_argument ? spec_memory_sprintf(check->memory, "$%s(%" PRId64 ")",
                                                              value->text, value->integer)
                                        : spec_memory_sprintf(check->memory, "$%s", value->text);
    text.text_bytes = strlen(text.text);
    return text;
}

/* YAML reads [1, 2] as a list and {a: b} as a mapping, and their text is lost. */
static bool
is_expression(const struct spec_value *value)
{
    return value->kind == SPEC_VARIABLE || is_scalar(value);
}

static const struct spec_value *
check_expression(struct check *check, const struct stage_info *owner,
                 const struct parameter_info *parameter, const struct spec_value *value)
{
    struct spec_value *text;

    if (!is_expression(value)) {
        if (value->kind != SPEC_BROKEN)
            spec_complain(check->errors, value->line, value->column,
                          "%s of %s must be an expression; a vector is quoted: \"[1, 2]\"",
                          parameter->name, owner->name);
        return value;
    }
    refuse_nul(check, owner, parameter, value);
    text = spec_memory_take(check->memory, 1, sizeof *text);
    *text = expression_text(check, value);
    return text;
}

static const struct spec_value *
check_expressions(struct check *check, const struct stage_info *owner,
                  const struct parameter_info *parameter, const struct spec_value *value)
{
    struct spec_value *map = spec_memory_take(check->memory, 1, sizeof *map);
    struct spec_value *items = spec_memory_take(check->memory, value->count, sizeof *items);

    for (uint32_t i = 0; i < value->count; i++)
        /* An entry with parameters of its own has been read as a mapping; `values` checks it. */
        items[i] = parameter->types & TYPE_ENTRIES && value->items[i].kind == SPEC_MAP
                       ? value->items[i]
                       : *check_expression(check, owner, parameter, &value->items[i]);
    *map = *value;
    map->items = items;
    return map;
}

static const struct spec_value *
check_text_map(struct check *check, const struct stage_info *owner,
               const struct parameter_info *parameter, const struct spec_value *value)
{
    for (uint32_t i = 0; i < value->count; i++)
        if (value->items[i].kind != SPEC_TEXT && value->items[i].kind != SPEC_VARIABLE &&
            value->items[i].kind != SPEC_BROKEN)
            refuse(check, owner, parameter, &value->items[i]);
    return value;
}

/* tf.data.AUTOTUNE is -1. */
static const struct spec_value *
autotune(struct check *check, const struct spec_value *word)
{
    struct spec_value *value = spec_memory_take(check->memory, 1, sizeof *value);

    *value = *word;
    value->kind = SPEC_INTEGER;
    value->integer = -1;
    value->natural = (uint64_t)value->integer;
    value->number = (double)value->integer;
    return value;
}

static const struct spec_value *
check_file_name(struct check *check, const struct stage_info *owner,
                const struct parameter_info *parameter, const struct spec_value *text)
{
    struct spec_value *value = spec_memory_take(check->memory, 1, sizeof *value);

    *value = *text;
    value->text = file_name_of(text->text, text->text_bytes, check->memory);
    value->text_bytes = strlen(value->text);
    if (value->text_bytes == 0 || value->text_bytes > FILE_NAME_BYTES_MAX)
        spec_complain(check->errors, text->line, text->column,
                      "%s of %s must have 1 to %d bytes without surrounding blanks",
                      parameter->name, owner->name, FILE_NAME_BYTES_MAX);
    return value;
}

static const struct spec_value *
check_one_dataset(struct check *check, const struct spec_value *value)
{
    struct spec_value *resolved = spec_memory_take(check->memory, 1, sizeof *resolved);

    *resolved = *value;
    resolved->dataset = check_dataset(check, value);
    resolved->kind = resolved->dataset != NULL ? SPEC_DATASET : SPEC_BROKEN;
    return resolved;
}

static const struct spec_value *
check_datasets(struct check *check, const struct spec_value *value)
{
    struct spec_value *list = spec_memory_take(check->memory, 1, sizeof *list);
    struct spec_value *items = spec_memory_take(check->memory, value->count, sizeof *items);

    for (uint32_t i = 0; i < value->count; i++)
        items[i] = *check_one_dataset(check, &value->items[i]);
    *list = *value;
    list->items = items;
    return list;
}

static const struct spec_value *
check_list(struct check *check, const struct stage_info *owner,
           const struct parameter_info *parameter, const struct spec_value *value)
{
    for (uint32_t i = 0; i < value->count; i++) {
        if (!fits_item(parameter, &value->items[i]))
            refuse(check, owner, parameter, &value->items[i]);
        refuse_nul(check, owner, parameter, &value->items[i]);
    }
    return value;
}

static void
refuse_variables(struct check *check, const struct stage_info *owner,
                 const struct parameter_info *parameter, const struct spec_value *value)
{
    /* A variable has a value only when rows are read. */
    if (value->kind == SPEC_VARIABLE)
        spec_complain(check->errors, value->line, value->column,
                      "%s of %s cannot be $%s: it must be known before the pipeline runs",
                      parameter->name, owner->name, value->text);
    else if (value->kind == SPEC_LIST || value->kind == SPEC_MAP)
        for (uint32_t i = 0; i < value->count; i++)
            refuse_variables(check, owner, parameter, &value->items[i]);
}

const struct spec_value *
check_value(struct check *check, const struct stage_info *owner,
            const struct parameter_info *parameter, const struct spec_value *value)
{
    uint32_t types = parameter->types;

    /* The order matters: the types that accept a list or mapping come before those that would
     * refuse it as a scalar. */
    if (types & TYPE_EXPRESSION)
        return check_expression(check, owner, parameter, value);
    if (types & TYPE_DATASET && (value->kind == SPEC_LIST || value->kind == SPEC_TEXT))
        return check_one_dataset(check, value);
    if (types & TYPE_DATASETS && value->kind == SPEC_LIST)
        return check_datasets(check, value);
    if (types & TYPE_EXPRESSIONS && value->kind == SPEC_MAP)
        return check_expressions(check, owner, parameter, value);
    if (types & TYPE_ENTRIES && value->kind == SPEC_MAP)
        return value;
    if ((types & TYPE_VARYING) == 0)
        refuse_variables(check, owner, parameter, value);
    if (types & TYPE_ANY || value->kind == SPEC_BROKEN)
        return value;
    if (types & TYPE_UNSET && value->kind == SPEC_NULL)
        return NULL;
    if (types & TYPE_TEXT_MAP && value->kind == SPEC_MAP)
        return check_text_map(check, owner, parameter, value);
    if (types & TYPE_MAP && value->kind == SPEC_MAP)
        return value;
    if (takes_lists(parameter) && value->kind == SPEC_LIST)
        return check_list(check, owner, parameter, value);
    if (types & TYPE_AUTOTUNE && value->kind == SPEC_TEXT && strcmp(value->text, "AUTOTUNE") == 0)
        return autotune(check, value);
    refuse_nul(check, owner, parameter, value);
    if (!fits_scalar(parameter, value))
        refuse(check, owner, parameter, value);
    else if (types & TYPE_FILE_NAME)
        return check_file_name(check, owner, parameter, value);
    return value;
}

const struct spec_value *
check_default(struct check *check, const struct parameter_info *parameter, uint32_t line,
              uint32_t column)
{
    struct spec_value *value;
    const char *text = parameter->default_value;

    if (text == NULL)
        return NULL;
    value = spec_memory_take(check->memory, 1, sizeof *value);
    value->text = text;
    value->text_bytes = strlen(text);
    if (*text == '[')
        /* Defaults are written in the table as in a pipeline file. They are the program's own, so
         * they must parse. */
        must(yaml_read(text, strlen(text), check->memory, check->errors, value) == TUNDISH_OK);
    else if (*text == '"') {
        value->kind = SPEC_TEXT;
        value->quoted = true;
        value->text_bytes = strlen(text) - 2;
        value->text = spec_memory_text(check->memory, text + 1, value->text_bytes);
    } else {
        must(scalar_type(value, check->memory));
    }
    value->line = line;
    value->column = column;
    return value;
}
