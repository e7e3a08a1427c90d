/* parquet_fixture.h - Parquet files made by hand: Thrift's compact protocol, pages, footers. */
#ifndef TEST_PARQUET_FIXTURE_H
#define TEST_PARQUET_FIXTURE_H

#include "source_fixture.h"

#include "source/parquet/footer.h"
#include "source/parquet/page.h"

static inline void
add_number(struct bytes *bytes, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        bytes_add(bytes, &(uint8_t){ (uint8_t)(number | 0x80) }, 1);
    bytes_add(bytes, &(uint8_t){ (uint8_t)number }, 1);
}

static inline void
add_signed(struct bytes *bytes, int64_t number)
{
    add_number(bytes, (uint64_t)number << 1 ^ (uint64_t)(number >> 63));
}

/* A field's head, with its whole number. */
static inline void
add_field(struct bytes *bytes, int id, enum thrift_type type)
{
    bytes_add(bytes, &(uint8_t){ (uint8_t)type }, 1);
    add_signed(bytes, id);
}

static inline void
add_integer(struct bytes *bytes, int id, int64_t number)
{
    add_field(bytes, id, THRIFT_I64);
    add_signed(bytes, number);
}

static inline void
add_binary(struct bytes *bytes, int id, const char *text)
{
    add_field(bytes, id, THRIFT_BINARY);
    add_number(bytes, strlen(text));
    bytes_add(bytes, text, strlen(text));
}

static inline void
add_structs(struct bytes *bytes, int id, uint32_t count)
{
    add_field(bytes, id, THRIFT_LIST);
    bytes_add(bytes, &(uint8_t){ 0xF0 | THRIFT_STRUCT }, 1);
    add_number(bytes, count);
}

static inline void
add_stop(struct bytes *bytes)
{
    bytes_add(bytes, "", 1);
}

/* A page of version 1 with these bytes as they are. */
static inline void
add_page(struct bytes *file, const void *data, size_t count, uint32_t values, int64_t encoding)
{
    add_integer(file, 1, PARQUET_DATA_PAGE);
    add_integer(file, 2, (int64_t)count);
    add_integer(file, 3, (int64_t)count);
    add_field(file, 5, THRIFT_STRUCT);
    add_integer(file, 1, values);
    add_integer(file, 2, encoding);
    add_integer(file, 3, PARQUET_RLE);
    add_integer(file, 4, PARQUET_RLE);
    add_stop(file);
    add_stop(file);
    bytes_add(file, data, count);
}

static inline void
add_element(struct bytes *footer, const char *name, int64_t type, int64_t child_count)
{
    if (type >= 0)
        add_integer(footer, 1, type);
    add_integer(footer, 3, 0);
    add_binary(footer, 4, name);
    if (child_count > 0)
        add_integer(footer, 5, child_count);
    add_stop(footer);
}

/* What a footer says of a row group of one column. */
struct group_made {
    int64_t offset, bytes, values, rows, codec;
};

static inline void
add_group(struct bytes *footer, const struct group_made *group)
{
    add_structs(footer, 1, 1);
    add_field(footer, 3, THRIFT_STRUCT);
    add_integer(footer, 4, group->codec);
    add_integer(footer, 5, group->values);
    add_integer(footer, 6, group->bytes);
    add_integer(footer, 7, group->bytes);
    add_integer(footer, 9, group->offset);
    add_stop(footer);
    add_stop(footer);
    add_integer(footer, 3, group->rows);
    add_stop(footer);
}

/* The metadata of a file with one required column `x`. */
static inline struct bytes
footer_of(const struct group_made *groups, uint32_t count, int64_t rows, int64_t type)
{
    struct bytes footer = { 0 };

    add_integer(&footer, 1, 2);
    add_structs(&footer, 2, 2);
    add_element(&footer, "schema", -1, 1);
    add_element(&footer, "x", type, 0);
    add_integer(&footer, 3, rows);
    add_structs(&footer, 4, count);
    for (uint32_t i = 0; i < count; i++)
        add_group(&footer, &groups[i]);
    add_stop(&footer);
    return footer;
}

static inline void
end_file(struct bytes *file, const struct bytes *footer)
{
    uint32_t size = (uint32_t)footer->used;

    bytes_add(file, footer->data, footer->used);
    bytes_add(file, &size, sizeof size);
    bytes_add(file, "PAR1", 4);
}

/* Row groups of `per_group` int64s each, which count from 0. */
static inline struct bytes
counting_file(uint32_t group_count, uint32_t per_group)
{
    struct bytes file = { 0 };
    struct group_made *groups = tnd_zalloc(group_count, sizeof *groups);
    int64_t *values = tnd_zalloc(per_group, sizeof *values), next = 0;
    struct bytes footer;

    bytes_add(&file, "PAR1", 4);
    for (uint32_t i = 0; i < group_count; i++) {
        groups[i] = (struct group_made){ .offset = (int64_t)file.used,
                                         .values = per_group,
                                         .rows = per_group };
        for (uint32_t k = 0; k < per_group; k++)
            values[k] = next++;
        add_page(&file, values, per_group * sizeof *values, per_group, PARQUET_PLAIN);
        groups[i].bytes = (int64_t)file.used - groups[i].offset;
    }
    footer = footer_of(groups, group_count, next, PARQUET_INT64);
    end_file(&file, &footer);
    free(footer.data);
    free(groups);
    free(values);
    return file;
}

#endif
