/* array.h - one piece of a batch's memory: the values of a column, its offsets, its indices.
 *
 * Read-only, in row-major order. It holds the batch's lease for as long as it lives, and so does
 * everything that was made of it.
 */
#ifndef PYTHON_ARRAY_H
#define PYTHON_ARRAY_H

#include "python.h"
#include "source_lease.h"

struct array_shape {
    tundish_dtype dtype;
    uint32_t rank;
    int64_t dims[TUNDISH_RANK_MAX];
};

/* Make the type for a module: a new reference. */
PyObject *array_type(PyObject *module);

/* A view of `data`, which lies in the lease's batch. */
PyObject *array_new(PyObject *type, struct lease *lease, const void *data,
                    const struct array_shape *shape);

/* The memory of an Array, here or on a device. The lease is the Array's. */
struct array_view {
    struct lease *lease;
    const void *data;
    size_t byte_count;
    struct array_shape shape;
};

void array_look(PyObject *array, struct array_view *ret_view);

/* Also for the type of arrays on a device, whose objects are the same. */
int array_size(void);
void array_dealloc(PyObject *self);
PyObject *array_get_shape(PyObject *self, void *closure);
PyObject *array_get_dtype(PyObject *self, void *closure);
PyObject *array_get_bytes(PyObject *self, void *closure);

#endif
