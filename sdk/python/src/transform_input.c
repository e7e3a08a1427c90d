/* transform_input.c - Python's rows as libtundish_transform takes them, checked, without a copy.
 *
 * The memory of the rows is kept until the call is over, since the library reads it without the
 * GIL, while other threads may drop or change what they gave. */
#include <stdlib.h>
#include <string.h>

#include "transform.h"

static bool
fail_text(PyObject *type, const char *format, const char *name)
{
    PyErr_Format(type, format, name);
    return false;
}

/* The bytes of one record; a mutable buffer is copied, since the GIL is released while it is read.
 */
static bool
take_record(PyObject *list, Py_ssize_t i, tundish_bytes *ret_bytes)
{
    PyObject *record = PyList_GetItem(list, i);
    Py_ssize_t size = 0;
    char *bytes = NULL;

    if (PyUnicode_Check(record)) {
        ret_bytes->data = PyUnicode_AsUTF8AndSize(record, &size);
        ret_bytes->size = (size_t)size;
        return ret_bytes->data != NULL;
    }
    if (!PyBytes_Check(record)) {
        if (!PyObject_CheckBuffer(record)) {
            PyErr_Format(PyExc_TypeError, "row %zd is %R, which is neither bytes nor str", i,
                         (PyObject *)Py_TYPE(record));
            return false;
        }
        record = PyBytes_FromObject(record);
        if (record == NULL || PyList_SetItem(list, i, record) != 0)
            return false;
    }
    if (PyBytes_AsStringAndSize(record, &bytes, &size) != 0)
        return false;
    *ret_bytes = (tundish_bytes){ bytes, (size_t)size };
    return true;
}

bool
transform_input_records(struct transform_input *input, PyObject *records)
{
    Py_ssize_t count;

    /* A list of our own, which no other thread changes. */
    input->kept = PySequence_List(records);
    count = input->kept == NULL ? -1 : PyList_Size(input->kept);
    if (count < 0)
        return false;
    input->row_count = (size_t)count;
    input->records = calloc((size_t)count + 1, sizeof *input->records);
    if (input->records == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!take_record(input->kept, i, &input->records[i]))
            return false;
    return true;
}

/* Item k of a column's tuple, or NULL for None: C-contiguous, of words that are aligned. */
static bool
take_buffer(struct transform_input *input, PyObject *column, Py_ssize_t k, size_t word,
            const Py_buffer **ret_buffer)
{
    PyObject *item = PyTuple_GetItem(column, k);
    Py_buffer *buffer = &input->buffers[input->buffer_count];

    *ret_buffer = NULL;
    if (item == NULL || item == Py_None)
        return item != NULL;
    if (PyObject_GetBuffer(item, buffer, PyBUF_C_CONTIGUOUS) != 0)
        return false;
    input->buffer_count++;
    if ((uintptr_t)buffer->buf % word != 0 || (size_t)buffer->len % word != 0)
        return fail_text(PyExc_ValueError, "a column's %s are not aligned", "values");
    *ret_buffer = buffer;
    return true;
}

/* How many values a column has, of its sizes that are known and its counts. */
static bool
count_values(const tundish_column_spec *spec, const Py_buffer *counts, size_t rows,
             size_t *ret_count)
{
    const int64_t *sizes = counts != NULL ? counts->buf : NULL;
    size_t count = rows;

    for (uint32_t k = 0; k < spec->rank; k++) {
        size_t size = (size_t)spec->shape[k], lists = count;

        if (spec->shape[k] >= 0) {
            if (__builtin_mul_overflow(lists, size, &count))
                return fail_text(PyExc_ValueError, "column '%s' is too large", spec->name);
            continue;
        }
        if (k > 0 || sizes == NULL || (size_t)counts->len / sizeof *sizes != rows)
            return fail_text(PyExc_ValueError, "column '%s' has not a count for each row",
                             spec->name);
        count = 0;
        for (size_t i = 0; i < rows; i++)
            if (sizes[i] < 0 || __builtin_add_overflow(count, (size_t)sizes[i], &count))
                return fail_text(PyExc_ValueError, "column '%s' has a bad count", spec->name);
    }
    *ret_count = count;
    return true;
}

