/* python.h - CPython's stable interface, and what of it every type here needs. */
#ifndef PYTHON_PYTHON_H
#define PYTHON_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

/* ISO C converts no function to void *, which slots are. */
#define SLOT(number, function)                                                                     \
    {                                                                                              \
        number, (void *)(uintptr_t)(function)                                                      \
    }
#define METHOD(name, function, flags, doc)                                                         \
    {                                                                                              \
        name, (PyCFunction)(void (*)(void))(function), flags, doc                                  \
    }

/* A new object of a heap type, all zeros after its head; NULL with an exception. */
static inline void *
object_new(PyObject *type)
{
    return PyType_GenericAlloc((PyTypeObject *)(void *)type, 0);
}

/* The last act of a heap type's dealloc. */
static inline void
object_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);

    release(self);
    Py_DECREF(type);
}

#endif
