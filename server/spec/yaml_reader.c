/* yaml_reader.c - libyaml's events to a tree. Anchors, aliases, merges and tags but !!binary are
 * refused: with aliases a small file could expand to an enormous tree. */
#include "spec/yaml_reader.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "core/memory.h"
#include "spec/base64.h"
#include "spec/scalar.h"
#include "spec/yaml_breaks.h"
#include "spec/yaml_sentence.h"

/* Values stay on one stack until the list or mapping around them ends. They are then copied into
 * the tree as one array. In a mapping keys and values alternate. */
/* Memory grows with the size of the file, never with numbers in it. */
struct reader {
    yaml_parser_t parser;
    struct yaml_source source;
    struct yaml_breaks breaks;
    struct spec_memory *memory;
    struct spec_errors *errors;
    struct spec_value *stack;
    size_t stack_count;
    uint32_t values_read;
};

static tundish_status
next_event(struct reader *reader, yaml_event_t *event)
{
    if (yaml_parser_parse(&reader->parser, event))
        return TUNDISH_OK;
    return yaml_complain(&reader->parser, &reader->source, reader->errors);
}

/* libyaml counts from 0, and editors count from 1. */
static struct spec_value
value_at(yaml_mark_t mark, enum spec_kind kind)
{
    return (struct spec_value){ .kind = kind,
                                .line = (uint32_t)mark.line + 1,
                                .column = (uint32_t)mark.column + 1 };
}

static void
push(struct reader *reader, struct spec_value value)
{
    reader->stack = tnd_grow(reader->stack, reader->stack_count, sizeof *reader->stack);
    reader->stack[reader->stack_count++] = value;
}

static bool
refuses_extras(struct reader *reader, const struct spec_value *value, const yaml_char_t *anchor,
               const yaml_char_t *tag)
{
    if (anchor != NULL)
        spec_complain(reader->errors, value->line, value->column,
                      "anchors (&%s) are not supported; a text that starts with & must be quoted",
                      (const char *)anchor);
    if (tag != NULL)
        spec_complain(reader->errors, value->line, value->column,
                      "of tags only !!binary is supported, not %s; a text that starts with ! must "
                      "be quoted",
                      (const char *)tag);
    return anchor != NULL || tag != NULL;
}

static struct spec_value
take_alias(struct reader *reader, const yaml_event_t *event)
{
    struct spec_value value = value_at(event->start_mark, SPEC_BROKEN);

    spec_complain(
        reader->errors, value.line, value.column,
        "aliases (*%s) are not supported; a text that starts with * must be quoted: \"*%s\"",
        (const char *)event->data.alias.anchor, (const char *)event->data.alias.anchor);
    return value;
}

/* !!binary: bytes that need not be UTF-8, as base64. They are taken as they are: no ${NAME} is in
 * them. Blanks are not counted, so that a long one may be a block. */
static struct spec_value
take_binary(struct reader *reader, const yaml_event_t *event, bool is_key)
{
    struct spec_value value = value_at(event->start_mark, SPEC_TEXT);
    const char *scalar = (const char *)event->data.scalar.value;
    char *bytes = spec_memory_take(reader->memory, event->data.scalar.length + 1, 1);
    size_t count = 0;
    uint64_t size;

    for (size_t i = 0; i < event->data.scalar.length; i++)
        if (scalar[i] == '\0' || strchr(" \t\r\n", scalar[i]) == NULL)
            bytes[count++] = scalar[i];
    value.quoted = true;
    value.text = bytes;
    if (is_key ||
        !base64_decode((struct byte_view){ (uint8_t *)bytes, count }, (uint8_t *)bytes, &size)) {
        spec_complain(reader->errors, value.line, value.column,
                      is_key ? "a name must be text, not !!binary"
                             : "expected base64 after !!binary: letters, digits, + / and =");
        value.kind = SPEC_BROKEN;
        return value;
    }
    bytes[size] = '\0';
    value.text_bytes = size;
    return value;
}

static bool
is_binary(const yaml_event_t *event)
{
    const char *tag = (const char *)event->data.scalar.tag;

    return tag != NULL && strcmp(tag, "tag:yaml.org,2002:binary") == 0 &&
           event->data.scalar.anchor == NULL;
}

