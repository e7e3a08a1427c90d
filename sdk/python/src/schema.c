/* schema.c - columns, and the objects that are made once for them.
 *
 * The names, dtypes and shapes of a batch with forty columns would take longer to make than the
 * arrays. They hardly ever change, so all batches of a reader share them. */
#include "schema.h"

#include <stdlib.h>
#include <string.h>

PyObject *
schema_dims_tuple(const int64_t *dims, uint32_t rank)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)rank);

    for (uint32_t i = 0; tuple != NULL && i < rank; i++) {
        PyObject *dim = PyLong_FromLongLong(dims[i]);

        if (dim == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, dim) != 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static int
take_column(struct batch_schema *schema, uint32_t index, const tundish_column_spec *spec)
{
    struct batch_column *column = &schema->columns[index];
    PyObject *number = PyLong_FromUnsignedLong(index);
    int result = -1;

    column->spec = *spec;
    column->is_slow = true; /* until it was measured */
    /* As the program's literals are: then a dict compares addresses. */
    column->name = PyUnicode_InternFromString(spec->name);
    if (number != NULL && column->name != NULL &&
        PyDict_SetItem(schema->indices, column->name, number) == 0)
        result = PyTuple_SetItem(schema->names, (Py_ssize_t)index, Py_NewRef(column->name));
    Py_XDECREF(number);
    return result;
}

struct batch_schema *
schema_new(PyObject *type, PyObject *array_type, const tundish_spec *spec)
{
    struct batch_schema *schema = object_new(type);

    if (schema == NULL)
        return NULL;
    schema->array_type = Py_NewRef(array_type);
    schema->columns = calloc(spec->column_count + 1, sizeof *schema->columns);
    schema->names = PyTuple_New((Py_ssize_t)spec->column_count);
    schema->indices = PyDict_New();
    if (schema->columns == NULL)
        PyErr_NoMemory();
    if (schema->columns == NULL || schema->names == NULL || schema->indices == NULL) {
        Py_DECREF((PyObject *)schema);
        return NULL;
    }
    schema->count = spec->column_count;
    for (uint32_t i = 0; i < schema->count; i++)
        if (take_column(schema, i, tundish_column_spec_at(spec, i)) != 0) {
            Py_DECREF((PyObject *)schema);
            return NULL;
        }
    return schema;
}

static void
schema_dealloc(PyObject *self)
{
    struct batch_schema *schema = (struct batch_schema *)(void *)self;

    for (uint32_t i = 0; schema->columns != NULL && i < schema->count; i++) {
        Py_XDECREF(schema->columns[i].name);
        Py_XDECREF(schema->columns[i].numpy_dtype);
        Py_XDECREF(schema->columns[i].shape);
    }
    free(schema->columns);
    Py_XDECREF(schema->names);
    Py_XDECREF(schema->indices);
    Py_XDECREF(schema->ndarray);
    Py_XDECREF(schema->array_type);
    object_free(self);
}

PyObject *
schema_numpy_dtype(struct batch_schema *schema, uint32_t index)
{
    struct batch_column *column = &schema->columns[index];
    PyObject *module;

    if (column->numpy_dtype != NULL)
        return column->numpy_dtype;
    module = PyImport_ImportModule("tundish.dtypes");
    if (module == NULL)
        return NULL;
    column->numpy_dtype =
        PyObject_CallMethod(module, "numpy_dtype", "s", tundish_dtype_name(column->spec.dtype));
    Py_DECREF(module);
    if (column->numpy_dtype != NULL && schema->ndarray == NULL) {
        PyObject *numpy = PyImport_ImportModule("numpy");

        schema->ndarray = numpy == NULL ? NULL : PyObject_GetAttrString(numpy, "ndarray");
        Py_XDECREF(numpy);
        if (schema->ndarray == NULL)
            Py_CLEAR(column->numpy_dtype);
    }
    return column->numpy_dtype;
}

bool
schema_is_plain(const struct batch_schema *schema, uint32_t index)
{
    const tundish_column_spec *spec = &schema->columns[index].spec;

    return !schema->is_custom && spec->kind == TUNDISH_DENSE && spec->dtype != TUNDISH_STRING;
}

PyObject *
schema_shape(struct batch_column *column, const int64_t *dims)
{
    size_t bytes = column->spec.rank * sizeof *dims;

    /* Most batches have the shape of the one before. */
    if (column->shape != NULL && memcmp(column->dims, dims, bytes) == 0)
        return column->shape;
    Py_CLEAR(column->shape);
    memcpy(column->dims, dims, bytes);
    column->shape = schema_dims_tuple(dims, column->spec.rank);
    return column->shape;
}

PyObject *
schema_type(PyObject *module)
{
    static PyType_Slot slots[] = {
        SLOT(Py_tp_dealloc, schema_dealloc),
        { Py_tp_doc, (void *)(uintptr_t) "The columns of a stream." },
        { 0, NULL },
    };
    static PyType_Spec spec = {
        .name = "tundish._tundish.Schema",
        .basicsize = sizeof(struct batch_schema),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };

    return PyType_FromModuleAndSpec(module, &spec, NULL);
}
