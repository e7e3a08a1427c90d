/* taken.c - look up the stack to the first line that is not ours.
 *
 * It is done for every batch, because the line is gone when the warning is needed. */
#include "reader.h"

#include <string.h>

static PyObject *
file_of(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    PyObject *file = PyObject_GetAttrString((PyObject *)(void *)code, "co_filename");

    Py_DECREF((PyObject *)(void *)code);
    return file;
}

static bool
is_ours(const char *package, const char *file)
{
    return package != NULL && strncmp(file, package, strlen(package)) == 0;
}

void
taken_here(const char *package, struct source_line *ret_line, PyObject **ret_holder)
{
    PyObject *frame = Py_XNewRef((PyObject *)(void *)PyEval_GetFrame()), *file = NULL;
    const char *text = NULL;

    *ret_line = (struct source_line){ .file = "?" };
    while (frame != NULL && frame != Py_None) {
        PyObject *outer;

        file = file_of((PyFrameObject *)(void *)frame);
        text = file == NULL ? NULL : PyUnicode_AsUTF8AndSize(file, NULL);
        if (text == NULL || !is_ours(package, text))
            break;
        outer = PyObject_GetAttrString(frame, "f_back");
        Py_CLEAR(file);
        Py_DECREF(frame);
        frame = outer;
    }
    if (frame != NULL && frame != Py_None && text != NULL && file != NULL)
        *ret_line =
            (struct source_line){ .file = text,
                                  .number = PyFrame_GetLineNumber((PyFrameObject *)(void *)frame) };
    Py_XDECREF(frame);
    PyErr_Clear();
    *ret_holder = file;
}
