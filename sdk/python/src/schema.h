/* schema.h - the columns of a stream, and the Python objects that all of its batches share.
 *
 * It is copied from the SDK's spec, so that a batch can be used after its reader was closed. The
 * objects are numpy's and are made at the first use: a program without numpy never needs them.
 */
#ifndef PYTHON_SCHEMA_H
#define PYTHON_SCHEMA_H

#include <stdbool.h>

#include "python.h"
#include "tundish/tundish.h"

struct batch_column {
    tundish_column_spec spec; /* its name and lists live in the SDK: not used */
    PyObject *name;
    PyObject *numpy_dtype; /* or NULL: not made yet */
    PyObject *shape;       /* the tuple of `dims`, or NULL */
    int64_t dims[TUNDISH_RANK_MAX];
    bool is_slow; /* making its tensor took long: let other threads run meanwhile */
};

struct batch_schema {
    PyObject_HEAD uint32_t count;
    struct batch_column *columns;
    PyObject *names;   /* a tuple */
    PyObject *indices; /* a dict: name -> index */
    PyObject *ndarray; /* numpy.ndarray, or NULL: not imported yet */
    PyObject *array_type;
    bool is_custom; /* the reader widens or converts columns */
};

PyObject *schema_type(PyObject *module);
struct batch_schema *schema_new(PyObject *type, PyObject *array_type, const tundish_spec *spec);

/* The numpy dtype of a column, borrowed; NULL with an exception if numpy is missing. */
PyObject *schema_numpy_dtype(struct batch_schema *schema, uint32_t index);
/* The tuple of a tensor's shape, borrowed. */
/* A new tuple of int. */
PyObject *schema_dims_tuple(const int64_t *dims, uint32_t rank);
/* Is [name] just a numpy view? Else tundish.Batch makes it. */
bool schema_is_plain(const struct batch_schema *schema, uint32_t index);
PyObject *schema_shape(struct batch_column *column, const int64_t *dims);

#endif
