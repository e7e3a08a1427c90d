/* tensor_table.h - the columns of from_tensors and from_tensor_slices: one element of whole
 * tensors, or their slices along the first dimension.
 *
 * Words of an element: the slice's number; the distribution, where variables need it
 * (variable_pack).
 */
#ifndef SOURCE_ROWS_TENSOR_TABLE_H
#define SOURCE_ROWS_TENSOR_TABLE_H

#include "order/cardinality.h"
#include "source/rows/tensor_literal.h"
#include "source/source.h"

struct table_column {
    struct tensor tensor;
    const struct spec_value *variable; /* stands for the whole tensor, or NULL */
    bool from_distribution;            /* ... and means something of the distribution */
};

struct tensor_table {
    bool sliced;
    bool needs_distribution;
    int64_t slice_count; /* -1: a variable's, known when an iterator is made */
    uint32_t column_count;
    struct table_column *columns;
    struct schema outer; /* names only: which variables are columns of the outer element */
};

struct tensor_table_state {
    uint64_t next, count, packed;
};

tundish_status tensor_table_open(struct tensor_table *table, const struct stage_config *config,
                                 bool sliced, struct schema *ret_schema);

/* One column of texts, given by one text, a list of them, or a variable. */
tundish_status tensor_table_open_text(struct tensor_table *table, const struct stage_config *config,
                                      const char *name, const struct spec_value *value,
                                      struct schema *ret_schema);
void tensor_table_close(struct tensor_table *table);

/* As in struct order_ops and source_ops, the table being the node's state. */
tundish_status tensor_table_iterate(struct order_iterator *iterator);
enum order_result tensor_table_next(struct order_iterator *iterator, uint64_t *words, size_t max,
                                    size_t *ret_count);
void tensor_table_iterate_close(struct order_iterator *iterator);
tundish_status tensor_table_count(struct order_iterator *iterator, uint64_t *ret_count);
tundish_status tensor_table_at(struct order_iterator *iterator, const uint64_t *indices,
                               size_t index_count, uint64_t *words);
enum order_result tensor_table_pass_over(struct order_iterator *iterator, uint64_t count,
                                         uint64_t *ret_passed);
uint64_t tensor_table_files_hash(const void *table);
const struct byte_view *tensor_table_texts(const void *table, uint32_t column, int64_t *ret_count);
void tensor_table_tell(const void *table, struct source_files *files, const uint64_t *words,
                       struct whereabouts *ret_where);
tundish_status tensor_table_read(const struct tensor_table *table, const struct source_read *read);

#define TENSOR_TABLE_ORDER(stage)                                                                  \
    {                                                                                              \
        .is_list = true, .name = stage, .state_bytes = sizeof(struct tensor_table_state),          \
        .open = tensor_table_iterate, .next = tensor_table_next,                                   \
        .close = tensor_table_iterate_close, .count = tensor_table_count, .at = tensor_table_at,   \
        .pass_over = tensor_table_pass_over, .cardinality = order_count_source,                    \
    }

#endif
