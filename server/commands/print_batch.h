/* print_batch.h - batches and element specs as JSON, in the form of the recorded cases, or as text.
 */
#ifndef COMMANDS_PRINT_BATCH_H
#define COMMANDS_PRINT_BATCH_H

#include "batch/output.h"
#include "core/json.h"

void print_element_spec(struct json *json, const struct schema *schema);
/* Value i of an array. */
void print_value(struct json *json, tundish_dtype dtype, const void *values, int64_t i);

void print_column(struct json *json, const struct output_column *column);

/* The same for programs: instead of the values, the sizes of the parts that print_column_values
 * writes: first the values, of strings their bytes and count + 1 offsets, then row_splits or
 * indices, both int64. */
void print_column_parts(struct json *json, const struct output_column *column);
void print_column_values(FILE *file, const struct output_column *column);

/* One line: name, dtype, shape and the first values. */
void print_column_text(FILE *file, const struct output_column *column);

#endif
