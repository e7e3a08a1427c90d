/* json_parse.c - parse each object in one pass, and store values as they come. */
#include "content/records/json_parse.h"

#include <stdio.h>
#include <string.h>

#include "column/literal.h"
#include "content/records/json_reading.h"
#include "content/records/json_scan.h"
#include "spec/base64.h"

/* The parser recurses on the way to features, so hostile nesting must be bounded there. */
enum { DEPTH_MAX = JSON_LEVELS_MAX };

static bool value(struct json_parsing *json, int32_t feature, unsigned depth);

static bool
take(struct json_parsing *json, char byte)
{
    if (json->at >= json->end || *json->at != (uint8_t)byte) {
        json_scan_blanks(&json->at, json->end);
        if (json->at >= json->end || *json->at != (uint8_t)byte)
            return false;
    }
    json->at++;
    return true;
}

/* The answer of a scan of something that nobody wants, or of a word. */
static bool
passed(struct json_parsing *json, const char *problem)
{
    return problem == NULL || json_fail(json, problem);
}

static bool
number(struct json_parsing *json, int32_t feature)
{
    const uint8_t *begin = json->at;

    return passed(json, json_scan_number(&json->at, json->end)) &&
           json_store_number(json, feature, begin, (uint64_t)(json->at - begin));
}

static bool
check_end(struct json_parsing *json, int32_t f, int64_t length)
{
    const struct example_feature *feature = &json->parser->features[f];
    const char *problem = json_form_ends(feature, &json->met[f], &json->levels, length);

    return problem == NULL || json_fail_feature(json, f, problem);
}

static bool
is_below(const struct json_parsing *json, const struct example_feature *feature)
{
    return feature->name_bytes > json->path_bytes && feature->name[json->path_bytes] == '.' &&
           memcmp(feature->name, json->path, json->path_bytes) == 0;
}

/* At a list's end: check the form of what stands in it. That is a feature's values, or objects on
 * the way to features. */
static bool
list_ends(struct json_parsing *json, int32_t feature, int64_t length)
{
    uint32_t level = json->levels.count - 1;
    bool is_sound = true;

    for (; is_sound && feature != NOBODY; feature = json->parser->same[feature])
        is_sound = check_end(json, feature, length);
    if (json->levels.has_wanted[level]) {
        for (uint32_t f = 0; is_sound && f < json->parser->count; f++)
            if (json->met[f].count >= 0 && is_below(json, &json->parser->features[f]))
                is_sound = check_end(json, (int32_t)f, length);
        if (level > 0)
            json->levels.has_wanted[level - 1] = true;
    }
    json->levels.count--;
    return is_sound;
}

static bool
list(struct json_parsing *json, int32_t feature, unsigned depth)
{
    struct json_levels *levels = &json->levels;
    uint32_t level = levels->count;
    int64_t length = 0;

    if (level == JSON_LEVELS_MAX)
        return json_fail(json, "more than 64 levels");
    levels->count++;
    levels->has_objects[level] = levels->has_wanted[level] = false;
    if (take(json, ']'))
        return list_ends(json, feature, 0);
    do {
        levels->index[level] = length++;
        if (!value(json, feature, depth + 1))
            return false;
    } while (take(json, ','));
    return take(json, ']') ? list_ends(json, feature, length)
                           : json_fail(json, "a list without a closing ]");
}

/* Meet a member that is wanted. The last of several of one name in an object counts; in a list,
 * each object adds to the member's values; anywhere else two members of one path contradict each
 * other. */
static bool
meet(struct json_parsing *json, int32_t feature, uint64_t object)
{
    const struct json_levels *levels = &json->levels;

    if (levels->count > 0)
        json->levels.has_wanted[levels->count - 1] = true;
    for (; feature != NOBODY; feature = json->parser->same[feature]) {
        struct json_met *met = &json->met[feature];

        if (met->count < 0)
            *met = (struct json_met){ .object = object, .above = levels->count };
        else if (met->object == object)
            met->count = met->before;
        else if (levels->count == 0 || met->above != levels->count)
            return json_fail_feature(json, feature, "the record has it in two places");
        met->object = object;
        met->before = met->count;
    }
    return true;
}

/* null is a missing member; in a list of objects its place cannot stay empty. */
static bool
meet_null(struct json_parsing *json, int32_t feature)
{
    if (json->levels.count > 0)
        return json_fail_feature(json, feature, "a list contains null");
    for (; feature != NOBODY; feature = json->parser->same[feature])
        json->met[feature].count = -1;
    return true;
}

/* Meet a member below which features are. */
static bool
meet_path(struct json_parsing *json, uint32_t path, uint64_t object)
{
    uint64_t *last = &json->path_objects[path];

    if (*last == object)
        return json_fail_feature(json, json_paths_feature(json->paths, path),
                                 "an object on the way to it has a member twice");
    *last = object;
    return true;
}

