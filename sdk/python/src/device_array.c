/* device_array.c - what a library on the GPU asks of an array. */
#include "device_array.h"

#include <stdio.h>

#include "array.h"
#include "dlpack.h"
#include "raise.h"

/* numpy's letters for kinds of values; 0: bfloat16, which it does not know. */
static const char letters[] = {
    [TUNDISH_BOOL] = 'b',    [TUNDISH_UINT8] = 'u',  [TUNDISH_INT8] = 'i',
    [TUNDISH_UINT16] = 'u',  [TUNDISH_INT16] = 'i',  [TUNDISH_UINT32] = 'u',
    [TUNDISH_INT32] = 'i',   [TUNDISH_UINT64] = 'u', [TUNDISH_INT64] = 'i',
    [TUNDISH_FLOAT16] = 'f', [TUNDISH_BFLOAT16] = 0, [TUNDISH_FLOAT32] = 'f',
    [TUNDISH_FLOAT64] = 'f',
};

static const char remedy[] = "take it with torch.from_dlpack, jax.dlpack.from_dlpack or "
                             "cupy.from_dlpack, or open the reader without device=";

static int
device_of(PyObject *self)
{
    struct array_view view;

    array_look(self, &view);
    return source_device(lease_source(view.lease));
}

static PyObject *
get_device(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromFormat("cuda:%d", device_of(self));
}

/* The interface tells of one stream only, so the default one waits for the batch, on which the
 * consumer's then waits. It has no end of the use either: before the memory is used again, the
 * library waits for the whole device. */
static PyObject *
get_interface(PyObject *self, void *closure)
{
    struct array_view view;
    char type[16];
    tundish_status status;
    size_t bytes;
    PyObject *shape;

    array_look(self, &view);
    bytes = tundish_dtype_bytes(view.shape.dtype);
    if (letters[view.shape.dtype] == 0) {
        PyErr_SetString(PyExc_AttributeError,
                        "the CUDA array interface has no bfloat16: take the array by DLPack");
        return NULL;
    }
    status = lease_wait(view.lease, NULL);
    if (status != TUNDISH_OK)
        return raise_status_text(status, source_text(lease_source(view.lease), status));
    lease_used(view.lease, TUNDISH_CUDA_ANY_STREAM);
    shape = array_get_shape(self, closure);
    if (shape == NULL)
        return NULL;
    snprintf(type, sizeof type, "%c%c%zu", bytes == 1 ? '|' : '<', letters[view.shape.dtype],
             bytes);
    return Py_BuildValue("{s:N,s:s,s:(NO),s:i,s:O,s:i}", "shape", shape, "typestr", type, "data",
                         PyLong_FromVoidPtr((void *)(uintptr_t)view.data), Py_False, "version", 3,
                         "strides", Py_None, "stream", 1);
}

static PyObject *
refuse(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyErr_Format(PyExc_TypeError, "the array is in the memory of cuda:%d: %s", device_of(self),
                 remedy);
    return NULL;
}

static PyObject *
refuse_numpy(PyObject *self, PyObject *arguments, PyObject *names)
{
    (void)names;
    return refuse(self, arguments);
}

/* Explains attributes that arrays of numpy have and these do not. */
static PyObject *
get_attribute(PyObject *self, PyObject *name)
{
    PyObject *value = PyObject_GenericGetAttr(self, name);
    const char *text = NULL;

    if (value != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return value;
    text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (text != NULL && text[0] != '_')
        PyErr_Format(PyExc_AttributeError, "an array in the memory of cuda:%d has no %R: %s",
                     device_of(self), name, remedy);
    return NULL;
}

static Py_ssize_t
length(PyObject *self)
{
    struct array_view view;

    array_look(self, &view);
    if (view.shape.rank > 0)
        return (Py_ssize_t)view.shape.dims[0];
    PyErr_SetString(PyExc_TypeError, "an array without a dimension has no length");
    return -1;
}

static PyObject *
describe(PyObject *self)
{
    PyObject *shape = array_get_shape(self, NULL), *dtype = array_get_dtype(self, NULL);
    PyObject *text = NULL;

    if (shape != NULL && dtype != NULL)
        text = PyUnicode_FromFormat("<tundish.DeviceArray %U%R on cuda:%d>", dtype, shape,
                                    device_of(self));
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    return text;
}

static PyMethodDef methods[] = {
    METHOD("__array__", refuse_numpy, METH_VARARGS | METH_KEYWORDS,
           "Raises TypeError: numpy does not reach the memory of a GPU."),
    METHOD("__dlpack__", dlpack_capsule, METH_VARARGS | METH_KEYWORDS,
           "A DLPack capsule. The consumer's stream waits for the batch, not the program."),
    METHOD("__dlpack_device__", dlpack_device, METH_NOARGS, "(2, N): CUDA's device N."),
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef attributes[] = {
    { "shape", array_get_shape, NULL, "The dimensions, a tuple of int.", NULL },
    { "dtype", array_get_dtype, NULL, "The name of the type of the values, as \"int64\".", NULL },
    { "nbytes", array_get_bytes, NULL, "The size in bytes.", NULL },
    { "device", get_device, NULL, "As \"cuda:0\".", NULL },
    { "__cuda_array_interface__", get_interface, NULL, "Version 3.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

PyObject *
device_array_type(PyObject *module)
{
    static PyType_Slot slots[] = {
        SLOT(Py_tp_dealloc, array_dealloc),
        SLOT(Py_tp_getattro, get_attribute),
        SLOT(Py_tp_repr, describe),
        SLOT(Py_sq_length, length),
        SLOT(Py_mp_length, length),
        SLOT(Py_mp_subscript, refuse),
        { Py_tp_methods, methods },
        { Py_tp_getset, attributes },
        { Py_tp_doc, (void *)(uintptr_t) "A view of a batch's memory on a GPU, in row-major order. "
                                         "It keeps the batch for as long as it lives." },
        { 0, NULL },
    };
    PyType_Spec spec = {
        .name = "tundish._tundish.DeviceArray",
        .basicsize = array_size(),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };

    return PyType_FromModuleAndSpec(module, &spec, NULL);
}
