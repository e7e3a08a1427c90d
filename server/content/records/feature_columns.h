/* feature_columns.h - what parse_example and decode_json have in common: all but the records' form.
 */
#ifndef CONTENT_RECORDS_FEATURE_COLUMNS_H
#define CONTENT_RECORDS_FEATURE_COLUMNS_H

#include "content/records/example.h"
#include "content/records/features.h"

struct feature_columns {
    uint32_t serialized; /* input column */
    bool is_batch;       /* the serialized column has a dimension: parse_example, not _single */
    struct feature_list list;
    uint32_t *outputs;     /* of each feature: its output column */
    uint32_t *values;      /* of each feature: its values in the parser */
    uint32_t **partitions; /* of each feature: its partitions' values */
    uint32_t parser_count;
    struct example_parser *parser;
};

/* Fills the values as example_parse does, which is one. */
typedef void feature_parse(const struct example_parser *parser, const struct example_input *input,
                           struct frame *frame, struct example_values *values);

tundish_status feature_columns_open(struct feature_columns *columns,
                                    const struct stage_config *config, struct schema *ret_schema,
                                    bool *ret_batch_wide);
void feature_columns_apply(const struct feature_columns *columns, const struct frame *input,
                           struct frame *output, feature_parse *parse);
void feature_columns_close(struct feature_columns *columns);

#endif
