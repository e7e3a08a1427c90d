/* npy.c - the header of .npy files: a Python dict literal of three keys. */
#include "source/rows/npy.h"

#include <string.h>

#include "core/bytes.h"
#include "core/status.h"

/* The part of the header's text that has not been read. */
struct cursor {
    const char *at, *end;
};

static tundish_status
malformed(const char *what)
{
    return tnd_fail(TUNDISH_E_DATA, "its .npy header is malformed: %s", what);
}

/* The literal is parsed by hand: evaluating it, as old versions of NumPy did, would run code from a
 * file. */
static void
skip_spaces(struct cursor *text)
{
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\n' || *text->at == '\t'))
        text->at++;
}

static bool
accept(struct cursor *text, char c)
{
    skip_spaces(text);
    if (text->at == text->end || *text->at != c)
        return false;
    text->at++;
    return true;
}

static bool
accept_word(struct cursor *text, const char *word)
{
    size_t length = strlen(word);

    skip_spaces(text);
    if ((size_t)(text->end - text->at) < length || memcmp(text->at, word, length) != 0)
        return false;
    text->at += length;
    return true;
}

/* A quoted string without escapes, cut to what fits. The names of keys and dtypes contain none. */
static bool
accept_string(struct cursor *text, char *ret_string, size_t room)
{
    char quote;
    size_t length = 0;

    skip_spaces(text);
    if (text->at == text->end || (*text->at != '\'' && *text->at != '"'))
        return false;
    quote = *text->at++;
    for (; text->at < text->end && *text->at != quote; text->at++)
        if (length + 1 < room)
            ret_string[length++] = *text->at;
    ret_string[length] = '\0';
    return text->at++ < text->end;
}

static bool
accept_natural(struct cursor *text, int64_t *ret_number)
{
    int64_t number = 0;
    const char *begin;

    skip_spaces(text);
    begin = text->at;
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, *text->at - '0', &number))
            return false;
    (void)accept(text, 'L'); /* NumPy under Python 2 wrote longs */
    *ret_number = number;
    return text->at > begin;
}

/* The letters of NumPy's array interface. Complex numbers, times and objects have no dtype here. */
static const struct {
    char kind, bytes;
    tundish_dtype dtype;
} number_types[] = {
    { 'b', 1, TUNDISH_BOOL },    { 'u', 1, TUNDISH_UINT8 },   { 'i', 1, TUNDISH_INT8 },
    { 'u', 2, TUNDISH_UINT16 },  { 'i', 2, TUNDISH_INT16 },   { 'u', 4, TUNDISH_UINT32 },
    { 'i', 4, TUNDISH_INT32 },   { 'u', 8, TUNDISH_UINT64 },  { 'i', 8, TUNDISH_INT64 },
    { 'f', 2, TUNDISH_FLOAT16 }, { 'f', 4, TUNDISH_FLOAT32 }, { 'f', 8, TUNDISH_FLOAT64 },
};

/* An item's type as "<f4" or "|S12": byte order, kind, bytes (of U: characters of 4 bytes). */
static tundish_status
read_descr(const char *descr, struct npy_header *header)
{
    struct cursor number = { descr, descr + strlen(descr) };
    int64_t size = 0;

    header->text = NPY_NO_TEXT;
    header->is_big_endian = descr[0] == '>';
    if (header->is_big_endian || descr[0] == '<' || descr[0] == '|' || descr[0] == '=')
        number.at++;
    if (number.at == number.end)
        return malformed("an empty descr");
    char kind = *number.at++;

    if (!accept_natural(&number, &size) || number.at != number.end)
        size = -1;
    if ((kind == 'S' || kind == 'U') && size >= 0 && size < INT32_MAX) {
        header->dtype = TUNDISH_STRING;
        header->text = kind == 'S' ? NPY_BYTES : NPY_UCS4;
        header->item_bytes = (uint64_t)size * (kind == 'S' ? 1 : 4);
        return TUNDISH_OK;
    }
    for (size_t i = 0; i < sizeof number_types / sizeof *number_types; i++)
        if (number_types[i].kind == kind && number_types[i].bytes == size) {
            header->dtype = number_types[i].dtype;
            header->item_bytes = (uint64_t)size;
            return TUNDISH_OK;
        }
    return tnd_fail(TUNDISH_E_DATA, "a column cannot have its dtype '%s'", descr);
}

static tundish_status
read_shape(struct cursor *text, struct npy_header *header)
{
    if (!accept(text, '('))
        return malformed("shape is not a tuple");
    while (!accept(text, ')')) {
        if (header->rank == RANK_MAX)
            return tnd_fail(TUNDISH_E_DATA, "it has more than %d dimensions", RANK_MAX);
        if (!accept_natural(text, &header->shape[header->rank]))
            return malformed("a dimension is not a number");
        header->rank++;
        /* A tuple of one has a comma after its element, and one of more may have one. */
        if (!accept(text, ',')) {
            if (!accept(text, ')'))
                return malformed("shape does not end");
            break;
        }
    }
    return TUNDISH_OK;
}

