/* thrift.c - see thrift.h. */
#include "source/parquet/thrift.h"

static void
damage(struct thrift *thrift)
{
    thrift->is_damaged = true;
    thrift->at = thrift->end;
}

static uint8_t
take_byte(struct thrift *thrift)
{
    if (thrift->at == thrift->end) {
        damage(thrift);
        return 0;
    }
    return *thrift->at++;
}

/* Seven bits a byte, lowest first. */
static uint64_t
take_number(struct thrift *thrift)
{
    uint64_t number = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = take_byte(thrift);

        number |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0)
            return number;
    }
    damage(thrift);
    return 0;
}

/* Zigzag: the sign is the lowest bit. */
static int64_t
take_integer(struct thrift *thrift)
{
    uint64_t number = take_number(thrift);

    return (int64_t)(number >> 1 ^ (0 - (number & 1)));
}

static void
pass_over(struct thrift *thrift, uint64_t bytes)
{
    if (bytes > (uint64_t)(thrift->end - thrift->at))
        damage(thrift);
    else
        thrift->at += bytes;
}

bool
thrift_next(struct thrift *thrift, struct thrift_field *field)
{
    uint8_t head = take_byte(thrift);
    int64_t id;

    field->type = head & 0x0F;
    if (thrift->is_damaged || head == THRIFT_STOP)
        return false;
    if (field->type == THRIFT_STOP || field->type > THRIFT_STRUCT) {
        damage(thrift);
        return false;
    }
    id = head >> 4 != 0 ? field->id + (head >> 4) : take_integer(thrift);
    if (id < INT16_MIN || id > INT16_MAX)
        damage(thrift);
    else
        field->id = (int32_t)id;
    return !thrift->is_damaged;
}

static void skip_value(struct thrift *thrift, enum thrift_type type);

/* A list's head: how many items of which type. */
static uint64_t
take_list(struct thrift *thrift, enum thrift_type *ret_type)
{
    uint8_t head = take_byte(thrift);
    uint64_t count = head >> 4 == 15 ? take_number(thrift) : head >> 4;

    *ret_type = head & 0x0F;
    /* Some writers give a list without items no type. */
    if (count == 0 && !thrift->is_damaged)
        return 0;
    /* Each item takes a byte at least, so a count that lies cannot make a long loop. */
    if (*ret_type == THRIFT_STOP || *ret_type > THRIFT_STRUCT ||
        count > (uint64_t)(thrift->end - thrift->at)) {
        damage(thrift);
        return 0;
    }
    return count;
}

static void
skip_items(struct thrift *thrift, enum thrift_type type, uint64_t count)
{
    /* In a list a bool takes a byte, unlike in a field. */
    if (type == THRIFT_TRUE || type == THRIFT_FALSE)
        pass_over(thrift, count);
    else
        for (uint64_t i = 0; i < count && !thrift->is_damaged; i++)
            skip_value(thrift, type);
}

static void
skip_map(struct thrift *thrift)
{
    uint64_t count = take_number(thrift);
    uint8_t types = count > 0 ? take_byte(thrift) : 0;

    if (count > (uint64_t)(thrift->end - thrift->at) ||
        (count > 0 && ((types >> 4) - 1U >= THRIFT_STRUCT || (types & 0x0F) - 1U >= THRIFT_STRUCT)))
        damage(thrift);
    for (uint64_t i = 0; i < count && !thrift->is_damaged; i++) {
        skip_items(thrift, types >> 4, 1);
        skip_items(thrift, types & 0x0F, 1);
    }
}

static void
skip_value(struct thrift *thrift, enum thrift_type type)
{
    struct thrift_field field = { 0 };
    enum thrift_type item;

    if (thrift->depth == THRIFT_DEPTH_MAX) {
        damage(thrift);
        return;
    }
    thrift->depth++;
    switch (type) {
    case THRIFT_STOP:
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        break;
    case THRIFT_I8:
        pass_over(thrift, 1);
        break;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
        (void)take_number(thrift);
        break;
    case THRIFT_DOUBLE:
        pass_over(thrift, 8);
        break;
    case THRIFT_BINARY:
        pass_over(thrift, take_number(thrift));
        break;
    case THRIFT_LIST:
    case THRIFT_SET: {
        uint64_t count = take_list(thrift, &item);

        skip_items(thrift, item, count);
        break;
    }
    case THRIFT_MAP:
        skip_map(thrift);
        break;
    case THRIFT_STRUCT:
        while (thrift_next(thrift, &field))
            skip_value(thrift, field.type);
        break;
    }
    thrift->depth--;
}

void
thrift_skip(struct thrift *thrift, const struct thrift_field *field)
{
    skip_value(thrift, field->type);
}

int64_t
thrift_integer(struct thrift *thrift, const struct thrift_field *field)
{
    if (field->type == THRIFT_I8)
        return (int8_t)take_byte(thrift);
    if (field->type >= THRIFT_I16 && field->type <= THRIFT_I64)
        return take_integer(thrift);
    thrift_skip(thrift, field);
    return 0;
}

bool
thrift_bool(struct thrift *thrift, const struct thrift_field *field)
{
    thrift_skip(thrift, field);
    return field->type == THRIFT_TRUE;
}

struct byte_view
thrift_binary(struct thrift *thrift, const struct thrift_field *field)
{
    struct byte_view view = { .data = NULL };

    if (field->type != THRIFT_BINARY) {
        thrift_skip(thrift, field);
        return view;
    }
    view.size = take_number(thrift);
    view.data = thrift->at;
    pass_over(thrift, view.size);
    return thrift->is_damaged ? (struct byte_view){ 0 } : view;
}

uint32_t
thrift_structs(struct thrift *thrift, const struct thrift_field *field)
{
    enum thrift_type item;
    uint64_t count;

    if (field->type != THRIFT_LIST) {
        thrift_skip(thrift, field);
        return 0;
    }
    count = take_list(thrift, &item);
    if (item == THRIFT_STRUCT && count <= INT32_MAX)
        return (uint32_t)count;
    skip_items(thrift, item, count);
    return 0;
}

bool
thrift_struct(struct thrift *thrift, const struct thrift_field *field)
{
    if (field->type == THRIFT_STRUCT)
        return true;
    thrift_skip(thrift, field);
    return false;
}