static struct spec_value
take_scalar(struct reader *reader, const yaml_event_t *event, bool is_key)
{
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    struct spec_value value = value_at(event->start_mark, SPEC_TEXT);
    char *text;

    if (is_binary(event))
        return take_binary(reader, event, is_key);
    text = spec_memory_text(reader->memory, (const char *)event->data.scalar.value,
                            event->data.scalar.length);
    value.quoted = !plain;
    value.text_bytes = yaml_breaks_restore(&reader->breaks, text, event->data.scalar.length);
    value.text = text;
    if (refuses_extras(reader, &value, event->data.scalar.anchor, event->data.scalar.tag) ||
        scalar_expand(&value, reader->memory, reader->errors) != TUNDISH_OK) {
        value.kind = SPEC_BROKEN;
    } else if (is_key && memchr(value.text, '\0', value.text_bytes) != NULL) {
        spec_complain(reader->errors, value.line, value.column, "a name holds a NUL");
        value.kind = SPEC_BROKEN;
    } else if (is_key && plain && strcmp(value.text, "<<") == 0) {
        spec_complain(reader->errors, value.line, value.column,
                      "merges (<<) are not supported; name the shared part under `datasets:`");
        value.kind = SPEC_BROKEN;
    } else if (!is_key && plain && !scalar_type(&value, reader->memory)) {
        spec_complain(reader->errors, value.line, value.column,
                      "%.60s does not fit 64 bits; quote it if it is a text, or write it with a "
                      "point or exponent if it is a float",
                      value.text);
        value.kind = SPEC_BROKEN;
    }
    return value;
}

static tundish_status read_value(struct reader *reader, const yaml_event_t *event, unsigned depth);

/* Copy every step-th value from `first` to the top of the stack into the tree. */
static const struct spec_value *
copy_from(struct reader *reader, size_t first, size_t step)
{
    size_t count = (reader->stack_count - first + step - 1) / step;
    struct spec_value *values = spec_memory_take(reader->memory, count, sizeof *values);

    for (size_t i = 0; i < count; i++)
        values[i] = reader->stack[first + i * step];
    return values;
}

static tundish_status
read_list(struct reader *reader, const yaml_event_t *start, unsigned depth)
{
    struct spec_value list = value_at(start->start_mark, SPEC_LIST);
    /* The items come to lie above this, whatever lists they contain. */
    size_t first = reader->stack_count;
    tundish_status status = TUNDISH_OK;
    bool ended = false;

    if (refuses_extras(reader, &list, start->data.sequence_start.anchor,
                       start->data.sequence_start.tag))
        list.kind = SPEC_BROKEN;
    while (status == TUNDISH_OK && !ended) {
        yaml_event_t event;

        status = next_event(reader, &event);
        if (status != TUNDISH_OK)
            return status;
        ended = event.type == YAML_SEQUENCE_END_EVENT;
        if (!ended)
            status = read_value(reader, &event, depth + 1);
        yaml_event_delete(&event);
    }
    if (status != TUNDISH_OK)
        return status;
    list.count = (uint32_t)(reader->stack_count - first);
    list.items = copy_from(reader, first, 1);
    reader->stack_count = first;
    push(reader, list);
    return TUNDISH_OK;
}

/* `{column}` without quotes is read as a mapping whose key has no value. */
static bool
lacks_value(struct reader *reader, const struct spec_value *key, yaml_mark_t key_end,
            const yaml_event_t *value)
{
    if (value->type != YAML_SCALAR_EVENT || value->data.scalar.length > 0 ||
        value->data.scalar.style != YAML_PLAIN_SCALAR_STYLE || key->kind == SPEC_BROKEN ||
        yaml_source_has(&reader->source, key_end, value->start_mark, ':'))
        return false;
    spec_complain(reader->errors, key->line, key->column,
                  "expected `: VALUE` after \"%s\"; a text with { } [ ] or a comma in it, as "
                  "{column} or max(a, b), must be quoted",
                  key->text);
    return true;
}

static int
by_text(const void *left_, const void *right_)
{
    const struct spec_value *left = *(const struct spec_value *const *)left_;
    const struct spec_value *right = *(const struct spec_value *const *)right_;
    bool are_texts = left->kind == SPEC_TEXT && right->kind == SPEC_TEXT;
    int order = are_texts ? strcmp(left->text, right->text)
                          : (left->kind != SPEC_TEXT) - (right->kind != SPEC_TEXT);

    if (order != 0)
        return order;
    /* Equal names stay in the file's order, so that the later one is reported. */
    return left < right ? -1 : left > right;
}

