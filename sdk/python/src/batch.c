/* batch.c - columns of a batch by name.
 *
 * Work for every column of every batch is here. Whatever depends on a column's kind, on
 * widening or on a framework is in Python (tundish/batch.py), which this calls by name. */
#include "batch.h"

#include <stdlib.h>
#include <string.h>
#include <structmember.h>

#include "array.h"
#include "clock.h"
#include "dlpack.h"
#include "raise.h"

/* Letting other threads run costs this one up to a turn of theirs, so a column that was ready as
 * fast as this is fetched without. */
#define QUICK_NS INT64_C(20000)

struct batch {
    PyObject_HEAD PyObject *reader;
    struct batch_schema *schema;
    struct lease *lease; /* NULL: released */
    PyObject **values;   /* by column: what [name] gave, or NULL */
    /* Copied from the SDK's batch, since they can be asked for after the release. */
    unsigned long long sequence, epoch, step, visits;
    long long shard;
    char shard_end;
};

/* tundish.Batch is a class of Python, which could be called; without a lease it would be no batch.
 */
static PyObject *
refuse_new(PyTypeObject *type, PyObject *arguments, PyObject *names)
{
    (void)arguments;
    (void)names;
    PyErr_Format(PyExc_TypeError, "%R: batches come from a reader", type);
    return NULL;
}

PyObject *
batch_new(PyObject *type, PyObject *reader, struct batch_schema *schema, struct lease *lease)
{
    const tundish_batch *lent = lease_facts(lease);
    struct batch *batch = object_new(type);

    if (batch == NULL) {
        lease_drop(lease);
        return NULL;
    }
    batch->lease = lease;
    batch->reader = Py_NewRef(reader);
    batch->schema = (struct batch_schema *)(void *)Py_NewRef((PyObject *)schema);
    batch->sequence = lent->sequence;
    batch->epoch = lent->epoch;
    batch->step = lent->step;
    batch->visits = lent->visits;
    batch->shard = lent->shard;
    batch->shard_end = (lent->flags & TUNDISH_BATCH_SHARD_END) != 0;
    batch->values = calloc(schema->count + 1, sizeof *batch->values);
    if (batch->values == NULL) {
        Py_DECREF((PyObject *)batch);
        return PyErr_NoMemory();
    }
    return (PyObject *)batch;
}

/* The schema is not cleared: it leads to no batch, and the other functions need it. */
static int
batch_clear(PyObject *self)
{
    struct batch *batch = (struct batch *)(void *)self;

    for (uint32_t i = 0; batch->values != NULL && i < batch->schema->count; i++)
        Py_CLEAR(batch->values[i]);
    Py_CLEAR(batch->reader);
    return 0;
}

/* A reader can lead to its batches (an attribute that the program set), and a value to the batch:
 * such a cycle would hold a slot for ever. */
static int
batch_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct batch *batch = (struct batch *)(void *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(batch->reader);
    for (uint32_t i = 0; batch->values != NULL && i < batch->schema->count; i++)
        Py_VISIT(batch->values[i]);
    return 0;
}

static void
batch_dealloc(PyObject *self)
{
    struct batch *batch = (struct batch *)(void *)self;

    PyObject_GC_UnTrack(self);
    batch_clear(self);
    lease_drop(batch->lease);
    free(batch->values);
    Py_XDECREF((PyObject *)batch->schema);
    object_free(self);
}

/* The column's index, or -1 with an exception. */
static Py_ssize_t
find_column(PyObject *self, PyObject *name)
{
    struct batch *batch = (struct batch *)(void *)self;
    PyObject *number = PyDict_GetItemWithError(batch->schema->indices, name);

    if (number != NULL)
        return PyLong_AsSsize_t(number);
    /* tundish.Batch raises, and names the nearest column. */
    if (!PyErr_Occurred())
        Py_XDECREF(PyObject_CallMethod(self, "__missing__", "O", name));
    if (!PyErr_Occurred())
        PyErr_SetObject(PyExc_KeyError, name);
    return -1;
}

/* A tensor, and its lease with one count more for the caller to drop: another thread may release
 * the batch. NULL with an exception. */
