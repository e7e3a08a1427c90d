/* json_parse.c - parse each object in one pass, and store values as they come. */
#include "content/records/json_parse.h"

#include <stdio.h>
#include <string.h>

#include "column/literal.h"
#include "content/records/base64.h"
#include "content/records/json_string.h"
#include "content/records/number_store.h"

/* The parser recurses, so hostile nesting must be bounded. */
enum { DEPTH_MAX = 64, PATH_MAX_BYTES = 1024, NOBODY = -1 };

struct json {
    const struct example_parser *parser;
    const struct example_input *input;
    struct frame *frame;
    struct example_values *values;
    bool is_printed; /* json_parse_printed */
    bool is_exact;   /* json_parse_exactly */
    int64_t *counts; /* values of each feature in this record; -1: not met */
    int64_t row;
    const uint8_t *at, *begin, *end;
    uint8_t path[PATH_MAX_BYTES + 64];
    uint64_t path_bytes;
    char problem[256]; /* "": none */
};

static bool value(struct json *json, int32_t feature, unsigned depth);

/* Keep the first problem: later ones are its consequences. */
static bool
fail(struct json *json, const char *what)
{
    if (json->problem[0] == '\0')
        snprintf(json->problem, sizeof json->problem, "could not parse the JSON at byte %lld: %s",
                 (long long)(json->at - json->begin), what);
    return false;
}

static bool
fail_feature(struct json *json, int32_t feature, const char *what)
{
    if (json->problem[0] == '\0')
        snprintf(json->problem, sizeof json->problem, "%s '%.100s': %s",
                 json->is_printed ? "column" : "feature",
                 example_parser_feature(json->parser, (uint32_t)feature)->name, what);
    return false;
}

static bool
fail_number(struct json *json, int32_t feature, const uint8_t *text, uint64_t size)
{
    const struct example_feature *wanted = example_parser_feature(json->parser, (uint32_t)feature);
    char what[80];

    snprintf(what, sizeof what, "%.*s is not a valid %s", (int)(size < 40 ? size : 40),
             (const char *)text, tnd_dtype_name(wanted->dtype));
    return fail_feature(json, feature, what);
}

