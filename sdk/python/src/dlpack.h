/* dlpack.h - an array, in the host's memory or a GPU's, as a DLPack capsule: the versioned kind,
 * and the legacy kind that tells nothing of being read-only. */
#ifndef PYTHON_DLPACK_H
#define PYTHON_DLPACK_H

#include "array.h"

/* __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None) */
PyObject *dlpack_capsule(PyObject *array, PyObject *arguments, PyObject *names);
/* A copy of host memory, as a capsule of the older kind. */
PyObject *dlpack_copy(const struct array_view *view);
/* __dlpack_device__() */
PyObject *dlpack_device(PyObject *array, PyObject *unused);

#endif