static struct lease *
take_tensor(PyObject *self, uint32_t index, tundish_tensor *ret_tensor)
{
    struct batch *batch = (struct batch *)(void *)self;
    struct batch_column *column = &batch->schema->columns[index];
    struct lease *lease = batch->lease;
    tundish_status status;
    int64_t begun_ns;

    if (lease == NULL) {
        raise_misuse("the batch was released: use its columns before that");
        return NULL;
    }
    if (!lease_is_ours(lease)) {
        raise_misuse("the batch belongs to the process that took it: open a reader in this one");
        return NULL;
    }
    /* Before the GIL may be let go. */
    lease_hold(lease);
    begun_ns = clock_ns();
    if (column->is_slow) {
        Py_BEGIN_ALLOW_THREADS;
        status = lease_tensor(lease, index, ret_tensor);
        Py_END_ALLOW_THREADS;
    } else {
        status = lease_tensor(lease, index, ret_tensor);
    }
    column->is_slow = clock_ns() - begun_ns > QUICK_NS;
    if (status == TUNDISH_OK)
        return lease;
    raise_status_text(status, source_text(lease_source(lease), status));
    lease_drop(lease);
    return NULL;
}

static PyObject *
list_array(PyObject *self, struct lease *lease, const int64_t *numbers, uint64_t count)
{
    struct array_shape shape = { TUNDISH_INT64, 1, { (int64_t)count } };

    return array_new(((struct batch *)(void *)self)->schema->array_type, lease, numbers, &shape);
}

/* The shape of a column's values. Those of a ragged or sparse column are in a row; of a ragged one
 * each has the dimensions after the ragged ones. */
static void
values_shape(const tundish_tensor *tensor, struct array_shape *ret_shape)
{
    uint32_t outer = tensor->kind == TUNDISH_DENSE    ? 0
                     : tensor->kind == TUNDISH_SPARSE ? tensor->rank - 1
                                                      : tensor->ragged_rank;
    struct array_shape shape = { .dtype = tensor->dtype, .rank = tensor->rank - outer };
    int64_t inner = 1;

    memcpy(shape.dims, tensor->shape + outer, shape.rank * sizeof shape.dims[0]);
    for (uint32_t i = 1; i < shape.rank; i++)
        inner *= shape.dims[i];
    if (outer > 0)
        shape.dims[0] = inner == 0 ? 0 : (int64_t)tensor->element_count / inner;
    *ret_shape = shape;
}

/* The values of a column: of a string column its bytes. */
static PyObject *
values_array(PyObject *self, struct lease *lease, const tundish_tensor *tensor)
{
    struct array_shape shape = { TUNDISH_UINT8, 1, { (int64_t)tensor->data_bytes } };

    if (tensor->dtype != TUNDISH_STRING)
        values_shape(tensor, &shape);
    return array_new(((struct batch *)(void *)self)->schema->array_type, lease, tensor->data,
                     &shape);
}

/* numpy.ndarray(shape, dtype, array): cheaper than asarray, and it gives bfloat16 its dtype, which
 * the buffer protocol has no format for. */
static PyObject *
numpy_view(PyObject *self, uint32_t index)
{
    struct batch_schema *schema = ((struct batch *)(void *)self)->schema;
    PyObject *dtype = schema_numpy_dtype(schema, index), *array, *shape, *view = NULL;
    tundish_tensor tensor;
    struct lease *lease;

    if (dtype == NULL)
        return NULL;
    lease = take_tensor(self, index, &tensor);
    if (lease == NULL)
        return NULL;
    array = values_array(self, lease, &tensor);
    shape = schema_shape(&schema->columns[index], tensor.shape);
    if (array != NULL && shape != NULL)
        view = PyObject_CallFunctionObjArgs(schema->ndarray, shape, dtype, array, NULL);
    Py_XDECREF(array);
    lease_drop(lease);
    return view;
}

static PyObject *
batch_subscript(PyObject *self, PyObject *name)
{
    struct batch *batch = (struct batch *)(void *)self;
    Py_ssize_t index = find_column(self, name);
    PyObject *value;

    if (index < 0)
        return NULL;
    if (batch->lease == NULL)
        return raise_misuse("the batch was released: use its columns before that");
    if (batch->values[index] != NULL)
        return Py_NewRef(batch->values[index]);
    if (schema_is_plain(batch->schema, (uint32_t)index))
        value = numpy_view(self, (uint32_t)index);
    else
        value = PyObject_CallMethod(self, "_made", "O", name);
    /* Another thread may have made it meanwhile, or released the batch. */
    if (value != NULL && batch->lease != NULL && batch->values[index] == NULL)
        batch->values[index] = Py_NewRef(value);
    return value;
}

