/* device_array.h - one piece of a batch's memory on a GPU: an Array of addresses that nothing here
 * follows. Other libraries take it by DLPack, or by the CUDA array interface.
 */
#ifndef PYTHON_DEVICE_ARRAY_H
#define PYTHON_DEVICE_ARRAY_H

#include "python.h"

/* Make the type for a module: a new reference. array_new makes its objects. */
PyObject *device_array_type(PyObject *module);

#endif
