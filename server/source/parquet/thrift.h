/* thrift.h - what Thrift's compact protocol writes, read from bytes that may be damaged.
 *
 * A reader that has met damage stays damaged: everything read from it after that is zero or empty,
 * and lists and structs end at once. So callers check once, at the end. */
#ifndef SOURCE_PARQUET_THRIFT_H
#define SOURCE_PARQUET_THRIFT_H

#include "core/bytes.h"

enum thrift_type {
    THRIFT_STOP,
    THRIFT_TRUE, /* of a field, a bool's type is its value */
    THRIFT_FALSE,
    THRIFT_I8,
    THRIFT_I16,
    THRIFT_I32,
    THRIFT_I64,
    THRIFT_DOUBLE,
    THRIFT_BINARY,
    THRIFT_LIST,
    THRIFT_SET,
    THRIFT_MAP,
    THRIFT_STRUCT,
};

enum { THRIFT_DEPTH_MAX = 32 };

struct thrift {
    const uint8_t *at, *end;
    uint32_t depth; /* of structs and lists that are passed over */
    bool is_damaged;
};

/* A field of a struct; zeroed before the first one. */
struct thrift_field {
    int32_t id;
    enum thrift_type type;
};

/* The next field of the struct that is being read. False: it is over. */
bool thrift_next(struct thrift *thrift, struct thrift_field *field);

/* The field's value. One of another type is passed over, and 0. */
int64_t thrift_integer(struct thrift *thrift, const struct thrift_field *field);
bool thrift_bool(struct thrift *thrift, const struct thrift_field *field);
struct byte_view thrift_binary(struct thrift *thrift, const struct thrift_field *field);

/* How many structs follow in the field's list; another type is passed over. */
uint32_t thrift_structs(struct thrift *thrift, const struct thrift_field *field);

/* Does a struct follow as the field's value? Another type is passed over. */
bool thrift_struct(struct thrift *thrift, const struct thrift_field *field);

void thrift_skip(struct thrift *thrift, const struct thrift_field *field);

#endif
