/* column_wise.h - content stages that map each of their columns by itself.
 *
 * The content_ops of such a stage have column_wise_open, column_wise_apply and column_wise_close,
 * and in `columns` a table of these functions. Its state begins with struct column_wise.
 */
#ifndef CONTENT_COLUMN_WISE_H
#define CONTENT_COLUMN_WISE_H

#include "content/content.h"

struct column_wise {
    struct content_targets targets;
    const struct column_wise_ops *ops;
    uint8_t *own; /* the columns' states, one after the other */
};

/* One column of a frame: `spec` and `from` are the input's, `to` is the output's column `at`. */
struct column_map {
    const void *own;
    const struct frame *input; /* with columns that a parameter names */
    const struct column_spec *spec;
    const struct column *from;
    struct frame *output;
    uint32_t at;
    uint32_t number; /* among the stage's columns */
    struct column *to;
};

struct column_wise_ops {
    size_t own_bytes; /* of the state of each column, zeroed; 0: there is none */
    bool sorts;       /* gives the columns in the order of their names, as tf.Transform does */

    /* Read the stage's parameters. NULL: it has none but `columns` and `output`. */
    tundish_status (*read)(void *state, const struct stage_config *config);

    /* Describe a column that goes out; it is a copy of the one that comes in. See content_ops.open
     * for ret_batch_wide. */
    tundish_status (*describe)(void *state, const struct stage_config *config, void *own,
                               struct column_spec *column, bool *ret_batch_wide);

    void (*map)(const void *state, const struct column_map *map);

    void (*close_own)(void *own); /* NULL: nothing to free. Must accept zeros, as `close` */
    void (*close)(void *state);
};

tundish_status column_wise_open(void *state, const struct stage_config *config,
                                struct schema *ret_schema, bool *ret_batch_wide);
tundish_status column_wise_apply(const void *state, const struct frame *input,
                                 struct frame *output);
void column_wise_close(void *state);

/* Does it map this column of its input? */
bool column_wise_has(const struct column_wise *wise, uint32_t column);

#endif