/* A copy of a column of dense numbers, as a capsule of DLPack. */
static PyObject *
copy_column(PyObject *self, PyObject *name)
{
    Py_ssize_t index = find_column(self, name);
    struct array_view view = { 0 };
    tundish_tensor tensor;
    PyObject *capsule;

    view.lease = index < 0 ? NULL : take_tensor(self, (uint32_t)index, &tensor);
    if (view.lease == NULL)
        return NULL;
    values_shape(&tensor, &view.shape);
    view.data = tensor.data;
    view.byte_count = (size_t)tensor.data_bytes;
    capsule = dlpack_copy(&view);
    lease_drop(view.lease);
    return capsule;
}

/* One call for all, as a call for each takes longer than most copies. */
static PyObject *
batch_copies(PyObject *self, PyObject *names)
{
    Py_ssize_t count = PyTuple_Size(names);
    PyObject *list = count < 0 ? NULL : PyList_New(count);

    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *capsule = copy_column(self, PyTuple_GetItem(names, i));

        if (capsule == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, i, capsule);
    }
    return list;
}

static PyObject *
batch_array(PyObject *self, PyObject *name)
{
    Py_ssize_t index = find_column(self, name);
    tundish_tensor tensor;
    struct lease *lease = index < 0 ? NULL : take_tensor(self, (uint32_t)index, &tensor);
    PyObject *array;

    if (lease == NULL)
        return NULL;
    array = values_array(self, lease, &tensor);
    lease_drop(lease);
    return array;
}

static int
append(PyObject *list, PyObject *item)
{
    int result = item == NULL ? -1 : PyList_Append(list, item);

    Py_XDECREF(item);
    return result;
}

static PyObject *
splits_list(PyObject *self, struct lease *lease, const tundish_tensor *tensor)
{
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list != NULL && i < tensor->ragged_rank; i++)
        if (append(list, list_array(self, lease, tensor->row_splits[i],
                                    tensor->row_split_counts[i])) != 0)
            Py_CLEAR(list);
    return list;
}

static PyObject *
indices_array(PyObject *self, struct lease *lease, const tundish_tensor *tensor)
{
    struct array_shape shape = { TUNDISH_INT64,
                                 2,
                                 { (int64_t)tensor->element_count, (int64_t)tensor->rank } };

    return array_new(((struct batch *)(void *)self)->schema->array_type, lease, tensor->indices,
                     &shape);
}

static int
append_strings(PyObject *list, PyObject *self, struct lease *lease, const tundish_tensor *tensor)
{
    struct array_shape shape;

    values_shape(tensor, &shape);
    if (append(list, list_array(self, lease, tensor->string_offsets, tensor->element_count + 1)) !=
        0)
        return -1;
    return append(list, schema_dims_tuple(shape.dims, shape.rank));
}

/* All that a tensor consists of, in the order of the documentation. */
static PyObject *
parts_list(PyObject *self, struct lease *lease, const tundish_tensor *tensor)
{
    PyObject *list = PyList_New(0);
    int result = list == NULL ? -1 : append(list, values_array(self, lease, tensor));

    if (result == 0 && tensor->dtype == TUNDISH_STRING)
        result = append_strings(list, self, lease, tensor);
    if (result == 0 && tensor->kind == TUNDISH_RAGGED)
        result = append(list, splits_list(self, lease, tensor));
    if (result == 0 && tensor->kind == TUNDISH_SPARSE) {
        result = append(list, indices_array(self, lease, tensor));
        if (result == 0)
            result = append(list, schema_dims_tuple(tensor->shape, tensor->rank));
    }
    if (result != 0)
        Py_CLEAR(list);
    return list;
}

static PyObject *
batch_parts(PyObject *self, PyObject *name)
{
    Py_ssize_t index = find_column(self, name);
    tundish_tensor tensor;
    struct lease *lease = index < 0 ? NULL : take_tensor(self, (uint32_t)index, &tensor);
    PyObject *list, *parts;

    if (lease == NULL)
        return NULL;
    list = parts_list(self, lease, &tensor);
    lease_drop(lease);
    parts = list == NULL ? NULL : PyList_AsTuple(list);
    Py_XDECREF(list);
    return parts;
}

static PyObject *
batch_view(PyObject *self, PyObject *name)
{
    Py_ssize_t index = find_column(self, name);

    return index < 0 ? NULL : numpy_view(self, (uint32_t)index);
}

