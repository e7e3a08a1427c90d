/* tar_sparse.c - see tar_sparse.h. */
#include "source/scan/tar_sparse.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "source/scan/tar.h"

/* Offsets in GNU tar's own header, and in the blocks with more parts after it. */
enum {
    PARTS = 386,
    HEADER_PARTS = 4,
    HAS_MORE = 482,
    FILE_BYTES = 483,
    BLOCK_PARTS = 21,
    BLOCK_HAS_MORE = 504,
    NUMBER_BYTES = 12
};

struct reading {
    struct tar_sparse *sparse;
    bool is_in_data; /* pax, form 1.0: the parts stand in front of the data */
    bool has_file_bytes;
};

static tundish_status
damaged(const char *what)
{
    return tnd_fail(TUNDISH_E_DATA, "its sparse map is damaged: %s", what);
}

static void
add_part(struct reading *reading, uint64_t offset, uint64_t bytes)
{
    struct tar_sparse *sparse = reading->sparse;

    sparse->parts = tnd_grow(sparse->parts, sparse->count, sizeof *sparse->parts);
    sparse->parts[sparse->count++] = (struct tar_part){ offset, bytes };
}

/* Decimal digits, and the byte that ends them. */
static bool
take_decimal(struct byte_view *from, char end, uint64_t *ret_number)
{
    uint64_t number = 0, digits = 0;

    for (; from->size > 0 && *from->data >= '0' && *from->data <= '9'; digits++) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*from->data - '0'), &number))
            return false;
        from->data++;
        from->size--;
    }
    if (digits == 0)
        return false;
    *ret_number = number;
    if (from->size == 0)
        return end == '\0';
    if (*from->data != (uint8_t)end)
        return false;
    from->data++;
    from->size--;
    return true;
}

static tundish_status
take_old_parts(struct reading *reading, const uint8_t *block, size_t at, int count)
{
    for (int i = 0; i < count; i++, at += 2 * (size_t)NUMBER_BYTES) {
        uint64_t offset, bytes;

        /* An empty entry ends them. */
        if (block[at] == '\0')
            return TUNDISH_OK;
        if (!tar_number(block + at, NUMBER_BYTES, &offset) ||
            !tar_number(block + at + NUMBER_BYTES, NUMBER_BYTES, &bytes))
            return damaged("a part is not a number");
        add_part(reading, offset, bytes);
    }
    return TUNDISH_OK;
}

/* GNU tar's own form: `rest` begins with the header. */
static tundish_status
take_old(struct reading *reading, struct byte_view rest)
{
    const uint8_t *block = rest.data;
    bool has_more = block[HAS_MORE] != 0;
    tundish_status status = take_old_parts(reading, block, PARTS, HEADER_PARTS);

    if (status == TUNDISH_OK &&
        !tar_number(block + FILE_BYTES, NUMBER_BYTES, &reading->sparse->file_bytes))
        return damaged("its size is not a number");
    reading->has_file_bytes = true;
    while (status == TUNDISH_OK && has_more) {
        rest.data += TAR_BLOCK_BYTES;
        rest.size -= TAR_BLOCK_BYTES;
        if (rest.size < TAR_BLOCK_BYTES)
            return damaged("it is cut off");
        status = take_old_parts(reading, rest.data, 0, BLOCK_PARTS);
        has_more = rest.data[BLOCK_HAS_MORE] != 0;
    }
    return status;
}

static bool
key_is(struct byte_view key, const char *text)
{
    return bytes_are_equal(key, bytes_of_text(text));
}

static bool
take_map(struct reading *reading, struct byte_view value)
{
    while (value.size > 0) {
        uint64_t offset, bytes;

        if (!take_decimal(&value, ',', &offset))
            return false;
        if (!take_decimal(&value, memchr(value.data, ',', value.size) == NULL ? '\0' : ',', &bytes))
            return false;
        add_part(reading, offset, bytes);
    }
    return true;
}

static tundish_status
take_record(struct reading *reading, struct byte_view key, struct byte_view value)
{
    struct tar_sparse *sparse = reading->sparse;
    uint64_t number = 0;

    if (key.size < 11 || memcmp(key.data, "GNU.sparse.", 11) != 0 || key_is(key, "GNU.sparse.name"))
        return TUNDISH_OK;
    if (key_is(key, "GNU.sparse.map"))
        return take_map(reading, value) ? TUNDISH_OK : damaged("its parts are not numbers");
    if (!take_decimal(&value, '\0', &number))
        return damaged("a number is none");
    if (key_is(key, "GNU.sparse.major"))
        reading->is_in_data = number >= 1;
    if (key_is(key, "GNU.sparse.size") || key_is(key, "GNU.sparse.realsize")) {
        sparse->file_bytes = number;
        reading->has_file_bytes = true;
    }
    if (key_is(key, "GNU.sparse.offset"))
        add_part(reading, number, 0);
    if (key_is(key, "GNU.sparse.numbytes")) {
        if (sparse->count == 0)
            return damaged("a part has no offset");
        sparse->parts[sparse->count - 1].bytes = number;
    }
    return TUNDISH_OK;
}

