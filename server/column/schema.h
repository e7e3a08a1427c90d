/* schema.h - the columns of an element at one point of a pipeline: what element_spec reports. */
#ifndef COLUMN_SCHEMA_H
#define COLUMN_SCHEMA_H

#include <stdbool.h>

#include "core/dtype.h"

#define RANK_MAX 8
#define RANK_UNKNOWN (-1)

struct column_spec {
    char *name;
    tundish_dtype dtype;
    tundish_kind kind;
    int rank;                /* of the whole element, batch dimensions included */
    int64_t shape[RANK_MAX]; /* -1: not known before the data is */
    int ragged_rank;         /* RAGGED: dimensions 1 .. ragged_rank are ragged */
    bool row_of_ragged;      /* DENSE, taken out of a ragged batch: batched again, it is ragged */
    bool splits_int32;       /* RAGGED: row_splits are int32 in TensorFlow */
    bool has_range;          /* integers: every value is in [minimum, maximum] */
    int64_t minimum, maximum;
    int32_t passed_from; /* as it was in this column of the stage's input; -1: written */
};

/* Names and their order are changed by the functions below alone. */
struct schema {
    uint32_t count;
    struct column_spec *columns;
    uint32_t *slots; /* many columns: a hash table of their numbers + 1; 0: free. Else NULL */
    uint32_t slot_mask;
};

/* Append a column and return it, zeroed but for name (copied), dtype, kind DENSE, rank 0 and
 * passed_from -1. */
struct column_spec *schema_add(struct schema *schema, const char *name, tundish_dtype dtype);

/* Append a copy of a column of the input, passed_from set to `input_index`. */
struct column_spec *schema_pass(struct schema *schema, const struct schema *input,
                                uint32_t input_index);

/* The same under another name, which is copied. */
struct column_spec *schema_pass_as(struct schema *schema, const struct schema *input,
                                   uint32_t input_index, const char *name);

/* Append all of them. */
void schema_pass_all(struct schema *schema, const struct schema *input);

/* The index of a column, or -1. */
int32_t schema_find(const struct schema *schema, const char *name);

/* The names in order, in an array that the caller frees (not the names). */
const char **schema_names(const struct schema *schema);

/* Remove column `index`; those after it move up. */
void schema_remove(struct schema *schema, uint32_t index);

/* Sort them by name. ret_places[i]: where column i has come to. */
void schema_sort(struct schema *schema, uint32_t *ret_places);

void schema_close(struct schema *schema);

/* Values in one element, or -1 if a dimension is unknown. */
int64_t column_spec_values(const struct column_spec *spec);

/* "int64[-1,3]", for messages and plans. The caller frees. */
char *column_spec_text(const struct column_spec *spec);

#endif
