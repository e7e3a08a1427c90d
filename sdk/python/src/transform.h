/* transform.h - tundish._transform: libtundish_transform for tundish.transform.
 *
 * Everything here is used with the GIL held, except where a call says that it releases it. The pool
 * of transformers needs no lock of its own, so that a fork cannot leave one locked. */
#ifndef PYTHON_TRANSFORM_H
#define PYTHON_TRANSFORM_H

#include <stdbool.h>

#include "python.h"
#include "tundish/tundish_transform.h"

/* The state of the module. */
struct transform_types {
    PyObject *transform, *result, *part;
};

/* An open pipeline file, and the transformers that no call or result uses. */
struct transform {
    PyObject_HEAD tundish_transform *handle;
    tundish_transformer **idle;
    Py_ssize_t idle_count, idle_room;
    Py_ssize_t lent_count; /* transformers that calls and results use */
};

/* Another call may use the transformer again. */
void transform_give(struct transform *transform, tundish_transformer *transformer);

/* Set the exception of a status, with this thread's last text of libtundish_transform. Returns
 * NULL. */
PyObject *transform_fail(tundish_status status);

const char *transform_kind_name(tundish_kind kind);

/* The input: pointers into objects that `kept` holds. */
struct transform_input {
    PyObject *kept;         /* a list */
    tundish_bytes *records; /* NULL: columns */
    tundish_transform_column *columns;
    size_t row_count;
    Py_buffer *buffers;
    Py_ssize_t buffer_count;
    tundish_bytes **texts; /* of each column of strings */
    uint32_t column_count;
};

/* From a sequence of bytes and str. False with an exception. */
bool transform_input_records(struct transform_input *input, PyObject *records);

/* From a list of (values, offsets, counts), a tuple of buffers or None for each input column. */
bool transform_input_columns(struct transform_input *input, const tundish_spec *spec,
                             PyObject *columns, Py_ssize_t row_count);
/* Is this an address in a column? */
bool transform_input_holds(const struct transform_input *input, const void *address);
void transform_input_close(struct transform_input *input);

/* The output of a call: takes the transformer, and gives it back when no part is left. */
PyObject *transform_result_new(const struct transform_types *types, struct transform *transform,
                               tundish_transformer *transformer,
                               const struct transform_input *input);

/* Make the types for a module: new references. */
PyObject *transform_type(PyObject *module);
PyObject *transform_result_type(PyObject *module);
PyObject *transform_part_type(PyObject *module);

#endif
