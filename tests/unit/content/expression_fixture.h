/* expression_fixture.h - columns made by hand, and expressions run over them. */
#ifndef EXPRESSION_FIXTURE_H
#define EXPRESSION_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "column/flush.h"
#include "content/expression/expression.h"

enum { TABLE_COLUMNS = 16 };

/* A frame in the making: add columns, run, look at `result`. */
struct table {
    int64_t count;
    uint32_t depth;
    struct schema schema;
    struct column columns[TABLE_COLUMNS];
    struct scratch *scratch;
    struct frame_errors errors;
    struct spec_errors complaints;

    struct expression *expression; /* the last one: strings may lie in it */
    struct column_spec spec;       /* of the result; name NULL */
    struct column result;
    bool batch_wide;
    char *text; /* the complaints, or the sentence about the first bad element */
};

static inline struct table *
table_open(int64_t count)
{
    struct table *table = calloc(1, sizeof *table);

    table->count = count;
    table->scratch = scratch_open();
    table->text = calloc(1, 1);
    return table;
}

static inline void
table_close(struct table *table)
{
    expression_close(table->expression);
    schema_close(&table->schema);
    scratch_close(table->scratch);
    spec_errors_close(&table->complaints);
    free(table->text);
    free(table);
}

/* A dense column of dims (-1 ends them); the values are not copied. */
static inline struct column *
table_add(struct table *table, const char *name, tundish_dtype dtype, const void *values,
          const int64_t *dims)
{
    struct column_spec *spec = schema_add(&table->schema, name, dtype);
    struct column *column = &table->columns[table->schema.count - 1];

    assert_true(table->schema.count <= TABLE_COLUMNS);
    *column = (struct column){ .count = table->count, .value_count = table->count };
    column->values = values;
    for (; dims != NULL && dims[spec->rank] >= 0; spec->rank++) {
        spec->shape[spec->rank] = dims[spec->rank];
        column->levels[spec->rank].uniform = dims[spec->rank];
        column->value_count *= dims[spec->rank];
        column->level_count++;
    }
    return column;
}

#define table_scalars(table, name, dtype, ...)                                                     \
    table_add(table, name, dtype, (const void *)(__VA_ARGS__), NULL)

/* A column of vectors of different length, as `kind` (dense: its dimension is unknown). */
static inline struct column *
table_lists(struct table *table, const char *name, tundish_dtype dtype, tundish_kind kind,
            const void *values, const int64_t *splits)
{
    struct column *column = table_add(table, name, dtype, values, NULL);
    struct column_spec *spec = &table->schema.columns[table->schema.count - 1];

    spec->kind = kind;
    spec->rank = 1;
    spec->shape[0] = -1;
    spec->ragged_rank = 0;
    column->level_count = 1;
    column->levels[0] = (struct level){ .uniform = -1, .splits = splits };
    column->value_count = splits[table->count];
    return column;
}

/* Open and run. Returns the status of the first thing that went wrong, its sentence in text. */
static inline tundish_status
table_run(struct table *table, const char *text)
{
    struct expression_config config = { .text = text,
                                        .line = 1,
                                        .column = 1,
                                        .input = &table->schema,
                                        .depth = table->depth,
                                        .errors = &table->complaints };
    struct frame input = { .count = table->count,
                           .column_count = table->schema.count,
                           .columns = table->columns,
                           .schema = &table->schema,
                           .scratch = table->scratch,
                           .errors = &table->errors };
    struct frame output = { .count = table->count,
                            .column_count = 1,
                            .columns = &table->result,
                            .scratch = table->scratch,
                            .errors = &table->errors };
    uint64_t mode;

    expression_close(table->expression);
    table->expression = NULL;
    spec_errors_close(&table->complaints);
    table->complaints = (struct spec_errors){ .path = "test" };
    table->errors = (struct frame_errors){ 0 };
    free(table->text);
    if (expression_open(&config, &table->expression) != TUNDISH_OK) {
        assert_true(table->complaints.count > 0);
        table->text = strdup(table->complaints.list[0].text);
        return TUNDISH_E_PIPELINE;
    }
    table->spec = *expression_spec(table->expression);
    table->batch_wide = expression_is_batch_wide(table->expression);
    mode = flush_begin();
    expression_apply(table->expression, &input, &output, 0);
    flush_end(mode);
    table->text = strdup(table->errors.text);
    return table->errors.status;
}

#endif
