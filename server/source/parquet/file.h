/* file.h - a Parquet file of a session: the columns that are wanted of it, and its row groups. */
#ifndef SOURCE_PARQUET_FILE_H
#define SOURCE_PARQUET_FILE_H

#include "source/parquet/footer.h"

struct parquet_taken;
struct row_group;
struct source_file;

/* A column as a stage wants it, of every file. */
struct parquet_wanted {
    char *name;
    tundish_dtype dtype;
    bool is_list;
    char meaning[48];
    void *fallback; /* a value of the dtype that stands for null, or NULL */
};

struct parquet_columns {
    uint32_t count;
    struct parquet_wanted *columns;
};

void parquet_columns_close(struct parquet_columns *columns); /* accepts zeros */

struct parquet_file {
    struct parquet_footer footer;
    const struct parquet_columns *columns;
    uint32_t *leaves;             /* of the columns */
    struct row_group **groups;    /* those in memory; the cache's (row_groups.h) */
    struct parquet_taken **taken; /* of each row group, or NULL; the cache's, too */
    _Atomic bool *are_there;      /* of each: is it among them? */
    _Atomic bool is_seen;         /* a step had rows of it */
};

/* Reads exactly that number of bytes of a file. */
struct parquet_input {
    tundish_status (*read)(void *context, void *to, size_t bytes, uint64_t offset);
    void *context;
    uint64_t file_bytes;
};

/* parquet_input.read for an open file; `context` points to its descriptor. */
tundish_status parquet_read_descriptor(void *context, void *to, size_t bytes, uint64_t offset);

/* Read a file's footer. Fails without naming the file, also where a column is not there or
 * not as wanted. `columns` must stay. */
tundish_status parquet_file_open(const struct parquet_input *input,
                                 const struct parquet_columns *columns,
                                 struct parquet_file **ret_file);
void parquet_file_close(struct parquet_file *file); /* accepts NULL; no row group is in memory */

/* The footer alone, with the leaves that are chosen. */
tundish_status parquet_footer_load(const struct parquet_input *input,
                                   const struct parquet_choice *choice,
                                   struct parquet_footer *ret_footer);

/* The row group that has row `row` of the file, which there is; looked for from `hint` on. */
uint32_t parquet_group_of(const struct parquet_footer *footer, uint64_t row, uint32_t hint);

#endif