/* Sort the names, and report those that occur twice. */
static void
sort_keys(struct reader *reader, struct spec_value *map)
{
    map->sorted = spec_memory_take(reader->memory, map->count, sizeof(struct spec_value *));
    for (uint32_t i = 0; i < map->count; i++)
        map->sorted[i] = &map->keys[i];
    qsort(map->sorted, map->count, sizeof *map->sorted, by_text);
    for (uint32_t i = 1; i < map->count && map->sorted[i]->kind == SPEC_TEXT; i++) {
        const struct spec_value *first = map->sorted[i - 1], *second = map->sorted[i];

        if (strcmp(first->text, second->text) == 0)
            spec_complain(reader->errors, second->line, second->column,
                          "\"%s\" occurs twice, first on line %u", second->text, first->line);
    }
}

static tundish_status
read_pair(struct reader *reader, const yaml_event_t *key_event, unsigned depth)
{
    yaml_event_t event;
    struct spec_value key;
    tundish_status status;
    bool is_broken;

    if (key_event->type == YAML_SCALAR_EVENT) {
        key = take_scalar(reader, key_event, true);
    } else if (key_event->type == YAML_ALIAS_EVENT) {
        key = take_alias(reader, key_event);
    } else {
        /* A list as a key: it has to be read, so that the events after it are understood. */
        status = read_value(reader, key_event, depth + 1);
        if (status != TUNDISH_OK)
            return status;
        reader->stack_count--;
        key = value_at(key_event->start_mark, SPEC_BROKEN);
        spec_complain(reader->errors, key.line, key.column,
                      "expected a name before the colon, not a list or mapping; a text that starts "
                      "with { or [ must be quoted");
    }
    push(reader, key);
    status = next_event(reader, &event);
    if (status != TUNDISH_OK)
        return status;
    is_broken = lacks_value(reader, &key, key_event->end_mark, &event);
    status = read_value(reader, &event, depth + 1);
    yaml_event_delete(&event);
    if (status == TUNDISH_OK && is_broken)
        reader->stack[reader->stack_count - 1].kind = SPEC_BROKEN;
    return status;
}

static tundish_status
read_map(struct reader *reader, const yaml_event_t *start, unsigned depth)
{
    struct spec_value map = value_at(start->start_mark, SPEC_MAP);
    size_t first = reader->stack_count;
    tundish_status status = TUNDISH_OK;
    bool ended = false;

    if (refuses_extras(reader, &map, start->data.mapping_start.anchor,
                       start->data.mapping_start.tag))
        map.kind = SPEC_BROKEN;
    while (status == TUNDISH_OK && !ended) {
        yaml_event_t event;

        status = next_event(reader, &event);
        if (status != TUNDISH_OK)
            return status;
        ended = event.type == YAML_MAPPING_END_EVENT;
        if (!ended)
            status = read_pair(reader, &event, depth);
        yaml_event_delete(&event);
    }
    if (status != TUNDISH_OK)
        return status;
    map.count = (uint32_t)((reader->stack_count - first) / 2);
    map.keys = copy_from(reader, first, 2);
    map.items = copy_from(reader, first + 1, 2);
    reader->stack_count = first;
    sort_keys(reader, &map);
    push(reader, map);
    return TUNDISH_OK;
}

/* Push the value that begins with `event`. */
static tundish_status
read_value(struct reader *reader, const yaml_event_t *event, unsigned depth)
{
    struct spec_value where = value_at(event->start_mark, SPEC_BROKEN);

    /* Bounds the recursion, and with it the C stack. */
    if (depth > YAML_DEPTH_MAX)
        return spec_complain(reader->errors, where.line, where.column,
                             "lists and mappings are nested more than %d deep", YAML_DEPTH_MAX);
    if (++reader->values_read > YAML_VALUES_MAX)
        return spec_complain(reader->errors, where.line, where.column,
                             "more than %d values; keep data in files, as {npy: file}",
                             YAML_VALUES_MAX);
    switch (event->type) {
    case YAML_SEQUENCE_START_EVENT:
        return read_list(reader, event, depth);
    case YAML_MAPPING_START_EVENT:
        return read_map(reader, event, depth);
    case YAML_ALIAS_EVENT:
        push(reader, take_alias(reader, event));
        return TUNDISH_OK;
    default:
        push(reader, take_scalar(reader, event, false));
        return TUNDISH_OK;
    }
}

