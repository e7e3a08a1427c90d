/* raise.c - the classes are Python's (tundish/errors.py): here is only which one, and its text. */
#include "raise.h"

#include <stdarg.h>
#include <string.h>

static void
raise_made(const char *maker, PyObject *arguments)
{
    PyObject *module = PyImport_ImportModule("tundish.errors"), *function = NULL, *error = NULL;

    if (module != NULL && arguments != NULL)
        function = PyObject_GetAttrString(module, maker);
    if (function != NULL)
        error = PyObject_CallObject(function, arguments);
    if (error != NULL)
        PyErr_SetObject((PyObject *)(void *)Py_TYPE(error), error);
    Py_XDECREF(error);
    Py_XDECREF(function);
    Py_XDECREF(module);
    Py_XDECREF(arguments);
}

PyObject *
raise_status(tundish_status status)
{
    /* A status above 0 is an outcome and has left no text. */
    return raise_status_text(status, status < TUNDISH_OK ? tundish_last_error() : "");
}

PyObject *
raise_status_text(tundish_status status, const char *text)
{
    PyObject *said = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");

    if (said != NULL)
        raise_made("of_status", Py_BuildValue("(sNs)", tundish_status_name(status), said,
                                              tundish_status_text(status)));
    return NULL;
}

PyObject *
raise_sentence(const char *name, const char *format, ...)
{
    PyObject *sentence;
    va_list arguments;

    va_start(arguments, format);
    sentence = PyUnicode_FromFormatV(format, arguments);
    va_end(arguments);
    if (sentence != NULL)
        raise_made(name, Py_BuildValue("(N)", sentence));
    return NULL;
}
