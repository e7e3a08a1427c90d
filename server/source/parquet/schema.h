/* schema.h - the leaves of a Parquet file's schema: the columns that it has, and what their values
 * become here. */
#ifndef SOURCE_PARQUET_SCHEMA_H
#define SOURCE_PARQUET_SCHEMA_H

#include "core/dtype.h"
#include "core/status.h"
#include "source/parquet/thrift.h"

/* Numbers as in the format. */
enum parquet_type {
    PARQUET_BOOLEAN,
    PARQUET_INT32,
    PARQUET_INT64,
    PARQUET_INT96,
    PARQUET_FLOAT,
    PARQUET_DOUBLE,
    PARQUET_BYTE_ARRAY,
    PARQUET_FIXED,
    PARQUET_TYPES
};

/* The change that a value of that type undergoes. */
enum parquet_change {
    PARQUET_AS_IT_IS,   /* or cut to the dtype's width */
    PARQUET_DECIMAL,    /* to an int64, unscaled */
    PARQUET_NANOSECONDS /* of INT96 */
};

struct parquet_leaf {
    char *name;     /* struct.member; of a list the list's */
    char *obstacle; /* why it cannot be read, or NULL */
    enum parquet_type type;
    enum parquet_change change;
    tundish_dtype dtype;
    uint32_t fixed_bytes; /* of PARQUET_FIXED */
    char meaning[48]; /* what the numbers stand for, where the dtype does not say it: "decimal(9,
                         2)" */
    bool is_list;
    uint32_t column; /* leaves of one column have the same number */

    /* Levels: a value is there at `defined`; of a list an element (perhaps null) from `element` on.
     */
    uint8_t defined, element;
};

struct parquet_schema {
    uint32_t count;
    struct parquet_leaf *leaves; /* in the order in which row groups have their columns */
};

/* Read the list of SchemaElement that stands at `thrift`. Fails without naming the file. */
tundish_status parquet_schema_read(struct thrift *thrift, uint32_t element_count,
                                   struct parquet_schema *ret_schema);
void parquet_schema_close(struct parquet_schema *schema); /* accepts zeros */

/* The leaf of that name, looked for from `hint` on; -1: none. */
int64_t parquet_schema_find(const struct parquet_schema *schema, const char *name, uint32_t hint);

#endif