/* The name of a member and the colon after it. */
static bool
member_name(struct json_parsing *json, struct byte_view *ret_name)
{
    if (!take(json, '"'))
        return json_fail(json, "a member without a name");
    return json_read_string(json, ret_name) &&
           (take(json, ':') || json_fail(json, "a member without a value"));
}

/* Append a member's name to the path. False: no feature has a path like this. */
static bool
extend_path(struct json_parsing *json, struct byte_view name)
{
    uint64_t before = json->path_bytes;

    if (name.data == NULL || before + name.size + 1 > JSON_PATH_BYTES)
        return false;
    if (before > 0)
        json->path[json->path_bytes++] = '.';
    memcpy(json->path + json->path_bytes, name.data, name.size);
    json->path_bytes += name.size;
    return true;
}

/* The first feature of a path, which has readable bytes after it. */
static int32_t
find_wanted(const struct json_parsing *json, struct byte_view path)
{
    const struct name_words words = name_words(path.data, path.size);

    return example_find_feature(json->parser, words, name_hash(words, path.data, path.size),
                                path.data, path.size);
}

static bool
member_value(struct json_parsing *json, int32_t feature, int32_t below, unsigned depth)
{
    json_scan_blanks(&json->at, json->end);
    if (feature != NOBODY && json->at < json->end && *json->at == 'n')
        return passed(json, json_scan_word(&json->at, json->end, "null")) &&
               meet_null(json, feature);
    if (feature == NOBODY && below == NOBODY)
        return passed(json, json_scan_value(&json->at, json->end));
    return value(json, feature, depth + 1);
}

/* Read one member. Its name extends the path while its value is read. */
static bool
member(struct json_parsing *json, uint64_t object, unsigned depth)
{
    uint64_t before = json->path_bytes;
    int32_t feature = NOBODY, below = NOBODY;
    struct byte_view name;
    bool is_read;

    if (!member_name(json, &name))
        return false;
    if (extend_path(json, name)) {
        const struct byte_view path = { json->path, json->path_bytes };

        feature = find_wanted(json, path);
        below = json_paths_find(json->paths, path);
        if (json->is_exact && (feature == NOBODY || json->met[feature].count >= 0))
            return json_fail(json,
                             feature == NOBODY ? "a member of another name" : "a member twice");
        if (!meet(json, feature, object) ||
            (below != NOBODY && !meet_path(json, (uint32_t)below, object)))
            return false;
    }
    is_read = member_value(json, feature, below, depth);
    json->path_bytes = before;
    return is_read;
}

static bool
object(struct json_parsing *json, unsigned depth)
{
    uint64_t number = ++json->objects;

    if (json->levels.count > 0)
        json->levels.has_objects[json->levels.count - 1] = true;
    if (take(json, '}'))
        return true;
    do {
        if (!member(json, number, depth))
            return false;
    } while (take(json, ','));
    return take(json, '}') || json_fail(json, "an object without a closing }");
}

/* After the opening brace: "base64": "...", which is how bytes that are not UTF-8 are printed. */
static bool
printed_bytes(struct json_parsing *json, int32_t feature)
{
    struct byte_view name, text;
    uint8_t *bytes;

    if (!take(json, '"') || !json_read_string(json, &name) || name.data == NULL ||
        !bytes_are_equal(name, bytes_of_text("base64")) || !take(json, ':') || !take(json, '"'))
        return json_fail_feature(json, feature, "an object that is not {\"base64\": ...}");
    if (!json_read_string(json, &text))
        return false;
    bytes = scratch_alloc(json->frame->scratch, text.size + 1);
    if (text.data == NULL || !base64_decode(text, bytes, &text.size) || !take(json, '}'))
        return json_fail_feature(json, feature, "not base64");
    text.data = bytes;
    return json_store_string(json, feature, text);
}

/* A value that is wanted, by itself or in a list. */
static bool
wanted(struct json_parsing *json, int32_t feature)
{
    const uint8_t *one = (const uint8_t *)"1\0\0\0\0\0\0", *zero = (const uint8_t *)"0\0\0\0\0\0\0";
    struct byte_view text;

    switch (*json->at) {
    case '{':
        json->at++;
        return json->is_printed
                   ? printed_bytes(json, feature)
                   : json_fail_feature(json, feature, "expected a value, found an object");
    case '"':
        json->at++;
        if (!json_read_string(json, &text))
            return false;
        return text.data == NULL ? json_fail_feature(json, feature, "half of a surrogate pair")
                                 : json_store_string(json, feature, text);
    case 't':
        return passed(json, json_scan_word(&json->at, json->end, "true")) &&
               json_store_number(json, feature, one, 1);
    case 'f':
        return passed(json, json_scan_word(&json->at, json->end, "false")) &&
               json_store_number(json, feature, zero, 1);
    case 'n':
        return passed(json, json_scan_word(&json->at, json->end, "null")) &&
               json_fail_feature(json, feature, "a list contains null");
    default:
        return number(json, feature);
    }
}

