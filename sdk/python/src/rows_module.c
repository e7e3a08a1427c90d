/* rows_module.c - the module tundish._rows: the rows of an Arrow stream, as tundish.rows writes
 * them.
 *
 * It is apart from _tundish because a program that writes rows reads no batches. Streams come from
 * objects of any library, by the PyCapsules of Arrow's interface. */
#include "python.h"

#include <stdio.h>
#include <stdlib.h>

#include "arrow/arrow_rows.h"
#include "core/status.h"

struct fallback {
    struct byte_view text; /* of a string; into `bytes` */
    uint64_t number;       /* of anything else, in its first bytes */
    PyObject *bytes;
};

struct table_rows {
    PyObject_HEAD struct arrow_rows rows;
    struct fallback *fallbacks;
    Py_ssize_t count;
};

static PyObject *
fail(tundish_status status)
{
    PyErr_SetString(status == TUNDISH_E_MEMORY ? PyExc_MemoryError : PyExc_ValueError,
                    tnd_error_text());
    return NULL;
}

static int
refuse(const char *name, const char *why)
{
    PyErr_Format(PyExc_ValueError, "column %s: %s", name, why);
    return -1;
}

/* How the spec has this field's shape: () is a value, (None) a list, (N) N values. */
static bool
has_shape(const struct arrow_field *field, PyObject *shape)
{
    PyObject *size;

    if (field->shape == ARROW_SCALARS || PyTuple_Size(shape) != 1)
        return field->shape == ARROW_SCALARS && PyTuple_Size(shape) == 0;
    size = PyTuple_GetItem(shape, 0);
    if (field->shape == ARROW_FIXED_LISTS)
        return size != Py_None && PyLong_AsLongLong(size) == (long long)field->list_size;
    return size == Py_None;
}

static int
check_field(const struct arrow_field *field, const char *name, const char *dtype, PyObject *shape)
{
    char why[128];

    if (field == NULL)
        return refuse(name, "the table has no such column");
    if (field->obstacle[0] != '\0') {
        snprintf(why, sizeof why, "the table's cannot be written: %s", field->obstacle);
        return refuse(name, why);
    }
    if (strcmp(tnd_dtype_name(field->dtype), dtype) != 0) {
        snprintf(why, sizeof why, "the table's is %s, not %.20s", tnd_dtype_name(field->dtype),
                 dtype);
        return refuse(name, why);
    }
    if (has_shape(field, shape))
        return 0;
    if (PyErr_Occurred())
        return -1;
    if (field->shape == ARROW_FIXED_LISTS)
        snprintf(why, sizeof why, "the table's is lists of %u: its shape is [%u]", field->list_size,
                 field->list_size);
    else
        snprintf(why, sizeof why, "the table's is %s: its shape is %s",
                 field->shape == ARROW_SCALARS ? "single values" : "lists",
                 field->shape == ARROW_SCALARS ? "[]" : "[null]");
    return refuse(name, why);
}

/* The value that stands for null: its bytes, or None. */
static int
take_fallback(struct fallback *fallback, tundish_dtype dtype, PyObject *given,
              const void **ret_fallback)
{
    char *data;
    Py_ssize_t bytes;

    *ret_fallback = NULL;
    if (given == Py_None)
        return 0;
    if (PyBytes_AsStringAndSize(given, &data, &bytes) != 0)
        return -1;
    fallback->bytes = Py_NewRef(given);
    fallback->text = (struct byte_view){ (const uint8_t *)data, (uint64_t)bytes };
    if (dtype == TUNDISH_STRING) {
        *ret_fallback = &fallback->text;
        return 0;
    }
    if ((size_t)bytes != tnd_dtype_bytes(dtype)) {
        PyErr_SetString(PyExc_ValueError, "a default value has the wrong size");
        return -1;
    }
    memcpy(&fallback->number, data, (size_t)bytes);
    *ret_fallback = &fallback->number;
    return 0;
}

