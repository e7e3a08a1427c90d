/* json.h - JSON written as it comes, however deep: commas and quoting taken care of, nothing kept.
 */
#ifndef TND_CORE_JSON_H
#define TND_CORE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/bytes.h"

struct json {
    FILE *file;
    bool needs_comma; /* before the next value */
};

void json_start(struct json *json, FILE *file);

void json_object(struct json *json);
void json_object_end(struct json *json);
void json_array(struct json *json);
void json_array_end(struct json *json);
void json_key(struct json *json, const char *key);

void json_null(struct json *json);
void json_bool(struct json *json, bool value);
void json_int(struct json *json, int64_t value);
void json_uint(struct json *json, uint64_t value);
void json_text(struct json *json, const char *text);

/* The caller writes the next value into the file itself, as JSON. */
void json_raw(struct json *json);

/* The shortest decimal that gives the same value back in a float of that many mantissa digits
 * (9: float32, 17: float64, 5: float16, 4: bfloat16); "nan", "inf", "-inf" as text. */
void json_float(struct json *json, double value, int digits);

/* Text if it is UTF-8, else {"base64": "..."}. */
void json_bytes(struct json *json, struct byte_view bytes);

/* key and value in one. */
void json_key_text(struct json *json, const char *key, const char *text);
void json_key_int(struct json *json, const char *key, int64_t value);
void json_key_bool(struct json *json, const char *key, bool value);

#endif
