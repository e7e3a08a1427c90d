/* json_reading.h - a JSON record being read: where, and what has been met (json_parse.c); storing
 * its values (json_values.c). */
#ifndef CONTENT_RECORDS_JSON_READING_H
#define CONTENT_RECORDS_JSON_READING_H

#include <stddef.h>

#include "column/schema.h"
#include "content/records/example_parsing.h"
#include "content/records/json_form.h"
#include "content/records/json_paths.h"
#include "core/bytes.h"

enum { JSON_PATH_BYTES = 1024 };

struct json_parsing {
    const struct example_parser *parser;
    const struct example_input *input;
    struct frame *frame;
    struct example_values *values;
    bool is_printed; /* json_parse_printed */
    bool is_exact;   /* json_parse_exactly */
    const struct json_paths *paths;
    uint64_t *path_objects; /* of each path, the last object that has the member */
    struct json_met *met;   /* of each feature, in this record */
    struct json_levels levels;
    uint64_t objects; /* that were begun: the last one's number */
    int64_t row;
    const uint8_t *at, *begin, *end;
    uint8_t path[JSON_PATH_BYTES + 64];
    uint64_t path_bytes;
    char problem[384]; /* "": none */
};

/* Both return false and keep the first problem: later ones are its consequences. */
bool json_fail(struct json_parsing *json, const char *what);
bool json_fail_feature(struct json_parsing *json, int32_t feature, const char *what);

/* Read a string after its opening quote. Without escapes it is a view of the record. Otherwise it
 * is decoded into scratch memory, where it is never longer than its JSON; its data are NULL if it
 * cannot be, because it has half of a surrogate pair. */
bool json_read_string(struct json_parsing *json, struct byte_view *ret_string);

/* Give a value to all features of a name. */
bool json_store_string(struct json_parsing *json, int32_t feature, struct byte_view text);
bool json_store_number(struct json_parsing *json, int32_t feature, const uint8_t *text,
                       uint64_t size);

/* json_hint.c: the member that a record has instead of one that is missing. "; the record has
 * 'label'", the nearest name among the object's members, or "". */
void json_hint(struct byte_view record, const char *name, char *ret_text, size_t room);

/* number_store.c: A number as it is written, as a value of a dtype. Store it at `to`: integers (and
 * bool, 0 or 1) are digits that fit, floats as number.h has them. Strings are not numbers. 64 bytes
 * after the text can be read. */
bool number_store(tundish_dtype dtype, const uint8_t *text, uint64_t size, void *to);

#endif