/* A pax header's records, "LENGTH KEY=VALUE\n". */
static tundish_status
take_records(struct reading *reading, struct byte_view body)
{
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK && body.size > 0) {
        struct byte_view rest = body;
        const uint8_t *equals;
        uint64_t length;

        if (!take_decimal(&rest, ' ', &length) || length > body.size ||
            length <= body.size - rest.size)
            return damaged("malformed pax header");
        rest.size -= body.size - length;
        equals = memchr(rest.data, '=', rest.size);
        if (equals == NULL)
            return damaged("malformed pax header");
        status = take_record(
            reading, (struct byte_view){ rest.data, (uint64_t)(equals - rest.data) },
            (struct byte_view){ equals + 1, (uint64_t)(rest.data + rest.size - 1 - (equals + 1)) });
        body.data += length;
        body.size -= length;
    }
    return status;
}

static tundish_status
take_headers(struct reading *reading, struct byte_view rest)
{
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK && rest.size >= TAR_BLOCK_BYTES) {
        char type = (char)rest.data[TAR_TYPE];
        bool is_pax = type == 'x' || type == 'X';
        uint64_t size, padded;

        if (type == 'S')
            return take_old(reading, rest);
        if (!is_pax && type != 'L' && type != 'K' && type != 'g')
            return TUNDISH_OK;
        if (!tar_number(rest.data + TAR_SIZE, NUMBER_BYTES, &size) ||
            size > rest.size - TAR_BLOCK_BYTES)
            return damaged("it is cut off");
        if (is_pax)
            status = take_records(reading, (struct byte_view){ rest.data + TAR_BLOCK_BYTES, size });
        padded = TAR_BLOCK_BYTES + (size + TAR_BLOCK_BYTES - 1) / TAR_BLOCK_BYTES * TAR_BLOCK_BYTES;
        if (padded > rest.size)
            return damaged("it is cut off");
        rest.data += padded;
        rest.size -= padded;
    }
    return status;
}

/* Form 1.0: how many parts, and each one's offset and bytes, in lines that fill whole blocks. */
static tundish_status
take_from_data(struct reading *reading)
{
    struct byte_view *stored = &reading->sparse->stored;
    struct byte_view rest = *stored;
    uint64_t count, used;

    if (!take_decimal(&rest, '\n', &count))
        return damaged("the number of its parts is none");
    for (uint64_t i = 0; i < count; i++) {
        uint64_t offset, bytes;

        if (!take_decimal(&rest, '\n', &offset) || !take_decimal(&rest, '\n', &bytes))
            return damaged("its parts are not numbers");
        add_part(reading, offset, bytes);
    }
    used = stored->size - rest.size;
    used = (used + TAR_BLOCK_BYTES - 1) / TAR_BLOCK_BYTES * TAR_BLOCK_BYTES;
    if (used > stored->size)
        return damaged("it is cut off");
    stored->data += used;
    stored->size -= used;
    return TUNDISH_OK;
}

static tundish_status
check(const struct reading *reading)
{
    const struct tar_sparse *sparse = reading->sparse;
    uint64_t end = 0, stored = 0;

    if (!reading->has_file_bytes)
        return damaged("the size of its file is missing");
    for (size_t i = 0; i < sparse->count; i++) {
        const struct tar_part *part = &sparse->parts[i];

        if (part->offset < end || part->offset > sparse->file_bytes ||
            part->bytes > sparse->file_bytes - part->offset ||
            part->bytes > sparse->stored.size - stored)
            return damaged("a part lies outside of its file");
        end = part->offset + part->bytes;
        stored += part->bytes;
    }
    return TUNDISH_OK;
}

tundish_status
tar_sparse_open(struct byte_view headers, struct byte_view data, struct tar_sparse *ret_sparse)
{
    struct tar_sparse sparse = { .stored = data };
    struct reading reading = { .sparse = &sparse };
    tundish_status status = take_headers(&reading, headers);

    if (status == TUNDISH_OK && reading.is_in_data)
        status = take_from_data(&reading);
    if (status == TUNDISH_OK)
        status = check(&reading);
    if (status == TUNDISH_OK)
        *ret_sparse = sparse;
    else
        tar_sparse_close(&sparse);
    return status;
}

void
tar_sparse_close(struct tar_sparse *sparse)
{
    free(sparse->parts);
    *sparse = (struct tar_sparse){ 0 };
}

void
tar_sparse_fill(const struct tar_sparse *sparse, uint8_t *to)
{
    const uint8_t *from = sparse->stored.data;

    memset(to, 0, sparse->file_bytes);
    for (size_t i = 0; i < sparse->count; i++) {
        if (sparse->parts[i].bytes > 0)
            memcpy(to + sparse->parts[i].offset, from, sparse->parts[i].bytes);
        from += sparse->parts[i].bytes;
    }
}