/* tundish_tensor_widen into a writable buffer of exactly the size needed. */
static PyObject *
batch_widen_into(PyObject *self, PyObject *arguments)
{
    PyObject *name, *target;
    tundish_tensor tensor;
    struct lease *lease;
    Py_ssize_t index;
    Py_buffer buffer;
    size_t bytes = 0;
    tundish_status status;

    if (!PyArg_ParseTuple(arguments, "OO", &name, &target))
        return NULL;
    index = find_column(self, name);
    if (index < 0 || PyObject_GetBuffer(target, &buffer, PyBUF_WRITABLE) != 0)
        return NULL;
    lease = take_tensor(self, (uint32_t)index, &tensor);
    if (lease == NULL) {
        PyBuffer_Release(&buffer);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = tundish_tensor_widen(lease_batch(lease), (uint32_t)index, buffer.buf,
                                  (size_t)buffer.len, &bytes);
    Py_END_ALLOW_THREADS;
    lease_drop(lease);
    PyBuffer_Release(&buffer);
    return status == TUNDISH_OK ? Py_NewRef(Py_None) : raise_status(status);
}

static PyObject *
batch_release(PyObject *self, PyObject *unused)
{
    struct batch *batch = (struct batch *)(void *)self;
    struct lease *lease = batch->lease;

    (void)unused;
    /* First: what a value does as it goes may come back here. */
    batch->lease = NULL;
    for (uint32_t i = 0; i < batch->schema->count; i++)
        Py_CLEAR(batch->values[i]);
    lease_drop(lease);
    return Py_NewRef(Py_None);
}

static Py_ssize_t
batch_length(PyObject *self)
{
    return (Py_ssize_t)((struct batch *)(void *)self)->schema->count;
}

static PyObject *
batch_iterate(PyObject *self)
{
    return PyObject_GetIter(((struct batch *)(void *)self)->schema->names);
}

static int
batch_contains(PyObject *self, PyObject *name)
{
    return PyDict_Contains(((struct batch *)(void *)self)->schema->indices, name);
}

static PyMethodDef methods[] = {
    METHOD("array", batch_array, METH_O, "array(name) -> the column's values, an Array."),
    METHOD(
        "parts", batch_parts, METH_O,
        "parts(name) -> all Arrays of a column, and shapes where the Arrays do not show them.\n\n"
        "dense   (values,)\n"
        "ragged  (values, [splits, ...])     splits int64, outermost first\n"
        "sparse  (values, indices, shape)    indices int64 [count, rank], the dense shape\n\n"
        "Of strings the values are three items: bytes uint8, offsets int64, and their shape."),
    METHOD("_copies", batch_copies, METH_O,
           "_copies(names) -> capsules of DLPack with copies of columns of dense numbers."),
    METHOD("_view", batch_view, METH_O, "The numpy view of a dense column."),
    METHOD("_widen_into", batch_widen_into, METH_VARARGS,
           "Write a column as deliver.widen says into a writable buffer of its size."),
    METHOD("release", batch_release, METH_NOARGS,
           "Give the batch back, unless arrays made of it are still in use: then they keep it."),
    { NULL, NULL, 0, NULL },
};

static PyMemberDef members[] = {
    { "reader", T_OBJECT, offsetof(struct batch, reader), READONLY, "The reader it came from." },
    { "sequence", T_ULONGLONG, offsetof(struct batch, sequence), READONLY,
      "Number of batches that the reader returned before." },
    { "epoch", T_ULONGLONG, offsetof(struct batch, epoch), READONLY, "The epoch, from 0." },
    { "step", T_ULONGLONG, offsetof(struct batch, step), READONLY,
      "The step of the epoch, from 0: the same in every replica." },
    { "shard", T_LONGLONG, offsetof(struct batch, shard), READONLY,
      "The evaluation's shard, or -1." },
    { "shard_end", T_BOOL, offsetof(struct batch, shard_end), READONLY,
      "Whether it is the last batch of its evaluation's shard." },
    { "visits", T_ULONGLONG, offsetof(struct batch, visits), READONLY,
      "Of a queue: the readers that died while they held it." },
    { NULL, 0, 0, 0, NULL },
};

PyObject *
batch_type(PyObject *module)
{
    static PyType_Slot slots[] = {
        SLOT(Py_tp_new, refuse_new),
        SLOT(Py_tp_dealloc, batch_dealloc),
        SLOT(Py_tp_traverse, batch_traverse),
        SLOT(Py_tp_clear, batch_clear),
        SLOT(Py_mp_subscript, batch_subscript),
        SLOT(Py_mp_length, batch_length),
        SLOT(Py_sq_contains, batch_contains),
        SLOT(Py_tp_iter, batch_iterate),
        { Py_tp_methods, methods },
        { Py_tp_members, members },
        { 0, NULL },
    };
    static PyType_Spec spec = {
        .name = "tundish._tundish.Batch",
        .basicsize = sizeof(struct batch),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };

    return PyType_FromModuleAndSpec(module, &spec, NULL);
}
