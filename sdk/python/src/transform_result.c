/* transform_result.c - the columns of one call, and the bytes that NumPy sees.
 *
 * A result keeps the transformer whose memory the columns lie in. A part, of which there are
 * several for strings and lists, keeps the result, and every array keeps its part. A program that
 * keeps many results would thus keep as many transformers, which hold far more than their columns,
 * so later results are copied. */
#include <stdlib.h>
#include <string.h>

#include "transform.h"

enum { LENT_MOST = 8, ALIGNMENT = 64 };

struct result {
    PyObject_HEAD struct transform *transform;
    tundish_transformer *transformer; /* NULL: all columns are in `copy` */
    uint8_t *copy;                    /* or NULL */
    tundish_tensor *tensors;
    uint32_t count;
};

struct part {
    PyObject_HEAD PyObject *result;
    const void *data;
    Py_ssize_t bytes;
};

static size_t
aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Append `bytes` to the copy; without a copy yet only count them. */
static const void *
append(uint8_t *copy, size_t *used, const void *data, size_t bytes)
{
    uint8_t *to = copy != NULL ? copy + *used : NULL;

    if (to != NULL && bytes > 0)
        memcpy(to, data, bytes);
    *used += aligned(bytes);
    return to;
}

/* Copy all that a tensor points to behind `copy`, and let it point there. */
static void
move_tensor(uint8_t *copy, size_t *used, tundish_tensor *tensor)
{
    size_t word = sizeof(int64_t), rank = tensor->rank;
    tundish_tensor moved = *tensor;
    const void *splits, *counts;
    const int64_t **to = NULL;

    moved.shape = append(copy, used, tensor->shape, rank * word);
    moved.data = append(copy, used, tensor->data, tensor->data_bytes);
    if (tensor->string_offsets != NULL)
        moved.string_offsets =
            append(copy, used, tensor->string_offsets, (tensor->element_count + 1) * word);
    if (tensor->indices != NULL)
        moved.indices = append(copy, used, tensor->indices, tensor->element_count * rank * word);
    if (tensor->row_splits != NULL) {
        counts = append(copy, used, tensor->row_split_counts, tensor->ragged_rank * word);
        splits = append(copy, used, tensor->row_splits, tensor->ragged_rank * sizeof(void *));
        to = (const int64_t **)(uintptr_t)splits;
        for (uint32_t k = 0; k < tensor->ragged_rank; k++) {
            const void *split =
                append(copy, used, tensor->row_splits[k], tensor->row_split_counts[k] * word);

            if (to != NULL)
                to[k] = split;
        }
        moved.row_split_counts = counts;
        moved.row_splits = (const int64_t *const *)to;
    }
    if (copy != NULL)
        *tensor = moved;
}

/* Copy tensors, all or those that lie in the input. False: no memory. */
static bool
copy_tensors(struct result *result, const struct transform_input *input, bool all)
{
    size_t used = 0;

    for (uint32_t i = 0; i < result->count; i++)
        if (all || transform_input_holds(input, result->tensors[i].data))
            move_tensor(NULL, &used, &result->tensors[i]);
    if (used == 0)
        return true;
    result->copy = aligned_alloc(ALIGNMENT, used);
    if (result->copy == NULL)
        return false;
    used = 0;
    for (uint32_t i = 0; i < result->count; i++)
        if (all || transform_input_holds(input, result->tensors[i].data))
            move_tensor(result->copy, &used, &result->tensors[i]);
    return true;
}

/* All that needs no GIL. E_MEMORY: ours has run out. */
static tundish_status
fill(struct result *result, const struct transform_input *input, bool copies_all)
{
    result->tensors = calloc((size_t)result->count + 1, sizeof *result->tensors);
    if (result->tensors == NULL)
        return TUNDISH_E_MEMORY;
    for (uint32_t i = 0; i < result->count; i++) {
        const tundish_tensor *tensor;
        tundish_status status = tundish_transform_tensor(result->transformer, i, &tensor);

        if (status != TUNDISH_OK)
            return status;
        result->tensors[i] = *tensor;
    }
    return copy_tensors(result, input, copies_all) ? TUNDISH_OK : TUNDISH_E_MEMORY;
}

static void
give_back(struct result *result)
{
    if (result->transformer != NULL)
        transform_give(result->transform, result->transformer);
    result->transformer = NULL;
}

PyObject *
transform_result_new(const struct transform_types *types, struct transform *transform,
                     tundish_transformer *transformer, const struct transform_input *input)
{
    struct result *result = object_new(types->result);
    bool copies_all = transform->lent_count > LENT_MOST;
    PyThreadState *released;
    tundish_status status;

    if (result == NULL) {
        transform_give(transform, transformer);
        return NULL;
    }
    Py_INCREF((PyObject *)transform);
    result->transform = transform;
    result->transformer = transformer;
    result->count = tundish_transform_outputs(transform->handle)->column_count;
    released = PyEval_SaveThread();
    status = fill(result, input, copies_all);
    PyEval_RestoreThread(released);
    if (status != TUNDISH_OK) {
        if (status == TUNDISH_E_MEMORY)
            PyErr_NoMemory();
        else
            transform_fail(status);
        Py_DECREF((PyObject *)result);
        return NULL;
    }
    if (copies_all)
        give_back(result);
    return (PyObject *)result;
}