/* A value that is wanted, or below which others are (feature: NOBODY). */
static bool
value(struct json_parsing *json, int32_t feature, unsigned depth)
{
    json_scan_blanks(&json->at, json->end);
    if (depth > DEPTH_MAX)
        return json_fail(json, "more than 64 levels");
    if (json->at >= json->end)
        return json_fail(json, "a value is missing");
    if (*json->at == '[') {
        json->at++;
        return list(json, feature, depth);
    }
    if (feature != NOBODY)
        return wanted(json, feature);
    if (*json->at == '{') {
        json->at++;
        return object(json, depth);
    }
    return passed(json, json_scan_value(&json->at, json->end));
}

/* Why a record is not an object. */
static const char *
no_object(const struct json_parsing *json)
{
    if (json->at == json->end)
        return "a record must be an object, and this one is blank";
    if (json->end - json->at >= 3 && memcmp(json->at, "\xef\xbb\xbf", 3) == 0)
        return "it begins with a byte order mark (BOM), which JSON does not have: save the file "
               "as UTF-8 without a BOM";
    return "a record must be an object";
}

static bool
read_object(struct json_parsing *json, struct byte_view record)
{
    json->at = json->begin = record.data;
    json->end = record.data + record.size;
    json->path_bytes = 0;
    json->levels.count = 0;
    json->problem[0] = '\0';
    if (!take(json, '{'))
        return json_fail(json, no_object(json));
    if (!object(json, 0))
        return false;
    json_scan_blanks(&json->at, json->end);
    return json->at == json->end || json_fail(json, "unexpected text after the object");
}

static void
fill_missing(struct json_parsing *json, const struct example_feature *feature, uint32_t f)
{
    size_t bytes = (size_t)feature->value_count * literal_bytes(feature->dtype);
    void *to = (uint8_t *)json->values[f].values + (size_t)json->row * bytes;

    if (feature->fallback != NULL)
        memcpy(to, feature->fallback, bytes);
    else
        memset(to, 0, bytes);
}

static bool
fail_missing(struct json_parsing *json, int32_t f, const struct example_feature *feature)
{
    const struct byte_view record = { json->begin, (uint64_t)(json->end - json->begin) };
    char hint[128], what[192];

    json_hint(record, feature->name, hint, sizeof hint);
    snprintf(what, sizeof what, "it is required but could not be found%s", hint);
    return json_fail_feature(json, f, what);
}

/* Check that the counts match the shapes; end lists and fill in defaults. */
static bool
finish(struct json_parsing *json)
{
    for (uint32_t f = 0; f < json->parser->count; f++) {
        const struct example_feature *feature = &json->parser->features[f];
        int64_t count = json->met[f].count;

        json->values[f].is_met = count >= 0;
        if (feature->is_list) {
            json->values[f].splits[json->row + 1] =
                json->values[f].splits[json->row] + (count > 0 ? count : 0);
            if (count > 0 && count % feature->value_count != 0)
                return json_fail_feature(json, (int32_t)f,
                                         "not a multiple of the values of its shape");
            continue;
        }
        if (count < 0 && feature->fallback == NULL)
            return fail_missing(json, (int32_t)f, feature);
        if (count < 0)
            fill_missing(json, feature, f);
        else if (count != feature->value_count)
            return json_fail_feature(json, (int32_t)f,
                                     "the number of values does not match its shape");
    }
    return true;
}

/* Zero a rejected record's values: it is never delivered, but later stages read it. */
static void
blank(struct json_parsing *json)
{
    for (uint32_t f = 0; f < json->parser->count; f++) {
        const struct example_feature *feature = &json->parser->features[f];
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
    struct json_parsing json = {
        .parser = parser,
        .input = input,
        .frame = frame,
        .values = values,
        .is_printed = is_printed,
        .is_exact = is_exact,
    };

    json.paths = example_parser_paths(parser);
    json.path_objects =
        scratch_array(frame->scratch, json_paths_count(json.paths), sizeof *json.path_objects);
    memset(json.path_objects, 0, json_paths_count(json.paths) * sizeof *json.path_objects);
    json.met = scratch_array(frame->scratch, count, sizeof *json.met);
    for (uint32_t f = 0; f < count; f++)
        if (example_parser_feature(parser, f)->is_list) {
            values[f].splits =
                scratch_array(frame->scratch, (size_t)input->count + 1, sizeof *values[f].splits);
            values[f].splits[0] = 0;
        }
    for (json.row = 0; json.row < input->count; json.row++) {
        for (uint32_t f = 0; f < count; f++)
            json.met[f].count = -1;
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
