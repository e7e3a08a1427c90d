/* json_values.c - texts and numbers of a record, and where they go. */
#include <stdio.h>
#include <string.h>

#include "column/literal.h"
#include "content/records/json_reading.h"
#include "content/records/json_string.h"
#include "core/printable.h"

enum { EXTRACT_BYTES = 24 };

/* The text at a fault: ", at 'tru}'", or ", at its end". */
static void
extract(const struct json_parsing *json, char *ret_text, size_t room)
{
    size_t left = (size_t)(json->end - json->at);
    char raw[EXTRACT_BYTES + 1], shown[4 * EXTRACT_BYTES + 1];

    left = left < EXTRACT_BYTES ? left : EXTRACT_BYTES;
    for (size_t i = 0; i < left; i++)
        raw[i] = json->at[i] == '\0' ? ' ' : (char)json->at[i];
    raw[left] = '\0';
    (void)tnd_printable(raw, shown, sizeof shown);
    if (left > 0)
        snprintf(ret_text, room, ", at '%s'", shown);
    else
        snprintf(ret_text, room, ", at its end");
}

bool
json_fail(struct json_parsing *json, const char *what)
{
    char at[4 * EXTRACT_BYTES + 16];

    if (json->problem[0] != '\0')
        return false;
    extract(json, at, sizeof at);
    snprintf(json->problem, sizeof json->problem, "could not parse the JSON at byte %lld: %s%s",
             (long long)(json->at - json->begin), what, at);
    return false;
}

bool
json_fail_feature(struct json_parsing *json, int32_t feature, const char *what)
{
    if (json->problem[0] == '\0')
        snprintf(json->problem, sizeof json->problem, "%s '%.100s': %s",
                 json->is_printed ? "column" : "feature", json->parser->features[feature].name,
                 what);
    return false;
}

static bool
fail_number(struct json_parsing *json, int32_t feature, const uint8_t *text, uint64_t size)
{
    const struct example_feature *wanted = &json->parser->features[feature];
    char what[80];

    snprintf(what, sizeof what, "%.*s is not a valid %s", (int)(size < 40 ? size : 40),
             (const char *)text, tnd_dtype_name(wanted->dtype));
    return json_fail_feature(json, feature, what);
}

bool
json_read_string(struct json_parsing *json, struct byte_view *ret_string)
{
    const uint8_t *begin = json->at;
    struct byte_view text = { .data = begin };
    bool has_escapes;
    const char *problem = json_string_scan(&json->at, json->end, &has_escapes);

    if (problem != NULL)
        return json_fail(json, problem);
    text.size = (uint64_t)(json->at - begin);
    if (has_escapes) {
        uint8_t *copy = scratch_alloc(json->frame->scratch, text.size);

        problem = json_string_decode(&begin, json->end, copy, &text.size);
        text.data = problem == NULL ? copy : NULL;
    }
    *ret_string = text;
    json->at++;
    return true;
}

/* Where a feature's next value goes in this record, or NULL: there are as many as its shape
 * holds, and one more only counts. False: it stands in lists of another form. */
static bool
next_target(struct json_parsing *json, int32_t f, void **ret_target)
{
    const struct example_feature *feature = &json->parser->features[f];
    struct example_values *values = &json->values[f];
    size_t bytes = literal_bytes(feature->dtype);
    const char *problem = json_form_takes(feature, &json->met[f], &json->levels);
    int64_t index = json->met[f].count++;

    if (problem != NULL)
        return json_fail_feature(json, f, problem);
    *ret_target = NULL;
    if (!feature->is_list) {
        if (index < feature->value_count)
            *ret_target = (uint8_t *)values->values +
                          (size_t)(json->row * feature->value_count + index) * bytes;
        return true;
    }
    index += values->splits[json->row];
    if (index >= values->capacity) {
        void *old = values->values;

        values->capacity = 2 * index + 64;
        values->values = scratch_array(json->frame->scratch, (size_t)values->capacity, bytes);
        if (index > 0)
            memcpy(values->values, old, (size_t)index * bytes);
    }
    *ret_target = (uint8_t *)values->values + (size_t)index * bytes;
    return true;
}

/* Whether a text is a printed float: "nan", "inf" or "-inf". */
static bool
is_printed_float(const struct json_parsing *json, tundish_dtype dtype, struct byte_view text)
{
    return json->is_printed && dtype != TUNDISH_BOOL && !tnd_dtype_is_integer(dtype) &&
           (bytes_are_equal(text, bytes_of_text("nan")) ||
            bytes_are_equal(text, bytes_of_text("inf")) ||
            bytes_are_equal(text, bytes_of_text("-inf")));
}

bool
json_store_string(struct json_parsing *json, int32_t feature, struct byte_view text)
{
    for (; feature != NOBODY; feature = json->parser->same[feature]) {
        tundish_dtype dtype = json->parser->features[feature].dtype;
        void *to;

        if (dtype != TUNDISH_STRING && !is_printed_float(json, dtype, text))
            return json_fail_feature(json, feature, "expected a number, found a string");
        if (!next_target(json, feature, &to))
            return false;
        if (to == NULL)
            continue;
        if (dtype == TUNDISH_STRING)
            *(struct byte_view *)to = text;
        else
            number_store(dtype, text.data, text.size, to);
    }
    return true;
}

/* Store a number. true and false are 1 and 0. */
bool
json_store_number(struct json_parsing *json, int32_t feature, const uint8_t *text, uint64_t size)
{
    for (; feature != NOBODY; feature = json->parser->same[feature]) {
        tundish_dtype dtype = json->parser->features[feature].dtype;
        void *to;

        if (dtype == TUNDISH_STRING)
            return json_fail_feature(json, feature, "expected a string, found a number");
        if (!next_target(json, feature, &to))
            return false;
        if (to == NULL)
            continue;
        if (!number_store(dtype, text, size, to))
            return fail_number(json, feature, text, size);
    }
    return true;
}
