/* epoch.c - the iterator of a `for`.
 *
 * It is an object of its own, not the reader, so that a loop that was left and is taken up again
 * after another was begun says so, instead of taking the other's batches. */
#include "epoch.h"

#include <stdbool.h>

#include "raise.h"
#include "reader.h"

struct epoch {
    PyObject_HEAD PyObject *reader;
    uint64_t loop;
    bool is_over;
};

PyObject *
epoch_new(PyObject *type, PyObject *reader, uint64_t loop)
{
    struct epoch *epoch = object_new(type);

    if (epoch == NULL)
        return NULL;
    epoch->reader = Py_NewRef(reader);
    epoch->loop = loop;
    return (PyObject *)epoch;
}

/* NULL without an exception: the epoch is over. None: nothing came in time. */
static PyObject *
epoch_take(PyObject *self, int64_t timeout_ns)
{
    struct epoch *epoch = (struct epoch *)(void *)self;
    PyObject *batch = NULL;
    tundish_status status;

    if (epoch->is_over)
        return NULL;
    if (epoch->loop != reader_loop(epoch->reader))
        return raise_misuse("another loop over this reader was begun, which ended this one: open a "
                            "reader for each loop, with a session or a group of its own");
    if (reader_take(epoch->reader, timeout_ns, &status, &batch) != 0)
        return NULL;
    if (status == TUNDISH_OK)
        return batch;
    if (status == TUNDISH_E_TIMEOUT)
        return Py_NewRef(Py_None);
    epoch->is_over = status == TUNDISH_END || status == TUNDISH_END_OF_STREAM;
    if (status == TUNDISH_END_OF_STREAM && reader_warn_of_nothing(epoch->reader) != 0)
        return NULL;
    return epoch->is_over ? NULL : reader_raise(epoch->reader, status);
}

static PyObject *
epoch_next(PyObject *self)
{
    return epoch_take(self, TUNDISH_FOREVER);
}

/* For `async for`, which waits for the descriptor itself. */
static PyObject *
epoch_poll(PyObject *self, PyObject *unused)
{
    PyObject *batch = epoch_take(self, 0);

    (void)unused;
    if (batch == NULL && !PyErr_Occurred())
        PyErr_SetNone(PyExc_StopIteration);
    return batch;
}

static PyMethodDef methods[] = {
    METHOD("poll", epoch_poll, METH_NOARGS, "The next Batch if it is there, else None."),
    { NULL, NULL, 0, NULL },
};

/* There is no tp_clear: a cycle leads through attributes of the reader, which its class clears. */
static int
epoch_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((struct epoch *)(void *)self)->reader);
    return 0;
}

static void
epoch_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(((struct epoch *)(void *)self)->reader);
    object_free(self);
}

PyObject *
epoch_type(PyObject *module)
{
    static PyType_Slot slots[] = {
        SLOT(Py_tp_dealloc, epoch_dealloc),
        SLOT(Py_tp_traverse, epoch_traverse),
        SLOT(Py_tp_iter, PyObject_SelfIter),
        SLOT(Py_tp_iternext, epoch_next),
        { Py_tp_methods, methods },
        { Py_tp_doc, (void *)(uintptr_t) "One loop over a reader: the rest of its epoch." },
        { 0, NULL },
    };
    static PyType_Spec spec = {
        .name = "tundish._tundish.Epoch",
        .basicsize = sizeof(struct epoch),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };

    return PyType_FromModuleAndSpec(module, &spec, NULL);
}
