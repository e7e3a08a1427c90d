/* signals.h - columns whose last dimension is a signal, which a stage turns into two dimensions. */
#ifndef CONTENT_SOUNDS_SIGNALS_H
#define CONTENT_SOUNDS_SIGNALS_H

#include "column/frame.h"
#include "content/content.h"

/* The two dimensions that a signal of that length becomes (-1: not known yet). False, with a
 * sentence for the row: it is too short, and a row with it is bad. */
typedef bool signals_dims(const void *state, int64_t length, int64_t ret_dims[2],
                          char ret_fault[160]);

/* Refuse a column that is not dense or not of numbers, and set the shape of the result; *batch_wide
 * where the rows of a batch are one signal. */
tundish_status signals_open_column(const struct stage_config *config, const void *state,
                                   signals_dims *dims, struct column_spec *column,
                                   bool *batch_wide);

/* The dimensions of the result; elements whose signals cannot be are rejected. */
void signals_set_dims(const struct column *from, const void *state, signals_dims *dims,
                      struct frame *output, struct column *column);

/* An element's signals: how many there are, and how long each is. */
int64_t signals_of(const struct column *column, int64_t element, int64_t *ret_length);

#endif
