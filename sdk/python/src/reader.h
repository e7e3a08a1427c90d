/* reader.h - a reader as Python sees it; tundish.Reader adds what can be said in Python. */
#ifndef PYTHON_READER_H
#define PYTHON_READER_H

#include <stdint.h>

#include "lease.h"
#include "python.h"
#include "tundish/tundish.h"

PyObject *reader_type(PyObject *module);

/* Wait for the next batch, a new tundish.Batch. 0: *ret_status says how it went; -1: an exception
 * is set. */
int reader_take(PyObject *self, int64_t timeout_ns, tundish_status *ret_status,
                PyObject **ret_batch);

/* Raise what reader_take said. */
PyObject *reader_raise(PyObject *self, tundish_status status);

/* The SDK's reader for one call, after which reader_leave() must follow. NULL with an exception:
 * the reader is closed, another thread's or another process's. */
tundish_reader *reader_enter(PyObject *self);
void reader_leave(PyObject *self);

/* Where its batches come from. Between reader_enter and reader_leave. */
struct source *reader_source(PyObject *self);

/* The stream was over before this reader had anything: a loop over it is empty, which should not go
 * unseen. Warns once. -1 with an exception, if warnings are errors. */
int reader_warn_of_nothing(PyObject *self);

/* The number of the loop that was begun last: earlier ones are over. */
uint64_t reader_loop(PyObject *self);

#endif
