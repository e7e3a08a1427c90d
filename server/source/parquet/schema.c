/* schema.c - the tree of schema elements, walked depth first; and the annotations of its leaves.
 *
 * A level of lists is written as a group that is annotated LIST, with a repeated child, with the
 * element in it. Older writers left the annotation or the element's group out. */
#include "source/parquet/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/status.h"

enum {
    DEPTH_MAX = 64,
    NAME_BYTES_MAX = 4096,
    LEVEL_MAX = 254,
    DECIMAL_DIGITS_MAX = 18,
    DECIMAL_BYTES_MAX = 16
};

enum repetition { REQUIRED, OPTIONAL, REPEATED };

enum annotation {
    NO_ANNOTATION,
    TEXT,
    MAP,
    LIST,
    DECIMAL,
    DATE,
    TIME,
    TIMESTAMP,
    INTEGER,
    HALF_FLOAT,
    VARIANT
};

enum unit { NO_UNIT, MILLISECONDS, MICROSECONDS, NANOSECONDS };

struct element {
    int64_t type, fixed_bytes, repetition, child_count;
    bool has_type;
    struct byte_view name;
    enum annotation annotation;
    enum unit unit;
    int64_t bits, scale, precision;
    bool is_signed;
};

/* TIME and TIMESTAMP: {1: adjusted to UTC, 2: unit}, where the unit is a union of empty structs. */
static void
read_unit(struct thrift *thrift, struct element *element)
{
    struct thrift_field field = { 0 }, unit = { 0 };

    while (thrift_next(thrift, &field)) {
        if (field.id != 2 || !thrift_struct(thrift, &field)) {
            if (field.id != 2)
                thrift_skip(thrift, &field);
            continue;
        }
        unit = (struct thrift_field){ 0 };
        while (thrift_next(thrift, &unit)) {
            element->unit = unit.id >= 1 && unit.id <= 3 ? (enum unit)unit.id : NO_UNIT;
            thrift_skip(thrift, &unit);
        }
    }
}

static void
read_numbers(struct thrift *thrift, int64_t *ret_first, int64_t *ret_second)
{
    struct thrift_field field = { 0 };

    while (thrift_next(thrift, &field))
        if (field.type == THRIFT_TRUE || field.type == THRIFT_FALSE)
            *ret_second = thrift_bool(thrift, &field);
        else if (field.id == 1)
            *ret_first = thrift_integer(thrift, &field);
        else if (field.id == 2)
            *ret_second = thrift_integer(thrift, &field);
        else
            thrift_skip(thrift, &field);
}

/* LogicalType: a union whose field says which. */
static void
read_logical(struct thrift *thrift, struct element *element)
{
    static const enum annotation annotations[] = {
        [1] = TEXT,  [2] = MAP,   [3] = LIST,        [4] = TEXT,     [5] = DECIMAL,
        [6] = DATE,  [7] = TIME,  [8] = TIMESTAMP,   [10] = INTEGER, [12] = TEXT,
        [13] = TEXT, [14] = TEXT, [15] = HALF_FLOAT, [16] = VARIANT,
    };
    struct thrift_field field = { 0 };
    int64_t is_signed = 1;

    while (thrift_next(thrift, &field)) {
        if (field.id < 1 || field.id > 16 || field.type != THRIFT_STRUCT) {
            thrift_skip(thrift, &field);
            continue;
        }
        element->annotation = annotations[field.id];
        switch (element->annotation) {
        case DECIMAL:
            read_numbers(thrift, &element->scale, &element->precision);
            break;
        case INTEGER:
            read_numbers(thrift, &element->bits, &is_signed);
            element->is_signed = is_signed != 0;
            break;
        case TIME:
        case TIMESTAMP:
            read_unit(thrift, element);
            break;
        default:
            thrift_skip(thrift, &field);
        }
    }
}

