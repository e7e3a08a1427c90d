/* raise.h - statuses of the SDK as exceptions of tundish.errors. */
#ifndef PYTHON_RAISE_H
#define PYTHON_RAISE_H

#include "python.h"
#include "tundish/tundish.h"

/* Set the exception of a status, with this thread's last text of the SDK. Returns NULL. */
PyObject *raise_status(tundish_status status);

/* The same with a text of another library of ours. */
PyObject *raise_status_text(tundish_status status, const char *text);

/* Set the exception of tundish.errors that has this name, with a sentence (as PyUnicode_FromFormat
 * has it). Returns NULL. */
PyObject *raise_sentence(const char *name, const char *format, ...);
#define raise_misuse(...) raise_sentence("MisuseError", __VA_ARGS__)
#define raise_argument(...) raise_sentence("ArgumentError", __VA_ARGS__)

#endif
