/* reader.h - a reader as Python sees it; tundish.Reader adds what can be said in Python. */
#ifndef PYTHON_READER_H
#define PYTHON_READER_H

#include <stdint.h>

#include "python.h"
#include "source_lease.h"
#include "tundish/tundish.h"

/* A wait is cut into slices, so that Ctrl-C and other signals are heard. */
#define SLICE_NS INT64_C(100000000)

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

/* opening.c: tundish_open in slices, for a server that is starting. NULL with an exception. */
tundish_reader *opening_wait(tundish_options *options);

/* taken.c: the line of the program that takes a batch: the innermost one outside the folder
 * `package` (NULL: any line). `holder` keeps the file's name alive for the caller, who drops it.
 * Sets no exception. */
void taken_here(const char *package, struct source_line *ret_line, PyObject **ret_holder);

/* facts.c: a reader's place, its replica and lane, its columns. Each takes a Reader, and is a call
 * on it: MisuseError if the reader is closed or in use. */
PyObject *facts_place(PyObject *reader, void *closure); /* the token: str */
/* The facts of tundish_get_info: a dict. */
PyObject *facts_info(PyObject *reader, void *closure);
PyObject *facts_standing(PyObject *reader, PyObject *seconds);
/* {name: (dtype, shape, kind, ragged_rank, widen_dtype, widen_scale, widen_offset)} */
PyObject *facts_columns(PyObject *reader, PyObject *unused);

#endif