/* ConvertedType: what older writers have instead. The logical type, read later, replaces it. */
static void
take_converted(struct element *element, int64_t converted)
{
    static const struct {
        enum annotation annotation;
        enum unit unit;
        uint8_t bits;
        bool is_signed;
    } known[] = {
        { TEXT, NO_UNIT, 0, false },
        { MAP, NO_UNIT, 0, false },
        { MAP, NO_UNIT, 0, false },
        { LIST, NO_UNIT, 0, false },
        { TEXT, NO_UNIT, 0, false },
        { DECIMAL, NO_UNIT, 0, false },
        { DATE, NO_UNIT, 0, false },
        { TIME, MILLISECONDS, 0, false },
        { TIME, MICROSECONDS, 0, false },
        { TIMESTAMP, MILLISECONDS, 0, false },
        { TIMESTAMP, MICROSECONDS, 0, false },
        { INTEGER, NO_UNIT, 8, false },
        { INTEGER, NO_UNIT, 16, false },
        { INTEGER, NO_UNIT, 32, false },
        { INTEGER, NO_UNIT, 64, false },
        { INTEGER, NO_UNIT, 8, true },
        { INTEGER, NO_UNIT, 16, true },
        { INTEGER, NO_UNIT, 32, true },
        { INTEGER, NO_UNIT, 64, true },
    };

    if (converted < 0 || (uint64_t)converted >= sizeof known / sizeof *known)
        return;
    element->annotation = known[converted].annotation;
    element->unit = known[converted].unit;
    element->bits = known[converted].bits;
    element->is_signed = known[converted].is_signed;
}

static struct element
read_element(struct thrift *thrift)
{
    struct element element = { .repetition = REQUIRED };
    struct thrift_field field = { 0 };

    while (thrift_next(thrift, &field))
        switch (field.id) {
        case 1:
            element.has_type = true;
            element.type = thrift_integer(thrift, &field);
            break;
        case 2:
            element.fixed_bytes = thrift_integer(thrift, &field);
            break;
        case 3:
            element.repetition = thrift_integer(thrift, &field);
            break;
        case 4:
            element.name = thrift_binary(thrift, &field);
            break;
        case 5:
            element.child_count = thrift_integer(thrift, &field);
            break;
        case 6:
            take_converted(&element, thrift_integer(thrift, &field));
            break;
        case 7:
            element.scale = thrift_integer(thrift, &field);
            break;
        case 8:
            element.precision = thrift_integer(thrift, &field);
            break;
        case 10:
            if (thrift_struct(thrift, &field))
                read_logical(thrift, &element);
            break;
        default:
            thrift_skip(thrift, &field);
        }
    return element;
}

/* Where the walk is: what the groups from the root to here have said. */
struct spot {
    char name[NAME_BYTES_MAX];
    size_t name_bytes;
    uint32_t column; /* the element that ends the name */
    uint32_t depth, definition, repetition, element;
    bool in_list;     /* directly inside a LIST: the repeated child comes next */
    bool in_repeated; /* directly inside that: the element comes next */
    const char *obstacle;
};

struct walk {
    struct thrift *thrift;
    uint32_t left; /* elements */
    struct parquet_schema *schema;
};

static tundish_status
damaged(const char *what)
{
    return tnd_fail(TUNDISH_E_CORRUPT, "its schema is damaged: %s", what);
}

static void
set_time(struct parquet_leaf *leaf, const struct element *element, const char *what)
{
    static const char *const units[] = { "", " in milliseconds", " in microseconds",
                                         " in nanoseconds" };

    leaf->dtype = leaf->type == PARQUET_INT32 ? TUNDISH_INT32 : TUNDISH_INT64;
    snprintf(leaf->meaning, sizeof leaf->meaning, "%s%s", what, units[element->unit]);
}

static void
set_integer(struct parquet_leaf *leaf, const struct element *element)
{
    static const tundish_dtype signed_dtypes[] = { TUNDISH_INT8, TUNDISH_INT16, TUNDISH_INT32,
                                                   TUNDISH_INT64 };
    static const tundish_dtype unsigned_dtypes[] = { TUNDISH_UINT8, TUNDISH_UINT16, TUNDISH_UINT32,
                                                     TUNDISH_UINT64 };
    int width = element->bits == 8    ? 0
                : element->bits == 16 ? 1
                : element->bits == 32 ? 2
                : element->bits == 64 ? 3
                                      : -1;
    bool fits = leaf->type == PARQUET_INT64 || width < 3;

    if (width >= 0 && fits)
        leaf->dtype = element->is_signed ? signed_dtypes[width] : unsigned_dtypes[width];
}