/* Everything between the start and the end of the only document. */
static tundish_status
read_document(struct reader *reader, const yaml_event_t *start, struct spec_value *ret_root)
{
    yaml_event_t event;
    tundish_status status;

    if (start->data.document_start.version_directive != NULL ||
        start->data.document_start.tag_directives.start !=
            start->data.document_start.tag_directives.end)
        spec_complain(reader->errors, 1, 1, "directives (%%YAML, %%TAG) are not supported");
    status = next_event(reader, &event);
    if (status != TUNDISH_OK)
        return status;
    status = read_value(reader, &event, 1);
    yaml_event_delete(&event);
    if (status != TUNDISH_OK)
        return status;
    *ret_root = reader->stack[--reader->stack_count];
    status = next_event(reader, &event);
    if (status == TUNDISH_OK)
        yaml_event_delete(&event);
    return status;
}

static tundish_status
read_stream(struct reader *reader, struct spec_value *ret_root)
{
    bool found = false;

    for (;;) {
        yaml_event_t event;
        tundish_status status = next_event(reader, &event);
        yaml_event_type_t type;

        if (status != TUNDISH_OK)
            return status;
        type = event.type;
        if (type == YAML_DOCUMENT_START_EVENT && found) {
            spec_complain(reader->errors, (uint32_t)event.start_mark.line + 1,
                          (uint32_t)event.start_mark.column + 1,
                          "a second document (---) begins here; a pipeline file is one document");
            /* The rest is not read: it may be of any size. */
            type = YAML_STREAM_END_EVENT;
        } else if (type == YAML_DOCUMENT_START_EVENT)
            status = read_document(reader, &event, ret_root);
        found = found || type == YAML_DOCUMENT_START_EVENT;
        yaml_event_delete(&event);
        if (status != TUNDISH_OK)
            return status;
        if (type == YAML_STREAM_END_EVENT)
            break;
    }
    if (!found)
        return spec_complain(reader->errors, 1, 1, "the file is empty; expected `streams:`");
    return TUNDISH_OK;
}

/* Editors of Windows begin a text in UTF-8 with one. libyaml would count it as a column, and so
 * take the first key to be indented. */
static size_t
byte_order_mark(const char *text, size_t text_bytes)
{
    static const char mark[] = { '\xef', '\xbb', '\xbf' };

    return text_bytes >= sizeof mark && memcmp(text, mark, sizeof mark) == 0 ? sizeof mark : 0;
}

tundish_status
yaml_read(const char *text, size_t text_bytes, struct spec_memory *memory,
          struct spec_errors *errors, struct spec_value *ret_root)
{
    const size_t mark_bytes = byte_order_mark(text, text_bytes);
    struct reader reader = { .source = { .text = text + mark_bytes,
                                         .text_bytes = text_bytes - mark_bytes },
                             .memory = memory,
                             .errors = errors };
    tundish_status status;

    if (text_bytes > YAML_BYTES_MAX)
        return spec_complain(errors, 0, 0,
                             "%zu bytes are too many for a pipeline file (at most %d)", text_bytes,
                             YAML_BYTES_MAX);
    if (!yaml_breaks_hide(reader.source.text, reader.source.text_bytes, &reader.breaks))
        return spec_complain(errors, 0, 0,
                             "the file has U+0085, U+2028 or U+2029, and all letters of private "
                             "use: write the former as \\u0085, \\u2028 and \\u2029 in double "
                             "quotes");
    if (reader.breaks.text != NULL) {
        reader.source.text = reader.breaks.text;
        reader.source.text_bytes = reader.breaks.text_bytes;
    }
    if (!yaml_parser_initialize(&reader.parser)) {
        yaml_breaks_close(&reader.breaks);
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for the YAML parser");
    }
    /* Otherwise a byte order mark could make it UTF-16, and positions would not be those of the
     * text. */
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)reader.source.text,
                                 reader.source.text_bytes);
    status = read_stream(&reader, ret_root);
    yaml_parser_delete(&reader.parser);
    yaml_breaks_close(&reader.breaks);
    free(reader.stack);
    return status;
}
