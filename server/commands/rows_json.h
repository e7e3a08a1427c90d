/* rows_json.h - JSON objects, one a row, to the named columns that a stream takes. */
#ifndef COMMANDS_ROWS_JSON_H
#define COMMANDS_ROWS_JSON_H

#include "column/column.h"
#include "column/schema.h"
#include "column/scratch.h"

struct rows_json;

/* The schema is the caller's, and stays. E_ARGUMENT: rows cannot be written for it. */
tundish_status rows_json_open(const struct schema *inputs, struct rows_json **ret_json);
void rows_json_close(struct rows_json *json); /* accepts NULL */

/* The columns of some lines, in scratch. E_DATA: *ret_bad is the first line that is wrong. */
tundish_status rows_json_read(const struct rows_json *json, const struct byte_view *lines,
                              int64_t count, struct scratch *scratch,
                              const struct column **ret_columns, int64_t *ret_bad);

#endif