static void
set_decimal(struct parquet_leaf *leaf, const struct element *element)
{
    if (element->precision < 1)
        leaf->obstacle = tnd_strdup("it is a decimal, and its schema does not say of how many "
                                    "digits");
    else if (element->precision > DECIMAL_DIGITS_MAX)
        leaf->obstacle = tnd_sprintf("it is a decimal of %lld digits, and at most %d fit an int64",
                                     (long long)element->precision, DECIMAL_DIGITS_MAX);
    else if (leaf->type == PARQUET_FIXED && leaf->fixed_bytes > DECIMAL_BYTES_MAX)
        leaf->obstacle = tnd_sprintf("it is a decimal in values of %u bytes, and at most %d are "
                                     "read",
                                     leaf->fixed_bytes, DECIMAL_BYTES_MAX);
    if (leaf->obstacle != NULL)
        return;
    leaf->change = PARQUET_DECIMAL;
    leaf->dtype = TUNDISH_INT64;
    snprintf(leaf->meaning, sizeof leaf->meaning, "decimal(%d, %d)", (int)element->precision,
             (int)(int32_t)element->scale);
}

/* The dtype that a leaf becomes. An annotation that does not go with the type is ignored, as the
 * format asks for. */
static void
set_dtype(struct parquet_leaf *leaf, const struct element *element)
{
    static const tundish_dtype plain[PARQUET_TYPES] = {
        TUNDISH_BOOL,    TUNDISH_INT32,   TUNDISH_INT64,  TUNDISH_INT64,
        TUNDISH_FLOAT32, TUNDISH_FLOAT64, TUNDISH_STRING, TUNDISH_STRING,
    };
    bool is_integer = leaf->type == PARQUET_INT32 || leaf->type == PARQUET_INT64;
    bool is_bytes = leaf->type == PARQUET_BYTE_ARRAY || leaf->type == PARQUET_FIXED;

    leaf->dtype = plain[leaf->type];
    if (leaf->type == PARQUET_INT96) {
        leaf->change = PARQUET_NANOSECONDS;
        snprintf(leaf->meaning, sizeof leaf->meaning, "timestamp in nanoseconds");
    } else if (element->annotation == DECIMAL && (is_integer || is_bytes)) {
        set_decimal(leaf, element);
    } else if (element->annotation == INTEGER && is_integer) {
        set_integer(leaf, element);
    } else if (element->annotation == DATE && leaf->type == PARQUET_INT32) {
        set_time(leaf, element, "date");
    } else if (element->annotation == TIME && is_integer) {
        set_time(leaf, element, "time");
    } else if (element->annotation == TIMESTAMP && leaf->type == PARQUET_INT64) {
        set_time(leaf, element, "timestamp");
    } else if (element->annotation == HALF_FLOAT && leaf->type == PARQUET_FIXED &&
               leaf->fixed_bytes == 2) {
        leaf->dtype = TUNDISH_FLOAT16;
    }
}

/* A NUL in a name is written as \\0. */
static char *
name_text(const struct spot *spot)
{
    char *name = tnd_alloc(2 * spot->name_bytes + 1);
    size_t used = 0;

    for (size_t i = 0; i < spot->name_bytes; i++) {
        if (spot->name[i] == 0)
            name[used++] = '\\';
        name[used++] = spot->name[i] == 0 ? '0' : spot->name[i];
    }
    name[used] = 0;
    return name;
}