static void
skip_blanks(struct json *json)
{
    while (json->at < json->end &&
           (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r'))
        json->at++;
}

static bool
take(struct json *json, char byte)
{
    skip_blanks(json);
    if (json->at >= json->end || *json->at != (uint8_t)byte)
        return false;
    json->at++;
    return true;
}

/* Read a string after its opening quote. Without escapes it is a view of the record. Otherwise it
 * is decoded into scratch memory, where it is never longer than its JSON. */
static bool
string(struct json *json, struct byte_view *ret_string)
{
    const uint8_t *begin = json->at;
    struct byte_view text = { .data = begin };
    bool has_escapes;
    const char *problem = json_string_scan(&json->at, json->end, &has_escapes);

    text.size = (uint64_t)(json->at - begin);
    if (problem == NULL && has_escapes) {
        uint8_t *copy = scratch_alloc(json->frame->scratch, text.size);

        json->at = begin;
        problem = json_string_decode(&json->at, json->end, copy, &text.size);
        text.data = copy;
    }
    if (problem != NULL)
        return fail(json, problem);
    *ret_string = text;
    json->at++;
    return true;
}

/* Where a feature's next value goes in this record, or NULL: there are as many as its shape
 * holds, and one more only counts. */
static void *
next_target(struct json *json, int32_t f)
{
    const struct example_feature *feature = example_parser_feature(json->parser, (uint32_t)f);
    struct example_values *values = &json->values[f];
    size_t bytes = literal_bytes(feature->dtype);
    int64_t index = json->counts[f]++;

    if (!feature->is_list)
        return index >= feature->value_count
                   ? NULL
                   : (uint8_t *)values->values +
                         (size_t)(json->row * feature->value_count + index) * bytes;
    index += values->splits[json->row];
    if (index >= values->capacity) {
        void *old = values->values;

        values->capacity = 2 * index + 64;
        values->values = scratch_array(json->frame->scratch, (size_t)values->capacity, bytes);
        if (index > 0)
            memcpy(values->values, old, (size_t)index * bytes);
    }
    return (uint8_t *)values->values + (size_t)index * bytes;
}

/* Whether a text is a printed float: "nan", "inf" or "-inf". */
static bool
is_printed_float(const struct json *json, tundish_dtype dtype, struct byte_view text)
{
    return json->is_printed && dtype != TUNDISH_BOOL && !tnd_dtype_is_integer(dtype) &&
           (bytes_are_equal(text, bytes_of_text("nan")) ||
            bytes_are_equal(text, bytes_of_text("inf")) ||
            bytes_are_equal(text, bytes_of_text("-inf")));
}

static bool
store_string(struct json *json, int32_t feature, struct byte_view text)
{
    for (; feature != NOBODY; feature = example_parser_next(json->parser, feature)) {
        tundish_dtype dtype = example_parser_feature(json->parser, (uint32_t)feature)->dtype;
        void *to;

        if (dtype != TUNDISH_STRING && !is_printed_float(json, dtype, text))
            return fail_feature(json, feature, "expected a number, found a string");
        to = next_target(json, feature);
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
static bool
store_number(struct json *json, int32_t feature, const uint8_t *text, uint64_t size)
{
    for (; feature != NOBODY; feature = example_parser_next(json->parser, feature)) {
        tundish_dtype dtype = example_parser_feature(json->parser, (uint32_t)feature)->dtype;
        void *to;

        if (dtype == TUNDISH_STRING)
            return fail_feature(json, feature, "expected a string, found a number");
        to = next_target(json, feature);
        if (to == NULL)
            continue;
        if (!number_store(dtype, text, size, to))
            return fail_number(json, feature, text, size);
    }
    return true;
}

/* -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)? */
static bool
number(struct json *json, int32_t feature)
{
    const uint8_t *begin = json->at;
    const uint8_t *digits;

#define DIGITS()                                                                                   \
    for (digits = json->at; json->at < json->end && *json->at >= '0' && *json->at <= '9';)         \
    json->at++
    if (*json->at == '-')
        json->at++;
    DIGITS();
    if (json->at == digits || (*digits == '0' && json->at - digits > 1))
        return fail(json, "neither a value nor a number");
    if (json->at < json->end && *json->at == '.') {
        json->at++;
        DIGITS();
        if (json->at == digits)
            return fail(json, "a number without digits after its decimal point");
    }
    if (json->at < json->end && (*json->at | 0x20) == 'e') {
        json->at++;
        if (json->at < json->end && (*json->at == '-' || *json->at == '+'))
            json->at++;
        DIGITS();
        if (json->at == digits)
            return fail(json, "a number without digits in its exponent");
    }
#undef DIGITS
    return feature == NOBODY || store_number(json, feature, begin, (uint64_t)(json->at - begin));
}

static bool
word(struct json *json, const char *text)
{
    size_t bytes = strlen(text);

    if ((size_t)(json->end - json->at) < bytes || memcmp(json->at, text, bytes) != 0)
        return fail(json, "neither a value nor a number");
    json->at += bytes;
    return true;
}

static bool
list(struct json *json, int32_t feature, unsigned depth)
{
    if (take(json, ']'))
        return true;
    do {
        if (!value(json, feature, depth + 1))
            return false;
    } while (take(json, ','));
    return take(json, ']') || fail(json, "a list without a closing ]");
}

/* Reset the counts of all features with this path: the last of several members of one name
 * counts. */
static void
meet(struct json *json, int32_t feature)
{
    for (; feature != NOBODY; feature = example_parser_next(json->parser, feature))
        json->counts[feature] = 0;
}

static void
forget(struct json *json, int32_t feature)
{
    for (; feature != NOBODY; feature = example_parser_next(json->parser, feature))
        json->counts[feature] = -1;
}

/* Read one member. Its name extends the path while its value is read. */
static bool
member(struct json *json, unsigned depth)
{
    uint64_t before = json->path_bytes;
    struct byte_view name;
    int32_t feature = NOBODY;
    bool is_read;

    if (!take(json, '"'))
        return fail(json, "a member without a name");
    if (!string(json, &name))
        return false;
    if (!take(json, ':'))
        return fail(json, "a member without a value");
    if (before + name.size + 1 <= PATH_MAX_BYTES) {
        if (before > 0)
            json->path[json->path_bytes++] = '.';
        memcpy(json->path + json->path_bytes, name.data, name.size);
        json->path_bytes += name.size;
        feature =
            example_parser_find(json->parser, (struct byte_view){ json->path, json->path_bytes });
        if (json->is_exact && (feature == NOBODY || json->counts[feature] >= 0))
            return fail(json, feature == NOBODY ? "a member of another name" : "a member twice");
        meet(json, feature);
    } else {
        json->path_bytes = PATH_MAX_BYTES; /* no feature has a name this long */
    }
    skip_blanks(json);
    if (feature != NOBODY && json->at < json->end && *json->at == 'n')
        forget(json, feature);
    is_read = value(json, feature, depth + 1);
    json->path_bytes = before;
    return is_read;
}

static bool
object(struct json *json, unsigned depth)
{
    if (take(json, '}'))
        return true;
    do {
        if (!member(json, depth))
            return false;
    } while (take(json, ','));
    return take(json, '}') || fail(json, "an object without a closing }");
}

/* After the opening brace: "base64": "...", which is how bytes that are not UTF-8 are printed. */
static bool
printed_bytes(struct json *json, int32_t feature)
{
    struct byte_view name, text;
    uint8_t *bytes;

    if (!take(json, '"') || !string(json, &name) ||
        !bytes_are_equal(name, bytes_of_text("base64")) || !take(json, ':') || !take(json, '"'))
        return fail_feature(json, feature, "an object that is not {\"base64\": ...}");
    if (!string(json, &text))
        return false;
    bytes = scratch_alloc(json->frame->scratch, text.size + 1);
    if (!base64_decode(text, bytes, &text.size) || !take(json, '}'))
        return fail_feature(json, feature, "not base64");
    text.data = bytes;
    return store_string(json, feature, text);
}

static bool
value(struct json *json, int32_t feature, unsigned depth)
{
    struct byte_view text;

    skip_blanks(json);
    if (depth > DEPTH_MAX)
        return fail(json, "more than 64 levels");
    if (json->at >= json->end)
        return fail(json, "a value is missing");
    switch (*json->at) {
    case '{':
        json->at++;
        if (feature != NOBODY && json->is_printed)
            return printed_bytes(json, feature);
        if (feature != NOBODY)
            return fail_feature(json, feature, "expected a value, found an object");
        return object(json, depth);
    case '[':
        json->at++;
        return list(json, feature, depth);
    case '"':
        json->at++;
        return string(json, &text) && (feature == NOBODY || store_string(json, feature, text));
    case 't':
        return word(json, "true") &&
               (feature == NOBODY ||
                store_number(json, feature, (const uint8_t *)"1\0\0\0\0\0\0", 1));
    case 'f':
        return word(json, "false") &&
               (feature == NOBODY ||
                store_number(json, feature, (const uint8_t *)"0\0\0\0\0\0\0", 1));
    case 'n':
        if (feature != NOBODY && json->counts[feature] >= 0)
            return fail_feature(json, feature, "a list contains null");
        return word(json, "null");
    default:
        return number(json, feature);
    }
}

static bool
read_object(struct json *json, struct byte_view record)
{
    json->at = json->begin = record.data;
    json->end = record.data + record.size;
    json->path_bytes = 0;
    json->problem[0] = '\0';
    if (!take(json, '{'))
        return fail(json, "a record must be an object");
    if (!object(json, 0))
        return false;
    skip_blanks(json);
    return json->at == json->end || fail(json, "unexpected text after the object");
}

static void
fill_missing(struct json *json, const struct example_feature *feature, uint32_t f)
{
    size_t bytes = (size_t)feature->value_count * literal_bytes(feature->dtype);
    void *to = (uint8_t *)json->values[f].values + (size_t)json->row * bytes;

    if (feature->fallback != NULL)
        memcpy(to, feature->fallback, bytes);
    else
        memset(to, 0, bytes);
}

/* Check that the counts match the shapes; end lists and fill in defaults. */
static bool
finish(struct json *json)
{
    for (uint32_t f = 0; f < example_parser_count(json->parser); f++) {
        const struct example_feature *feature = example_parser_feature(json->parser, f);
        int64_t count = json->counts[f];

        json->values[f].is_met = count >= 0;
        if (feature->is_list) {
            json->values[f].splits[json->row + 1] =
                json->values[f].splits[json->row] + (count > 0 ? count : 0);
            if (count > 0 && count % feature->value_count != 0)
                return fail_feature(json, (int32_t)f, "not a multiple of the values of its shape");
            continue;
        }
        if (count < 0 && feature->fallback == NULL)
            return fail_feature(json, (int32_t)f, "it is required but could not be found");
        if (count < 0)
            fill_missing(json, feature, f);
        else if (count != feature->value_count)
            return fail_feature(json, (int32_t)f, "the number of values does not match its shape");
    }
    return true;
}

/* Zero a rejected record's values: it is never delivered, but later stages read it. */
static void
blank(struct json *json)
{
    for (uint32_t f = 0; f < example_parser_count(json->parser); f++) {
        const struct example_feature *feature = example_parser_feature(json->parser, f);
        size_t bytes = (size_t)feature->value_count * literal_bytes(feature->dtype);

        if (feature->is_list)
            json->values[f].splits[json->row + 1] = json->values[f].splits[json->row];
        else
            memset((uint8_t *)json->values[f].values + (size_t)json->row * bytes, 0, bytes);
    }
}

static void
parse_all(const struct example_parser *parser, const struct example_input *input,
          struct frame *frame, struct example_values *values, bool is_printed, bool is_exact)
{
    uint32_t count = example_parser_count(parser);
    struct json json = {
        .parser = parser,
        .input = input,
        .frame = frame,
        .values = values,
        .is_printed = is_printed,
        .is_exact = is_exact,
    };

    json.counts = scratch_array(frame->scratch, count, sizeof *json.counts);
    for (uint32_t f = 0; f < count; f++)
        if (example_parser_feature(parser, f)->is_list) {
            values[f].splits =
                scratch_array(frame->scratch, (size_t)input->count + 1, sizeof *values[f].splits);
            values[f].splits[0] = 0;
        }
    for (json.row = 0; json.row < input->count; json.row++) {
        for (uint32_t f = 0; f < count; f++)
            json.counts[f] = -1;
        if (read_object(&json, input->records[json.row]) && finish(&json))
            continue;
        frame_reject(frame,
                     input->column == NULL ? json.row : column_element_of(input->column, json.row),
                     "%s", json.problem);
        blank(&json);
    }
}

void
json_parse(const struct example_parser *parser, const struct example_input *input,
           struct frame *frame, struct example_values *values)
{
    parse_all(parser, input, frame, values, false, false);
}

void
json_parse_printed(const struct example_parser *parser, const struct example_input *input,
                   struct frame *frame, struct example_values *values)
{
    parse_all(parser, input, frame, values, true, false);
}

void
json_parse_exactly(const struct example_parser *parser, const struct example_input *input,
                   struct frame *frame, struct example_values *values)
{
    parse_all(parser, input, frame, values, true, true);
}