/* (name, dtype, shape, default) */
static int
take_column(struct table_rows *self, PyObject *column, struct fallback *fallback)
{
    const struct arrow_field *field;
    const char *name, *dtype;
    PyObject *shape, *given;
    const void *value;
    tundish_status status;

    if (!PyArg_ParseTuple(column, "ssO!O", &name, &dtype, &PyTuple_Type, &shape, &given))
        return -1;
    field = arrow_rows_find(&self->rows, name);
    if (check_field(field, name, dtype, shape) != 0 ||
        take_fallback(fallback, field->dtype, given, &value) != 0)
        return -1;
    status = arrow_rows_take(&self->rows, field, value);
    if (status != TUNDISH_OK)
        fail(status);
    return status == TUNDISH_OK ? 0 : -1;
}

static int
take_columns(struct table_rows *self, PyObject *columns)
{
    Py_ssize_t count = PyList_Size(columns);

    self->fallbacks = calloc((size_t)count + 1, sizeof *self->fallbacks);
    if (self->fallbacks == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    self->count = count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (take_column(self, PyList_GetItem(columns, i), &self->fallbacks[i]) != 0)
            return -1;
    return 0;
}

static PyObject *
table_rows_new(PyTypeObject *type, PyObject *arguments, PyObject *names)
{
    PyObject *capsule, *columns;
    struct ArrowArrayStream *stream;
    struct table_rows *self;
    tundish_status status;

    if (names != NULL || !PyArg_ParseTuple(arguments, "OO!", &capsule, &PyList_Type, &columns))
        return NULL;
    stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    self = stream == NULL ? NULL : object_new((PyObject *)(void *)type);
    if (self == NULL)
        return NULL;
    status = arrow_rows_open(&self->rows, stream);
    if (status != TUNDISH_OK)
        fail(status);
    if (status != TUNDISH_OK || take_columns(self, columns) != 0) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    return (PyObject *)self;
}

static void
table_rows_free(PyObject *object)
{
    struct table_rows *self = (struct table_rows *)object;

    arrow_rows_close(&self->rows);
    for (Py_ssize_t i = 0; i < self->count; i++)
        Py_XDECREF(self->fallbacks[i].bytes);
    free(self->fallbacks);
    object_free(object);
}

/* Set the exception of the first null that nothing stands for; are there none? */
static bool
check_nulls(const struct arrow_rows *rows)
{
    const uint32_t *nulls = (const uint32_t *)(const void *)rows->nulls.data;
    int64_t row = 0;

    while (row < rows->row_count && nulls[row] == 0)
        row++;
    if (row == rows->row_count)
        return true;
    PyErr_Format(PyExc_ValueError,
                 "column %s: row %llu of the table is null and has no default value",
                 rows->columns[nulls[row] - 1].field->name,
                 (unsigned long long)rows->given + (unsigned long long)row);
    return false;
}

/* The next rows, as bytes. The stream may call Python itself. */
static PyObject *
table_rows_next(PyObject *object)
{
    struct arrow_rows *rows = &((struct table_rows *)object)->rows;
    PyThreadState *released = PyEval_SaveThread();
    tundish_status status = arrow_rows_next(rows, INT64_MAX);

    PyEval_RestoreThread(released);
    if (status == TUNDISH_END)
        return NULL;
    if (status != TUNDISH_OK)
        return fail(status);
    if (!check_nulls(rows))
        return NULL;
    return PyBytes_FromStringAndSize((const char *)rows->bytes.data, (Py_ssize_t)rows->byte_count);
}

static PyType_Slot table_rows_slots[] = {
    SLOT(Py_tp_new, table_rows_new),
    SLOT(Py_tp_dealloc, table_rows_free),
    SLOT(Py_tp_iter, PyObject_SelfIter),
    SLOT(Py_tp_iternext, table_rows_next),
    { Py_tp_doc, "The rows of an Arrow stream, some at a time as bytes." },
    { 0, NULL },
};

static PyType_Spec table_rows_spec = {
    .name = "tundish._rows.TableRows",
    .basicsize = sizeof(struct table_rows),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = table_rows_slots,
};

static int
add_type(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &table_rows_spec, NULL);
    int result = type == NULL ? -1 : PyModule_AddType(module, (PyTypeObject *)(void *)type);

    Py_XDECREF(type);
    return result;
}

static PyModuleDef_Slot module_slots[] = {
    SLOT(Py_mod_exec, add_type),
    { 0, NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tundish._rows",
    .m_doc = "The rows of Arrow streams. Use tundish.rows instead.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__rows(void);

PyMODINIT_FUNC
PyInit__rows(void)
{
    return PyModuleDef_Init(&definition);
}