static tundish_status
add_leaf(struct walk *walk, const struct element *element, const struct spot *spot)
{
    struct parquet_schema *schema = walk->schema;
    struct parquet_leaf leaf = {
        .type = (enum parquet_type)element->type,
        .fixed_bytes = (uint32_t)element->fixed_bytes,
        .is_list = spot->repetition > 0,
        .defined = (uint8_t)spot->definition,
        .element = (uint8_t)spot->element,
        .column = spot->column,
    };

    if (element->type < 0 || element->type >= PARQUET_TYPES)
        return damaged("a type that there is not");
    if (leaf.type == PARQUET_FIXED &&
        (element->fixed_bytes < 0 || element->fixed_bytes > INT32_MAX))
        return damaged("a value of impossible length");
    leaf.name = name_text(spot);
    if (memchr(spot->name, 0, spot->name_bytes) != NULL)
        leaf.obstacle = tnd_strdup("its name has a NUL character");
    else if (spot->obstacle != NULL)
        leaf.obstacle = tnd_strdup(spot->obstacle);
    else
        set_dtype(&leaf, element);
    schema->leaves = tnd_grow(schema->leaves, schema->count, sizeof *schema->leaves);
    schema->leaves[schema->count++] = leaf;
    return TUNDISH_OK;
}

static bool
is_named(struct byte_view name, const struct spot *spot)
{
    size_t dot = spot->name_bytes;

    if (name.size == 5 && memcmp(name.data, "array", 5) == 0)
        return true;
    while (dot > 0 && spot->name[dot - 1] != '.')
        dot--;
    return name.size == spot->name_bytes - dot + 6 &&
           memcmp(name.data, spot->name + dot, spot->name_bytes - dot) == 0 &&
           memcmp(name.data + name.size - 6, "_tuple", 6) == 0;
}

/* Note why what is below cannot be read; the outermost reason counts, and the outermost name. */
static void
refuse(struct spot *spot, const char *obstacle)
{
    if (spot->obstacle == NULL)
        spot->obstacle = obstacle;
}

static void
go_into_list(struct spot *spot, const struct element *element)
{
    if (element->repetition != REPEATED) {
        refuse(spot, "its list is not written as the format says");
        return;
    }
    spot->in_list = false;
    /* The repeated group may be the element itself, a struct: of several members, or named so. */
    if (element->child_count > 1 || (element->child_count == 1 && is_named(element->name, spot)))
        refuse(spot, "it is a list of structs");
    spot->in_repeated = element->child_count == 1;
}

/* Go down from `spot` to the element of this number. */
static tundish_status
go_to(struct spot *spot, const struct element *element, uint32_t number)
{
    bool is_group = element->child_count > 0;
    bool is_item = spot->in_list || spot->in_repeated || spot->obstacle != NULL;

    if (element->repetition < REQUIRED || element->repetition > REPEATED)
        return damaged("a repetition that there is not");
    if (!is_item) {
        size_t dot = spot->name_bytes > 0;

        if (element->name.size >= sizeof spot->name - spot->name_bytes - dot)
            return damaged("a name that is too long");
        if (dot)
            spot->name[spot->name_bytes++] = '.';
        if (element->name.size > 0)
            memcpy(spot->name + spot->name_bytes, element->name.data, element->name.size);
        spot->name_bytes += element->name.size;
        spot->column = number;
    }
    spot->definition += element->repetition != REQUIRED;
    if (element->repetition == REPEATED) {
        if (spot->repetition++ > 0)
            refuse(spot, "it is a list of lists");
        spot->element = spot->definition;
    }
    if (spot->definition > LEVEL_MAX)
        return damaged("it is nested too deep");
    if (element->annotation == MAP && is_group)
        refuse(spot, "it is a map");
    if (element->annotation == VARIANT && is_group)
        refuse(spot, "it is a variant");
    if (spot->in_list) {
        go_into_list(spot, element);
    } else if (spot->in_repeated) {
        spot->in_repeated = false;
        if (is_group)
            refuse(spot, element->annotation == LIST ? "it is a list of lists"
                                                     : "it is a list of structs");
    } else if (is_group && element->repetition == REPEATED) {
        refuse(spot, "it is a list of structs");
    } else if (is_group && element->annotation == LIST) {
        spot->in_list = true;
        if (element->child_count != 1)
            refuse(spot, "its list is not written as the format says");
    }
    return TUNDISH_OK;
}

static tundish_status walk_children(struct walk *walk, int64_t count, const struct spot *spot);

