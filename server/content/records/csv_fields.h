/* csv_fields.h - CSV records to columns: what decode_csv and the csv source share. */
#ifndef CONTENT_RECORDS_CSV_FIELDS_H
#define CONTENT_RECORDS_CSV_FIELDS_H

#include "content/content.h"
#include "content/records/csv_cut.h"

struct csv_column {
    char *name;
    tundish_dtype dtype; /* INT32, INT64, FLOAT32, FLOAT64 or STRING */
    void *fallback;      /* one value, for an empty field; NULL: the field is required */
};

struct csv_table {
    struct csv_rules rules;
    csv_cut *cut;
    struct byte_view na_value; /* counts as empty; size 0: none */
    uint32_t count;
    struct csv_column *columns;
};

/* Read record_defaults, column_names, field_delim, use_quote_delim, na_value and select_cols of
 * the stage (of the csv source exclude_cols too). Complains about all that is wrong. Close accepts
 * what a failed open leaves. */
tundish_status csv_table_open(const struct stage_config *config, bool is_dataset,
                              struct csv_table *ret_table);
void csv_table_close(struct csv_table *table);

struct csv_records {
    const struct byte_view *records; /* 64 readable bytes after each; dataset: without line end */
    int64_t count;
    const struct column *column; /* whose values the records are; NULL: one for each element */

    /* Where a record is, for a sentence about it: " in data.csv at byte 120". NULL: its number. */
    void (*where)(const void *context, int64_t record, char *text, size_t bytes);
    const void *context;
};

/* Store column c's value of record r at values[c][r]; strings are views of the record where they
 * can be, else of scratch. An element with a bad record is rejected. */
void csv_table_read(const struct csv_table *table, const struct csv_records *records,
                    struct frame *frame, void *const *values);

#endif
