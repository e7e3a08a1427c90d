/* named_columns.h - the parameter `columns` of sources whose data says what columns it has: names,
 * or column to {default_value: VALUE}, which stands for null. */
#ifndef SOURCE_ROWS_NAMED_COLUMNS_H
#define SOURCE_ROWS_NAMED_COLUMNS_H

#include "plan/stage.h"
#include "spec/column_list.h"

struct named_column {
    char *name;
    const struct spec_value *at;    /* where it is named; NULL: the stage takes all there are */
    const struct spec_value *entry; /* what stands beside it; NULL: nothing */
};

struct named_columns {
    struct named_column *columns;
    uint32_t count;
};

/* The columns that the stage wants of those that there are, each once and in the order written.
 * Complains. Close is called either way. */
tundish_status named_columns_open(const struct stage_config *config, const char *const *known,
                                  size_t known_count, struct named_columns *ret_columns);
void named_columns_close(struct named_columns *columns);

/* ... that it cannot be read: `obstacle` is a sentence without its end. */
tundish_status named_column_refuse(const struct stage_config *config,
                                   const struct named_column *column, const char *obstacle);

/* Its default_value as a value of the dtype, which the caller frees; NULL: it has none. */
tundish_status named_column_fallback(const struct stage_config *config,
                                     const struct named_column *column, tundish_dtype dtype,
                                     void **ret_value);

#endif
