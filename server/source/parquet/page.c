/* page.c - see page.h. */
#include "source/parquet/page.h"

/* The three kinds of data that a head may have; their first fields are alike. */
static void
read_data(struct thrift *thrift, struct parquet_page *page, int64_t *ret_values)
{
    struct thrift_field field = { 0 };

    while (thrift_next(thrift, &field))
        if (field.id == 1)
            *ret_values = thrift_integer(thrift, &field);
        else if (field.id == 2)
            page->encoding = thrift_integer(thrift, &field);
        else if (field.id == 3)
            page->definition_encoding = thrift_integer(thrift, &field);
        else if (field.id == 4)
            page->repetition_encoding = thrift_integer(thrift, &field);
        else
            thrift_skip(thrift, &field);
}

struct numbers {
    int64_t packed, unpacked, values, definition, repetition;
};

static void
read_data_v2(struct thrift *thrift, struct parquet_page *page, struct numbers *numbers)
{
    struct thrift_field field = { 0 };

    while (thrift_next(thrift, &field))
        if (field.id == 1)
            numbers->values = thrift_integer(thrift, &field);
        else if (field.id == 4)
            page->encoding = thrift_integer(thrift, &field);
        else if (field.id == 5)
            numbers->definition = thrift_integer(thrift, &field);
        else if (field.id == 6)
            numbers->repetition = thrift_integer(thrift, &field);
        else if (field.id == 7)
            page->is_packed = thrift_bool(thrift, &field);
        else
            thrift_skip(thrift, &field);
}

static void
read_head(struct thrift *thrift, struct parquet_page *page, struct numbers *numbers)
{
    struct thrift_field field = { 0 };

    while (thrift_next(thrift, &field))
        switch (field.id) {
        case 1:
            page->type = thrift_integer(thrift, &field);
            break;
        case 2:
            numbers->unpacked = thrift_integer(thrift, &field);
            break;
        case 3:
            numbers->packed = thrift_integer(thrift, &field);
            break;
        case 4:
            page->has_crc = true;
            page->crc = (uint32_t)thrift_integer(thrift, &field);
            break;
        case 5:
        case 7:
            if (thrift_struct(thrift, &field))
                read_data(thrift, page, &numbers->values);
            break;
        case 8:
            if (thrift_struct(thrift, &field))
                read_data_v2(thrift, page, numbers);
            break;
        default:
            thrift_skip(thrift, &field);
        }
}

static bool
is_page_size(int64_t bytes)
{
    return bytes >= 0 && bytes <= PARQUET_PAGE_MAX;
}

tundish_status
parquet_page_read(struct byte_view bytes, struct parquet_page *ret_page, size_t *ret_bytes)
{
    struct thrift thrift = { .at = bytes.data, .end = bytes.data + bytes.size };
    struct parquet_page page = { .type = -1,
                                 .encoding = -1,
                                 .is_packed = true,
                                 .definition_encoding = PARQUET_RLE,
                                 .repetition_encoding = PARQUET_RLE };
    struct numbers numbers = { .packed = -1, .unpacked = -1 };

    read_head(&thrift, &page, &numbers);
    if (thrift.is_damaged || !is_page_size(numbers.packed) || !is_page_size(numbers.unpacked) ||
        numbers.values < 0 || numbers.values > INT32_MAX || numbers.definition < 0 ||
        numbers.repetition < 0 || numbers.definition > numbers.unpacked ||
        numbers.repetition > numbers.unpacked - numbers.definition ||
        numbers.definition + numbers.repetition > numbers.packed)
        return tnd_fail(TUNDISH_E_CORRUPT, "the head of a page is damaged, or its page is longer "
                                           "than 1 GiB");
    page.packed_bytes = (uint32_t)numbers.packed;
    page.unpacked_bytes = (uint32_t)numbers.unpacked;
    page.value_count = (uint32_t)numbers.values;
    page.definition_bytes = (uint32_t)numbers.definition;
    page.repetition_bytes = (uint32_t)numbers.repetition;
    *ret_page = page;
    *ret_bytes = (size_t)(thrift.at - bytes.data);
    return TUNDISH_OK;
}
