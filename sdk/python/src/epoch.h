/* epoch.h - one `for` over a reader: the rest of the epoch in which it stands. */
#ifndef PYTHON_EPOCH_H
#define PYTHON_EPOCH_H

#include "python.h"

PyObject *epoch_type(PyObject *module);

/* The loop of this number over a reader. */
PyObject *epoch_new(PyObject *type, PyObject *reader, uint64_t loop);

#endif
