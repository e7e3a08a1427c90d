/* transform_type.c - a pipeline file that is open for its content stages.
 *
 * Threads share it. A transformer serves one call at a time, so each call takes one that is idle or
 * opens another; there are as many as calls ran at once. The list of the idle ones has no lock of
 * its own: it is changed only with the GIL. */
#include <stdlib.h>

#include "transform.h"

static tundish_transformer *
transform_take(struct transform *transform)
{
    tundish_transformer *transformer = NULL;
    tundish_status status = TUNDISH_OK;

    /* Room to give it back, so that giving back cannot fail. */
    if (transform->lent_count + transform->idle_count == transform->idle_room) {
        size_t room = (size_t)transform->idle_room * 2 + 4;
        void *idle = realloc(transform->idle, room * sizeof(void *));

        if (idle == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        transform->idle = idle;
        transform->idle_room = (Py_ssize_t)room;
    }
    if (transform->idle_count > 0)
        transformer = transform->idle[--transform->idle_count];
    else
        status = tundish_transformer_open(transform->handle, &transformer);
    if (status != TUNDISH_OK) {
        transform_fail(status);
        return NULL;
    }
    transform->lent_count++;
    return transformer;
}

void
transform_give(struct transform *transform, tundish_transformer *transformer)
{
    transform->lent_count--;
    transform->idle[transform->idle_count++] = transformer;
}

static PyObject *
transform_new(PyTypeObject *type, PyObject *arguments, PyObject *unused)
{
    tundish_transform_options options = TUNDISH_TRANSFORM_OPTIONS_INIT;
    struct transform *transform;
    tundish_transform *handle = NULL;
    PyThreadState *released;
    tundish_status status;
    const char *path;

    (void)unused;
    if (!PyArg_ParseTuple(arguments, "szzzzz", &path, &options.stream, &options.until,
                          &options.root, &options.analysis, &options.cache))
        return NULL;
    released = PyEval_SaveThread();
    status = tundish_transform_open(path, &options, &handle);
    PyEval_RestoreThread(released);
    if (status != TUNDISH_OK)
        return transform_fail(status);
    transform = object_new((PyObject *)(void *)type);
    if (transform == NULL)
        tundish_transform_close(handle);
    else
        transform->handle = handle;
    return (PyObject *)transform;
}

/* No result is left: each holds the transform. */
static void
transform_close(PyObject *self)
{
    struct transform *transform = (struct transform *)self;

    for (Py_ssize_t i = 0; i < transform->idle_count; i++)
        tundish_transformer_close(transform->idle[i]);
    free(transform->idle);
    tundish_transform_close(transform->handle);
    object_free(self);
}

/* Transform what went in, and make a result of what comes out. */
static PyObject *
run(struct transform *transform, const struct transform_input *input)
{
    const struct transform_types *types = PyType_GetModuleState(Py_TYPE((PyObject *)transform));
    tundish_transformer *transformer = types == NULL ? NULL : transform_take(transform);
    PyThreadState *released;
    tundish_status status;

    if (transformer == NULL)
        return NULL;
    released = PyEval_SaveThread();
    status = input->records != NULL
                 ? tundish_transform_records(transformer, input->records, input->row_count)
                 : tundish_transform_rows(transformer, input->columns, input->column_count,
                                          input->row_count);
    PyEval_RestoreThread(released);
    if (status != TUNDISH_OK) {
        transform_fail(status);
        transform_give(transform, transformer);
        return NULL;
    }
    return transform_result_new(types, transform, transformer, input);
}

static PyObject *
transform_records(PyObject *self, PyObject *records)
{
    struct transform_input input = { 0 };
    PyObject *result = NULL;

    if (transform_input_records(&input, records))
        result = run((struct transform *)self, &input);
    transform_input_close(&input);
    return result;
}

static PyObject *
transform_rows(PyObject *self, PyObject *arguments)
{
    struct transform *transform = (struct transform *)self;
    struct transform_input input = { 0 };
    PyObject *columns, *result = NULL;
    Py_ssize_t row_count;

    if (!PyArg_ParseTuple(arguments, "On", &columns, &row_count))
        return NULL;
    if (transform_input_columns(&input, tundish_transform_inputs(transform->handle), columns,
                                row_count))
        result = run(transform, &input);
    transform_input_close(&input);
    return result;
}

static PyObject *
describe_column(const tundish_column_spec *spec)
{
    PyObject *shape = PyTuple_New((Py_ssize_t)spec->rank);

    for (uint32_t k = 0; shape != NULL && k < spec->rank; k++) {
        PyObject *size = PyLong_FromLongLong(spec->shape[k]);

        if (size == NULL || PyTuple_SetItem(shape, (Py_ssize_t)k, size) != 0)
            Py_CLEAR(shape);
    }
    return shape == NULL ? NULL
                         : Py_BuildValue("(sssNI)", spec->name, tundish_dtype_name(spec->dtype),
                                         transform_kind_name(spec->kind), shape, spec->ragged_rank);
}

static PyObject *
describe(const tundish_spec *spec)
{
    PyObject *columns = PyTuple_New((Py_ssize_t)spec->column_count);

    for (uint32_t i = 0; columns != NULL && i < spec->column_count; i++) {
        PyObject *column = describe_column(tundish_column_spec_at(spec, i));

        if (column == NULL || PyTuple_SetItem(columns, (Py_ssize_t)i, column) != 0)
            Py_CLEAR(columns);
    }
    return columns;
}

static PyObject *
transform_inputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    return describe(tundish_transform_inputs(((struct transform *)self)->handle));
}

static PyObject *
transform_outputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    return describe(tundish_transform_outputs(((struct transform *)self)->handle));
}

PyObject *
transform_type(PyObject *module)
{
    static PyMethodDef methods[] = {
        METHOD("records", transform_records, METH_O, "records(sequence of bytes or str) -> Result"),
        METHOD("rows", transform_rows, METH_VARARGS,
               "rows([(values, offsets, counts), ...], row_count) -> Result"),
        METHOD("inputs", transform_inputs, METH_NOARGS,
               "inputs() -> ((name, dtype, kind, shape, ragged_rank), ...)"),
        METHOD("outputs", transform_outputs, METH_NOARGS, "outputs() -> as inputs()"),
        { 0 },
    };
    PyType_Slot slots[] = {
        SLOT(Py_tp_new, transform_new),
        SLOT(Py_tp_dealloc, transform_close),
        { Py_tp_methods, methods },
        { 0, NULL },
    };
    PyType_Spec spec = {
        .name = "tundish._transform.Transform",
        .basicsize = sizeof(struct transform),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = slots,
    };

    return PyType_FromModuleAndSpec(module, &spec, NULL);
}