static tundish_status
count_values(struct npy_header *header)
{
    uint64_t bytes;
    bool overflow = false;

    /* A shape of no dimensions is a scalar: one value. */
    header->value_count = 1;
    for (int i = 0; i < header->rank; i++)
        overflow |=
            __builtin_mul_overflow(header->value_count, header->shape[i], &header->value_count);
    /* With a zero among the dimensions the product says nothing about the others, which are bounded
     * by the type alone. */
    if (overflow ||
        __builtin_mul_overflow((uint64_t)header->value_count, header->item_bytes, &bytes) ||
        bytes > INT64_MAX)
        return malformed("its shape has more values than any file");
    return TUNDISH_OK;
}

static tundish_status
read_dict(struct cursor *text, struct npy_header *header)
{
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    tundish_status status = TUNDISH_OK;

    if (!accept(text, '{'))
        return malformed("it is not a dict");
    while (status == TUNDISH_OK && !accept(text, '}')) {
        char key[32];
        char descr[32];

        if (!accept_string(text, key, sizeof key) || !accept(text, ':'))
            return malformed("a key is missing");
        /* A list instead of a string describes the fields of a structured array. */
        if (strcmp(key, "descr") == 0) {
            has_descr = true;
            if (!accept_string(text, descr, sizeof descr))
                return tnd_fail(TUNDISH_E_DATA, "it is a structured array; save each field as an "
                                                "array of its own");
            status = read_descr(descr, header);
        } else if (strcmp(key, "fortran_order") == 0) {
            has_order = true;
            header->fortran_order = accept_word(text, "True");
            if (!header->fortran_order && !accept_word(text, "False"))
                return malformed("fortran_order is neither True nor False");
        } else if (strcmp(key, "shape") == 0) {
            if (has_shape)
                /* A second shape would be read after the first one's dimensions. The other keys may
                 * be repeated, as in Python, where the last one counts. */
                return malformed("shape occurs twice");
            has_shape = true;
            status = read_shape(text, header);
        } else {
            return malformed("it has an unknown key");
        }
        if (status == TUNDISH_OK && !accept(text, ',')) {
            if (!accept(text, '}'))
                return malformed("the dict does not end");
            break;
        }
    }
    if (status != TUNDISH_OK)
        return status;
    return has_descr && has_order && has_shape ? count_values(header)
                                               : malformed("descr, fortran_order or shape is "
                                                           "missing");
}

tundish_status
npy_read_header(const uint8_t *data, size_t bytes, struct npy_header *ret_header)
{
    struct npy_header header = { .dtype = 0 };
    struct cursor text;
    uint64_t length, prefix;
    tundish_status status;

    if (bytes < 10 || memcmp(data, "\x93NUMPY", 6) != 0)
        return tnd_fail(TUNDISH_E_DATA, "it is not an .npy file");
    if (data[6] < 1 || data[6] > 3)
        return tnd_fail(TUNDISH_E_DATA, "its .npy version is %d; expected 1 to 3", data[6]);
    /* Version 1 has two bytes of length, versions 2 and 3 have four. Version 3 differs only in
     * allowing UTF-8 in the header. */
    prefix = data[6] == 1 ? 10 : 12;
    if (bytes < prefix)
        return malformed("it is truncated");
    length = data[6] == 1
                 ? (uint64_t)data[8] + 256U * data[9]
                 : (uint64_t)data[8] + 256U * data[9] + 65536U * data[10] + 16777216ULL * data[11];
    if (length > NPY_HEADER_MAX - prefix || length > bytes - prefix)
        return malformed("it is truncated or too long");
    text = (struct cursor){ (const char *)data + prefix, (const char *)data + prefix + length };
    status = read_dict(&text, &header);
    if (status != TUNDISH_OK)
        return status;
    header.data_offset = prefix + length;
    *ret_header = header;
    return TUNDISH_OK;
}

/* A UCS-4 string is swapped character by character, and bytes are not swapped. */
void
npy_order_bytes(const struct npy_header *header, uint8_t *items)
{
    uint64_t unit = header->text == NPY_UCS4    ? 4
                    : header->text == NPY_BYTES ? 1
                                                : header->item_bytes;
    uint8_t *end = items + (uint64_t)header->value_count * header->item_bytes;

    for (; header->is_big_endian && unit > 1 && items < end; items += unit)
        for (uint64_t i = 0; i < unit / 2; i++) {
            uint8_t low = items[unit - 1 - i];

            items[unit - 1 - i] = items[i];
            items[i] = low;
        }
}

void
npy_transpose(const struct npy_header *header, const uint8_t *from, uint8_t *to)
{
    int64_t index[RANK_MAX] = { 0 };
    uint64_t item = header->item_bytes;

    /* Walk the source in its own order; `target` is where that value belongs in rows. */
    for (int64_t i = 0; i < header->value_count; i++, from += item) {
        int64_t target = 0;

        for (int k = 0; k < header->rank; k++)
            target = target * header->shape[k] + index[k];
        memcpy(to + (uint64_t)target * item, from, item);
        for (int k = 0; k < header->rank && ++index[k] == header->shape[k]; k++)
            index[k] = 0;
    }
}
