/* json.c - JSON written as it comes. */
#include "core/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"
#include "core/printable.h"

void
json_start(struct json *json, FILE *file)
{
    *json = (struct json){ .file = file };
}

/* Before every value: the comma, unless a bracket or a key goes before. */
static void
before(struct json *json)
{
    if (json->needs_comma)
        fputs(", ", json->file);
    json->needs_comma = true;
}

static void
enter(struct json *json, char bracket)
{
    before(json);
    fputc(bracket, json->file);
    json->needs_comma = false;
}

static void
leave(struct json *json, char bracket)
{
    fputc(bracket, json->file);
    json->needs_comma = true;
}

void
json_object(struct json *json)
{
    enter(json, '{');
}

void
json_object_end(struct json *json)
{
    leave(json, '}');
}

void
json_array(struct json *json)
{
    enter(json, '[');
}

void
json_array_end(struct json *json)
{
    leave(json, ']');
}

/* Names of columns and stages come from users, and the text may end in a log or a terminal: control
 * characters and everything that ends a line for some reader are escaped. */
static void
quoted(struct json *json, const uint8_t *text, uint64_t size)
{
    fputc('"', json->file);
    for (uint64_t i = 0; i < size; i++) {
        uint8_t byte = text[i];

        if (byte == '"' || byte == '\\')
            fprintf(json->file, "\\%c", byte);
        else if (byte == '\n')
            fputs("\\n", json->file);
        else if (byte < 0x20 || byte == 0x7f)
            fprintf(json->file, "\\u%04x", byte);
        else if (size - i >= 2 && memcmp(&text[i], "\xc2\x85", 2) == 0) {
            fputs("\\u0085", json->file); /* it and the next end a line for some readers */
            i += 1;
        } else if (size - i >= 3 && memcmp(&text[i], "\xe2\x80\xa8", 3) == 0) {
            fputs("\\u2028", json->file);
            i += 2;
        } else if (size - i >= 3 && memcmp(&text[i], "\xe2\x80\xa9", 3) == 0) {
            fputs("\\u2029", json->file);
            i += 2;
        } else
            fputc(byte, json->file);
    }
    fputc('"', json->file);
}

static bool
is_utf8(struct byte_view bytes)
{
    for (uint64_t i = 0; i < bytes.size;) {
        unsigned length = tnd_printable_utf8_length(bytes.data + i, bytes.size - i);

        if (length == 0)
            return false;
        i += length;
    }
    return true;
}

/* RFC 4648 with padding. JSON has no other way to carry bytes that are not UTF-8. */
static void
base64(struct json *json, struct byte_view bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    fputc('"', json->file);
    for (uint64_t i = 0; i < bytes.size; i += 3) {
        uint64_t left = bytes.size - i;
        uint32_t group = (uint32_t)bytes.data[i] << 16;

        if (left > 1)
            group |= (uint32_t)bytes.data[i + 1] << 8;
        if (left > 2)
            group |= bytes.data[i + 2];
        fputc(digits[group >> 18], json->file);
        fputc(digits[group >> 12 & 63], json->file);
        fputc(left > 1 ? digits[group >> 6 & 63] : '=', json->file);
        fputc(left > 2 ? digits[group & 63] : '=', json->file);
    }
    fputc('"', json->file);
}

void
json_key(struct json *json, const char *key)
{
    before(json);
    quoted(json, (const uint8_t *)key, strlen(key));
    fputs(": ", json->file);
    json->needs_comma = false;
}

void
json_null(struct json *json)
{
    before(json);
    fputs("null", json->file);
}

void
json_bool(struct json *json, bool value)
{
    before(json);
    fputs(value ? "true" : "false", json->file);
}

void
json_int(struct json *json, int64_t value)
{
    before(json);
    fprintf(json->file, "%lld", (long long)value);
}

void
json_uint(struct json *json, uint64_t value)
{
    before(json);
    fprintf(json->file, "%llu", (unsigned long long)value);
}

void
json_text(struct json *json, const char *text)
{
    json_bytes(json, (struct byte_view){ (const uint8_t *)text, strlen(text) });
}

void
json_raw(struct json *json)
{
    before(json);
}

/* Does the text read back as the same value of its dtype? 17 digits are enough for float64, 9 for
 * float32, 5 for float16, and fewer for bfloat16. */
static bool
same(double value, const char *text, int digits)
{
    double back = strtod(text, NULL);

    if (digits == 17)
        return back == value;
    if (digits == 9)
        return (float)back == (float)value;
    return digits == 5 ? tnd_half_from_double(back) == tnd_half_from_double(value)
                       : tnd_bfloat_from_double(back) == tnd_bfloat_from_double(value);
}

void
json_float(struct json *json, double value, int digits)
{
    char text[40];

    if (isnan(value) || isinf(value)) {
        json_text(json, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    before(json);
    /* The shortest text that reads back is what people expect: 0.1, not 0.10000000000000001. */
    for (int precision = 1; precision <= digits; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, value);
        if (same(value, text, digits))
            break;
    }
    fputs(text, json->file);
    /* So that readers with integers and floats take a column's values all alike. */
    if (strpbrk(text, ".e") == NULL)
        fputs(".0", json->file);
}

void
json_bytes(struct json *json, struct byte_view bytes)
{
    if (is_utf8(bytes)) {
        before(json);
        quoted(json, bytes.data, bytes.size);
        return;
    }
    json_object(json);
    json_key(json, "base64");
    before(json);
    base64(json, bytes);
    json_object_end(json);
}

void
json_key_text(struct json *json, const char *key, const char *text)
{
    json_key(json, key);
    json_text(json, text);
}

void
json_key_int(struct json *json, const char *key, int64_t value)
{
    json_key(json, key);
    json_int(json, value);
}

void
json_key_bool(struct json *json, const char *key, bool value)
{
    json_key(json, key);
    json_bool(json, value);
}
