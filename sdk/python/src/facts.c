/* facts.c - answers of the SDK as Python's strings, dicts and tuples.
 *
 * The named tuples that a program sees are made of them in tundish/reader.py, where their
 * documentation is. */

#include <stdlib.h>

#include "raise.h"
#include "reader.h"
#include "tundish/tundish.h"

/* The SDK says how long the token is if it does not fit: that of a queue names the batches on their
 * way, and has no limit that is worth its memory. */
PyObject *
facts_place(PyObject *self, void *closure)
{
    struct source *source;
    size_t capacity = 0, bytes = 0;
    char *token = NULL;
    tundish_status status = TUNDISH_E_ARGUMENT;
    PyObject *place = NULL;

    (void)closure;
    if (reader_enter(self) == NULL)
        return NULL;
    source = reader_source(self);
    Py_BEGIN_ALLOW_THREADS;
    for (bytes = 512; status == TUNDISH_E_ARGUMENT && bytes > capacity;) {
        char *grown = realloc(token, bytes);

        if (grown == NULL)
            break;
        token = grown;
        capacity = bytes;
        status = source_place(source, token, capacity, &bytes);
    }
    Py_END_ALLOW_THREADS;
    reader_leave(self);
    if (status == TUNDISH_OK)
        place = PyUnicode_FromString(token);
    else if (bytes > capacity)
        PyErr_NoMemory();
    else
        raise_status_text(status, source_text(source, status));
    free(token);
    return place;
}

PyObject *
facts_info(PyObject *self, void *closure)
{
    tundish_reader *from = reader_enter(self);
    tundish_info info = { .size = sizeof info };
    tundish_status status;
    PyObject *facts;

    (void)closure;
    if (from == NULL)
        return NULL;
    status = tundish_get_info(from, &info);
    if (source_device(reader_source(self)) >= 0)
        info.held_count = source_held(reader_source(self));
    facts =
        status != TUNDISH_OK
            ? raise_status(status)
            : Py_BuildValue("{s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:K,s:K,s:L}", "replica", info.replica,
                            "replica_count", info.replica_count, "first_replica",
                            info.first_replica, "total_replica_count", info.total_replica_count,
                            "slot_count", info.slot_count, "held_count", info.held_count, "stream",
                            info.stream, "first_epoch", (unsigned long long)info.first_epoch,
                            "first_step", (unsigned long long)info.first_step, "epoch_steps",
                            (long long)info.epoch_steps);
    reader_leave(self);
    return facts;
}

/* A GPU's batches are read ahead of the program: what was taken says nothing of it. */
PyObject *
facts_standing(PyObject *self, PyObject *seconds)
{
    double timeout = PyFloat_AsDouble(seconds);
    tundish_reader *from = PyErr_Occurred() != NULL ? NULL : reader_enter(self);
    tundish_standing standing = { .size = sizeof standing };
    tundish_status status = TUNDISH_OK;
    PyObject *facts;

    if (from == NULL)
        return NULL;
    if (source_device(reader_source(self)) < 0) {
        Py_BEGIN_ALLOW_THREADS;
        status = tundish_get_standing(from, (int64_t)(timeout * 1e9), &standing);
        Py_END_ALLOW_THREADS;
    }
    facts = status != TUNDISH_OK ? raise_status(status)
            : !standing.is_known
                ? Py_BuildValue("(OOO)", Py_False, Py_None, Py_None)
                : Py_BuildValue("(N(KK)(KK))", PyBool_FromLong(standing.is_together),
                                (unsigned long long)standing.lowest_epoch,
                                (unsigned long long)standing.lowest_step,
                                (unsigned long long)standing.highest_epoch,
                                (unsigned long long)standing.highest_step);
    reader_leave(self);
    return facts;
}

static PyObject *
number_list(const double *numbers, uint32_t count)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);

    for (uint32_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyFloat_FromDouble(numbers[i]);

        if (number == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, number) != 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *
column_facts(const tundish_column_spec *spec)
{
    static const char *const kinds[] = {
        [TUNDISH_DENSE] = "dense", [TUNDISH_RAGGED] = "ragged", [TUNDISH_SPARSE] = "sparse"
    };
    PyObject *shape = PyTuple_New((Py_ssize_t)spec->rank);

    for (uint32_t i = 0; shape != NULL && i < spec->rank; i++) {
        /* -1, which a batch decides, is None as elsewhere in Python. */
        PyObject *dim =
            spec->shape[i] < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(spec->shape[i]);

        if (dim == NULL || PyTuple_SetItem(shape, (Py_ssize_t)i, dim) != 0)
            Py_CLEAR(shape);
    }
    if (shape == NULL)
        return NULL;
    return Py_BuildValue("(sNsIzNNz)", tundish_dtype_name(spec->dtype), shape, kinds[spec->kind],
                         spec->ragged_rank,
                         spec->widen_dtype == 0 ? NULL : tundish_dtype_name(spec->widen_dtype),
                         number_list(spec->widen_scale, spec->widen_scale_count),
                         number_list(spec->widen_offset, spec->widen_offset_count),
                         spec->widen_layout == TUNDISH_NCHW ? "NCHW" : NULL);
}

PyObject *
facts_columns(PyObject *self, PyObject *unused)
{
    tundish_reader *from = reader_enter(self);
    const tundish_spec *spec;
    tundish_status status;
    PyObject *columns;

    (void)unused;
    if (from == NULL)
        return NULL;
    status = tundish_element_spec(from, &spec);
    columns = status == TUNDISH_OK ? PyDict_New() : raise_status(status);
    for (uint32_t i = 0; columns != NULL && i < spec->column_count; i++) {
        const tundish_column_spec *column = tundish_column_spec_at(spec, i);
        PyObject *facts = column_facts(column);

        if (facts == NULL || PyDict_SetItemString(columns, column->name, facts) != 0)
            Py_CLEAR(columns);
        Py_XDECREF(facts);
    }
    reader_leave(self);
    return columns;
}
