/* describe.c - values, and the kinds of value that a parameter takes, in words. */
#include "spec/describe.h"

#include <inttypes.h>
#include <string.h>

const char *
describe_value(const struct spec_value *value, char *text, size_t text_bytes)
{
    switch (value->kind) {
    case SPEC_NULL:
        snprintf(text, text_bytes, "null");
        break;
    case SPEC_LIST:
        snprintf(text, text_bytes, "a list");
        break;
    case SPEC_MAP:
        snprintf(text, text_bytes, "a mapping");
        break;
    case SPEC_DATASET:
        snprintf(text, text_bytes, "a dataset");
        break;
    case SPEC_VARIABLE:
        snprintf(text, text_bytes, "the variable $%.60s", value->text);
        break;
    case SPEC_TEXT:
        snprintf(text, text_bytes, strlen(value->text) > 60 ? "\"%.57s...\"" : "\"%s\"",
                 value->text);
        break;
    /* The text of a number or a boolean is kept as it was written. */
    default:
        snprintf(text, text_bytes, "%.60s", value->text);
    }
    return text;
}

/* The kinds of value a parameter takes, for messages. */
static const struct {
    uint32_t type;
    const char *words;
} type_words[] = {
    { TYPE_INTEGER, "an integer" },
    { TYPE_AUTOTUNE, "AUTOTUNE" },
    { TYPE_NUMBER, "a number" },
    { TYPE_BOOL, "true or false" },
    { TYPE_TEXT | TYPE_FILE_NAME, "a text" },
    { TYPE_DTYPE, "a dtype" },
    { TYPE_COLUMNS, "a column or a list of columns" },
    { TYPE_PATHS, "a path or a list of paths" },
    { TYPE_EXPRESSION, "an expression" },
    { TYPE_INTEGERS, "a list of integers" },
    { TYPE_NUMBERS, "a list of numbers" },
    { TYPE_TEXTS, "a list of texts" },
    { TYPE_SHAPE, "a shape (a list of integers and nulls)" },
    { TYPE_LIST, "a list" },
    { TYPE_MAP | TYPE_ENTRIES, "a mapping" },
    { TYPE_EXPRESSIONS, "a mapping from columns to expressions" },
    { TYPE_TEXT_MAP, "a mapping from texts to texts" },
    { TYPE_DATASET, "the name of a dataset or a list of stages" },
    { TYPE_DATASETS, "a list of datasets" },
    { TYPE_DURATION, "a duration (30s, 5m, 100ms)" },
    { TYPE_SIZE, "a number of bytes (65536, 64MiB)" },
    { TYPE_NULL | TYPE_UNSET, "null" },
};

static void
print_range(FILE *out, const struct parameter_info *parameter)
{
    if (parameter->minimum > parameter->maximum)
        return;
    if (parameter->maximum == INT64_MAX)
        fprintf(out, " of at least %" PRId64, parameter->minimum);
    else
        fprintf(out, " from %" PRId64 " to %" PRId64, parameter->minimum, parameter->maximum);
}

static void
print_choices(FILE *out, const char *choices)
{
    for (const char *at = choices;; at++) {
        size_t bytes = strcspn(at, "|");

        /* Commas, and "or" before the last choice. */
        if (at != choices)
            fputs(at[bytes] == '\0' ? " or " : ", ", out);
        fprintf(out, bytes > 0 ? "%.*s" : "\"\"%.*s", (int)bytes, at);
        at += bytes;
        if (*at == '\0')
            return;
    }
}

void
describe_parameter(const struct parameter_info *parameter, FILE *out)
{
    uint32_t types = parameter->types;
    bool is_first = true;

    if (parameter->choices != NULL) {
        print_choices(out, parameter->choices);
        /* The choices are the texts and integers that are allowed, so these kinds are not
         * repeated. */
        types &= ~(uint32_t)(TYPE_TEXT | TYPE_INTEGER);
        is_first = false;
    }
    for (size_t i = 0; i < sizeof type_words / sizeof type_words[0]; i++) {
        if ((types & type_words[i].type) == 0)
            continue;
        if (!is_first)
            fputs(" or ", out);
        is_first = false;
        fputs(type_words[i].words, out);
        if (type_words[i].type & (TYPE_INTEGER | TYPE_NUMBER | TYPE_INTEGERS | TYPE_NUMBERS))
            print_range(out, parameter);
    }
}