static void
result_close(PyObject *self)
{
    struct result *result = (struct result *)self;

    give_back(result);
    free(result->copy);
    free(result->tensors);
    Py_DECREF((PyObject *)result->transform);
    object_free(self);
}

static PyObject *
new_part(struct result *result, const void *data, uint64_t bytes)
{
    const struct transform_types *types = PyType_GetModuleState(Py_TYPE((PyObject *)result));
    struct part *part = types == NULL ? NULL : object_new(types->part);

    if (part == NULL)
        return NULL;
    Py_INCREF((PyObject *)result);
    part->result = (PyObject *)result;
    part->data = data;
    part->bytes = (Py_ssize_t)bytes;
    return (PyObject *)part;
}

/* Append a new reference to a list; false with an exception. */
static bool
put(PyObject *list, PyObject *item)
{
    bool is_put = item != NULL && PyList_Append(list, item) == 0;

    Py_XDECREF(item);
    return is_put;
}

/* Values (strings: bytes, offsets), then row_splits or indices. */
static bool
put_parts(struct result *result, const tundish_tensor *tensor, PyObject *parts)
{
    const uint64_t word = sizeof(int64_t);
    bool is_put = put(parts, new_part(result, tensor->data, tensor->data_bytes));

    if (is_put && tensor->string_offsets != NULL)
        is_put = put(parts,
                     new_part(result, tensor->string_offsets, (tensor->element_count + 1) * word));
    for (uint32_t k = 0; is_put && tensor->row_splits != NULL && k < tensor->ragged_rank; k++)
        is_put =
            put(parts, new_part(result, tensor->row_splits[k], tensor->row_split_counts[k] * word));
    if (is_put && tensor->kind == TUNDISH_SPARSE)
        is_put = put(
            parts, new_part(result, tensor->indices, tensor->element_count * tensor->rank * word));
    return is_put;
}

/* result.column(index) -> (dtype, kind, shape, parts) */
static PyObject *
result_column(PyObject *self, PyObject *argument)
{
    struct result *result = (struct result *)self;
    size_t index = PyLong_AsSize_t(argument);
    const tundish_tensor *tensor;
    PyObject *shape, *parts;
    bool is_made;

    if (index == (size_t)-1 && PyErr_Occurred() != NULL)
        return NULL;
    if (index >= result->count) {
        PyErr_SetString(PyExc_IndexError, "there is no such column");
        return NULL;
    }
    tensor = &result->tensors[index];
    shape = PyList_New(0);
    parts = PyList_New(0);
    is_made = shape != NULL && parts != NULL && put_parts(result, tensor, parts);
    for (uint32_t k = 0; is_made && k < tensor->rank; k++)
        is_made = put(shape, PyLong_FromLongLong(tensor->shape[k]));
    if (!is_made) {
        Py_XDECREF(shape);
        Py_XDECREF(parts);
        return NULL;
    }
    return Py_BuildValue("(ssNN)", tundish_dtype_name(tensor->dtype),
                         transform_kind_name(tensor->kind), shape, parts);
}

static void
part_close(PyObject *self)
{
    Py_DECREF(((struct part *)self)->result);
    object_free(self);
}

static int
part_buffer(PyObject *self, Py_buffer *view, int flags)
{
    struct part *part = (struct part *)self;

    /* Refuses PyBUF_WRITABLE by itself. */
    return PyBuffer_FillInfo(view, self, (void *)(uintptr_t)part->data, part->bytes, 1, flags);
}

static PyObject *
make_type(PyObject *module, const char *name, int bytes, PyType_Slot *slots)
{
    PyType_Spec spec = {
        .name = name,
        .basicsize = bytes,
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };

    return PyType_FromModuleAndSpec(module, &spec, NULL);
}

PyObject *
transform_result_type(PyObject *module)
{
    static PyMethodDef methods[] = {
        METHOD("column", result_column, METH_O, "column(index) -> (dtype, kind, shape, parts)"),
        { 0 },
    };
    PyType_Slot slots[] = {
        SLOT(Py_tp_dealloc, result_close),
        { Py_tp_methods, methods },
        { 0, NULL },
    };

    return make_type(module, "tundish._transform.Result", sizeof(struct result), slots);
}

PyObject *
transform_part_type(PyObject *module)
{
    PyType_Slot slots[] = {
        SLOT(Py_tp_dealloc, part_close),
        SLOT(Py_bf_getbuffer, part_buffer),
        { 0, NULL },
    };

    return make_type(module, "tundish._transform.Part", sizeof(struct part), slots);
}
