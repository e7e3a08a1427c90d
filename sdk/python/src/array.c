/* array.c - the buffer protocol over a batch's memory.
 *
 * This is the only type that consumers see memory through: numpy's arrays, memoryviews and capsules
 * all lead back to an Array and so to its lease. Nobody has to know of leases but this file and
 * dlpack.c. */
#include "array.h"

#include "dlpack.h"

struct array {
    PyObject_HEAD struct lease *lease;
    const void *data;
    tundish_dtype dtype;
    uint32_t rank;
    Py_ssize_t value_bytes, byte_count;
    /* In the object, as a Py_buffer points to them for as long as it keeps the object. */
    Py_ssize_t dims[TUNDISH_RANK_MAX], strides[TUNDISH_RANK_MAX];
};

/* As the struct module has it; bfloat16, which it does not know, as its bits. */
static const char *const formats[] = {
    [TUNDISH_BOOL] = "?",    [TUNDISH_UINT8] = "B",    [TUNDISH_INT8] = "b",
    [TUNDISH_UINT16] = "H",  [TUNDISH_INT16] = "h",    [TUNDISH_UINT32] = "I",
    [TUNDISH_INT32] = "i",   [TUNDISH_UINT64] = "Q",   [TUNDISH_INT64] = "q",
    [TUNDISH_FLOAT16] = "e", [TUNDISH_BFLOAT16] = "H", [TUNDISH_FLOAT32] = "f",
    [TUNDISH_FLOAT64] = "d",
};

PyObject *
array_new(PyObject *type, struct lease *lease, const void *data, const struct array_shape *shape)
{
    struct array *array = object_new(type);

    if (array == NULL)
        return NULL;
    lease_hold(lease);
    array->lease = lease;
    array->data = data;
    array->dtype = shape->dtype;
    array->rank = shape->rank;
    array->value_bytes = array->byte_count = (Py_ssize_t)tundish_dtype_bytes(shape->dtype);
    for (uint32_t i = shape->rank; i-- > 0;) {
        array->dims[i] = (Py_ssize_t)shape->dims[i];
        array->strides[i] = array->byte_count;
        array->byte_count *= array->dims[i];
    }
    return (PyObject *)array;
}

/* A copy, so that dlpack.c does not depend on how an Array is laid out. */
void
array_look(PyObject *self, struct array_view *ret_view)
{
    const struct array *array = (const struct array *)(void *)self;

    *ret_view = (struct array_view){
        .lease = array->lease,
        .data = array->data,
        .byte_count = (size_t)array->byte_count,
        .shape = { .dtype = array->dtype, .rank = array->rank },
    };
    for (uint32_t i = 0; i < array->rank; i++)
        ret_view->shape.dims[i] = array->dims[i];
}

int
array_size(void)
{
    return (int)sizeof(struct array);
}

/* An Array refers to no other object, so the garbage collector need not know of it: its type is
 * without Py_TPFLAGS_HAVE_GC, which makes it cheaper to create. */
void
array_dealloc(PyObject *self)
{
    lease_drop(((struct array *)(void *)self)->lease);
    object_free(self);
}

static int
array_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    struct array *array = (struct array *)(void *)self;

    if ((flags & PyBUF_WRITABLE) != 0) {
        view->obj = NULL;
        PyErr_SetString(PyExc_BufferError,
                        "a batch's arrays are read-only: copy what is to change");
        return -1;
    }
    /* A consumer that asks for no shape takes the bytes. */
    *view = (Py_buffer){
        .buf = (void *)(uintptr_t)array->data,
        .obj = Py_NewRef(self),
        .len = array->byte_count,
        .itemsize = array->value_bytes,
        .readonly = 1,
        .ndim = (flags & PyBUF_ND) != 0 ? (int)array->rank : 1,
        .format = (flags & PyBUF_FORMAT) != 0 ? (char *)(uintptr_t)formats[array->dtype] : NULL,
        .shape = (flags & PyBUF_ND) != 0 ? array->dims : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? array->strides : NULL,
    };
    return 0;
}

PyObject *
array_get_shape(PyObject *self, void *closure)
{
    const struct array *array = (const struct array *)(void *)self;
    PyObject *shape = PyTuple_New((Py_ssize_t)array->rank);

    (void)closure;
    for (uint32_t i = 0; shape != NULL && i < array->rank; i++) {
        PyObject *dim = PyLong_FromSsize_t(array->dims[i]);

        if (dim == NULL || PyTuple_SetItem(shape, (Py_ssize_t)i, dim) != 0)
            Py_CLEAR(shape);
    }
    return shape;
}

PyObject *
array_get_dtype(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(tundish_dtype_name(((struct array *)(void *)self)->dtype));
}

PyObject *
array_get_bytes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSsize_t(((struct array *)(void *)self)->byte_count);
}

/* numpy.asarray(array), through tundish.dtypes: numpy is asked for here alone. */
static PyObject *
array_to_numpy(PyObject *self, PyObject *arguments, PyObject *names)
{
    static char *keywords[] = { "dtype", "copy", NULL };
    PyObject *dtype = Py_None, *copy = Py_None, *module, *made;

    if (!PyArg_ParseTupleAndKeywords(arguments, names, "|OO", keywords, &dtype, &copy))
        return NULL;
    module = PyImport_ImportModule("tundish.dtypes");
    if (module == NULL)
        return NULL;
    made = PyObject_CallMethod(module, "numpy_array", "OOO", self, dtype, copy);
    Py_DECREF(module);
    return made;
}

static PyMethodDef methods[] = {
    METHOD("__array__", array_to_numpy, METH_VARARGS | METH_KEYWORDS,
           "A numpy array: a read-only view, unless dtype or copy ask for a copy."),
    METHOD("__dlpack__", dlpack_capsule, METH_VARARGS | METH_KEYWORDS,
           "A DLPack capsule: versioned and flagged read-only if max_version is (1, 0) or more."),
    METHOD("__dlpack_device__", dlpack_device, METH_NOARGS, "(1, 0): the CPU."),
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef attributes[] = {
    { "shape", array_get_shape, NULL, "The dimensions, a tuple of int.", NULL },
    { "dtype", array_get_dtype, NULL, "The name of the type of the values, as \"int64\".", NULL },
    { "nbytes", array_get_bytes, NULL, "The size in bytes.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

PyObject *
array_type(PyObject *module)
{
    static PyType_Slot slots[] = {
        SLOT(Py_tp_dealloc, array_dealloc),
        SLOT(Py_bf_getbuffer, array_get_buffer),
        { Py_tp_methods, methods },
        { Py_tp_getset, attributes },
        { Py_tp_doc, (void *)(uintptr_t) "A read-only view of a batch's memory, in row-major "
                                         "order. It keeps the batch for as long as it lives." },
        { 0, NULL },
    };
    static PyType_Spec spec = {
        .name = "tundish._tundish.Array",
        .basicsize = sizeof(struct array),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };

    return PyType_FromModuleAndSpec(module, &spec, NULL);
}