/* Strings as bytes and offsets, the form in which columns come out. */
static bool
take_texts(struct transform_input *input, const tundish_column_spec *spec, const Py_buffer *bytes,
           const Py_buffer *offsets, size_t count)
{
    const int64_t *at = offsets != NULL ? offsets->buf : NULL;
    tundish_bytes *texts = calloc(count + 1, sizeof *texts);
    bool is_good = at != NULL && (size_t)offsets->len / sizeof *at == count + 1;

    input->texts[input->column_count] = texts;
    if (texts == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; is_good && i < count; i++) {
        is_good = at[i] >= 0 && at[i] <= at[i + 1] && at[i + 1] <= bytes->len;
        texts[i] = (tundish_bytes){ (const char *)bytes->buf + at[i], (size_t)(at[i + 1] - at[i]) };
    }
    return is_good || fail_text(PyExc_ValueError, "column '%s' has bad offsets", spec->name);
}

static bool
take_column(struct transform_input *input, const tundish_column_spec *spec, PyObject *column)
{
    tundish_transform_column *to = &input->columns[input->column_count];
    size_t word = tundish_dtype_bytes(spec->dtype), count = 0;
    const Py_buffer *values, *offsets, *counts;

    if (!PyTuple_Check(column) || PyTuple_Size(column) != 3)
        return fail_text(PyExc_TypeError, "column '%s' is not a tuple of three", spec->name);
    if (!take_buffer(input, column, 0, word > 0 ? word : 1, &values) ||
        !take_buffer(input, column, 1, sizeof(int64_t), &offsets) ||
        !take_buffer(input, column, 2, sizeof(int64_t), &counts) ||
        !count_values(spec, counts, input->row_count, &count))
        return false;
    if (values == NULL || (word > 0 && (size_t)values->len / word != count))
        return fail_text(PyExc_ValueError, "column '%s' has not as many values as its rows need",
                         spec->name);
    to->counts = counts != NULL ? counts->buf : NULL;
    to->values = values->buf;
    if (word == 0) {
        if (!take_texts(input, spec, values, offsets, count))
            return false;
        to->values = input->texts[input->column_count];
    }
    return true;
}

bool
transform_input_columns(struct transform_input *input, const tundish_spec *spec, PyObject *columns,
                        Py_ssize_t row_count)
{
    enum { BUFFERS = 3 };
    size_t count = spec->column_count;

    if (!PyList_Check(columns) || (size_t)PyList_Size(columns) != count || row_count < 0)
        return fail_text(PyExc_ValueError, "columns is not a list of %s", "all input columns");
    input->kept = PyList_GetSlice(columns, 0, PyList_Size(columns));
    input->row_count = (size_t)row_count;
    input->columns = calloc(count + 1, sizeof *input->columns);
    input->buffers = calloc(count * BUFFERS + 1, sizeof *input->buffers);
    input->texts = calloc(count + 1, sizeof(void *));
    if (input->kept == NULL || input->columns == NULL || input->buffers == NULL ||
        input->texts == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (; input->column_count < count; input->column_count++)
        if (!take_column(input, tundish_column_spec_at(spec, input->column_count),
                         PyList_GetItem(input->kept, (Py_ssize_t)input->column_count)))
            return false;
    return true;
}

bool
transform_input_holds(const struct transform_input *input, const void *address)
{
    for (Py_ssize_t i = 0; i < input->buffer_count; i++)
        if ((uintptr_t)address - (uintptr_t)input->buffers[i].buf < (size_t)input->buffers[i].len)
            return true;
    return false;
}

void
transform_input_close(struct transform_input *input)
{
    for (Py_ssize_t i = 0; i < input->buffer_count; i++)
        PyBuffer_Release(&input->buffers[i]);
    /* The column that failed may have texts, too. */
    for (uint32_t i = 0; input->texts != NULL && i <= input->column_count; i++)
        free(input->texts[i]);
    free(input->texts);
    free(input->buffers);
    free(input->columns);
    free(input->records);
    Py_XDECREF(input->kept);
}