static tundish_status
walk_element(struct walk *walk, const struct spot *from)
{
    struct element element;
    struct spot *spot;
    tundish_status status;

    if (walk->left == 0)
        return damaged("members are missing");
    walk->left--;
    element = read_element(walk->thrift);
    if (walk->thrift->is_damaged || element.child_count < 0)
        return damaged("an element cannot be read");
    if (from->depth == DEPTH_MAX)
        return damaged("it is nested too deep");
    spot = tnd_alloc(sizeof *spot);
    *spot = *from;
    spot->depth++;
    status = go_to(spot, &element, walk->left);
    if (status == TUNDISH_OK)
        /* A group may be empty: then it has no columns. */
        status = element.has_type && element.child_count == 0
                     ? add_leaf(walk, &element, spot)
                     : walk_children(walk, element.child_count, spot);
    free(spot);
    return status;
}

static tundish_status
walk_children(struct walk *walk, int64_t count, const struct spot *spot)
{
    tundish_status status = TUNDISH_OK;

    for (int64_t i = 0; i < count && status == TUNDISH_OK; i++)
        status = walk_element(walk, spot);
    return status;
}

static int
compare_names(const void *a, const void *b)
{
    const struct parquet_leaf *one = *(struct parquet_leaf *const *)a;
    const struct parquet_leaf *other = *(struct parquet_leaf *const *)b;

    return strcmp(one->name, other->name);
}

static void
refuse_leaf(struct parquet_leaf *leaf)
{
    if (leaf->obstacle == NULL)
        leaf->obstacle = tnd_strdup("the file has two columns of this name (a dot also stands "
                                    "between a struct and its member)");
}

/* Columns that share a name cannot be told apart, and none is chosen. Columns that cannot be read
 * below one group has the group's name, and is one column. */
static void
refuse_doubles(struct parquet_schema *schema)
{
    struct parquet_leaf **sorted = tnd_alloc((schema->count + 1) * sizeof(struct parquet_leaf *));

    for (uint32_t i = 0; i < schema->count; i++)
        sorted[i] = &schema->leaves[i];
    qsort(sorted, schema->count, sizeof(struct parquet_leaf *), compare_names);
    for (uint32_t i = 1; i < schema->count; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0 &&
            sorted[i - 1]->column != sorted[i]->column) {
            refuse_leaf(sorted[i - 1]);
            refuse_leaf(sorted[i]);
        }
    free(sorted);
}

tundish_status
parquet_schema_read(struct thrift *thrift, uint32_t element_count,
                    struct parquet_schema *ret_schema)
{
    struct parquet_schema schema = { 0 };
    struct walk walk = { .thrift = thrift, .schema = &schema };
    struct spot *spot = tnd_zalloc(1, sizeof *spot);
    struct element root = { 0 };
    tundish_status status;

    if (element_count > 0)
        root = read_element(thrift); /* the message: its name and repetition mean nothing */
    walk.left = element_count == 0 ? 0 : element_count - 1;
    status =
        element_count == 0 ? damaged("it is empty") : walk_children(&walk, root.child_count, spot);
    if (status == TUNDISH_OK && walk.left > 0)
        status = damaged("elements are left over");
    if (status == TUNDISH_OK) {
        refuse_doubles(&schema);
        *ret_schema = schema;
    } else
        parquet_schema_close(&schema);
    free(spot);
    return status;
}

void
parquet_schema_close(struct parquet_schema *schema)
{
    for (uint32_t i = 0; i < schema->count; i++) {
        free(schema->leaves[i].name);
        free(schema->leaves[i].obstacle);
    }
    free(schema->leaves);
    *schema = (struct parquet_schema){ 0 };
}

int64_t
parquet_schema_find(const struct parquet_schema *schema, const char *name, uint32_t hint)
{
    for (uint32_t k = 0; k < schema->count; k++) {
        uint32_t i = (uint32_t)(((uint64_t)hint + k) % schema->count);

        if (strcmp(schema->leaves[i].name, name) == 0)
            return i;
    }
    return -1;
}
