/* csv_cut.h - a CSV record into fields, by the rules of tf.io.decode_csv or CsvDataset. */
#ifndef CONTENT_RECORDS_CSV_CUT_H
#define CONTENT_RECORDS_CSV_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "column/scratch.h"
#include "core/bytes.h"

struct csv_rules {
    uint8_t delimiter;
    bool quotes;     /* use_quote_delim */
    bool is_dataset; /* a record of CsvDataset, whose line end has been taken off */
    uint32_t select_count;
    uint32_t *select; /* rising numbers of the fields that are wanted; NULL: all of them */
    uint32_t total;   /* of exclude_cols: a record with more fields is wrong; 0: it is not */
};

/* Offsets of the delimiters in a record, and its size last: one for each field. Returns how many
 * fields there are, -1 if the record has quotes or line ends and must be read by csv_fields, or
 * capacity + 1 if there are more fields than that. The record has 64 readable bytes after it,
 * and `ret_ends` room for CSV_CUT_SLACK more than the capacity, which may be scribbled on. */
enum { CSV_CUT_SLACK = 16 };

typedef int64_t csv_cut(const struct csv_rules *rules, struct byte_view record, uint32_t *ret_ends,
                        int64_t capacity);

/* The fastest one that this machine has (core/cpu.h). All of them give the same. */
csv_cut *csv_cut_best(void);

/* The fields wanted of any record, quotes undone; what cannot be a view of the record is put into
 * scratch. Stores at most `capacity` and returns how many there are, or -1 with an error. */
int64_t csv_fields(const struct csv_rules *rules, struct byte_view record, struct scratch *scratch,
                   struct byte_view *fields, int64_t capacity, const char **ret_problem);

#endif
