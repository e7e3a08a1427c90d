/* arrow_fields.h - the columns of an Arrow schema (the C Data Interface), as Tundish has them. */
#ifndef TND_ARROW_ARROW_FIELDS_H
#define TND_ARROW_ARROW_FIELDS_H

#include <stdbool.h>

#include "core/bytes.h"
#include "core/dtype.h"
#include "tundish/tundish_source.h"

/* How values lie. */
enum arrow_layout {
    ARROW_BITS,
    ARROW_NUMBERS,  /* those of the dtype */
    ARROW_DECIMALS, /* two's complement, which become int64 */
    ARROW_TEXTS,    /* offsets of 32 bits, bytes */
    ARROW_LARGE_TEXTS,
    ARROW_TEXT_VIEWS,
    ARROW_FIXED_TEXTS
};

enum arrow_shape { ARROW_SCALARS, ARROW_FIXED_LISTS, ARROW_LISTS, ARROW_LARGE_LISTS };

struct arrow_field {
    const char *name;  /* the schema's */
    char obstacle[96]; /* "": none; else why it cannot be read, without a subject: "it is a map" */
    tundish_dtype dtype;
    enum arrow_layout layout; /* of the values, in the dictionary if there is one */
    enum arrow_shape shape;
    uint32_t width;      /* bytes of a value as it lies; texts of ARROW_FIXED_TEXTS */
    uint32_t list_size;  /* of ARROW_FIXED_LISTS */
    uint8_t index_width; /* of the indices to a dictionary; 0: there is none */
    bool index_is_signed;
};

/* The fields of a stream's schema, which is that of a struct. They point into the schema. E_DATA
 * with a sentence if it is none; a field that cannot be read has its obstacle. The caller frees. */
tundish_status arrow_fields_read(const struct ArrowSchema *schema, struct arrow_field **ret_fields,
                                 uint32_t *ret_count);

/* Bytes of a value of that dtype in memory: texts are struct byte_view. */
size_t arrow_value_bytes(tundish_dtype dtype);

#endif
