/* batch.h - a batch as Python sees it: columns by name, each made at its first use. */
#ifndef PYTHON_BATCH_H
#define PYTHON_BATCH_H

#include "schema.h"
#include "source_lease.h"

PyObject *batch_type(PyObject *module);

/* A batch of `type` (tundish.Batch), which takes the lease over, also if this fails. */
PyObject *batch_new(PyObject *type, PyObject *reader, struct batch_schema *schema,
                    struct lease *lease);

#endif
