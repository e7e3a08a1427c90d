/* facts.h - what a reader says of itself: its place, its replica and lane, its columns.
 *
 * Each takes a Reader, and is a call on it: MisuseError if the reader is closed or in use.
 */
#ifndef PYTHON_FACTS_H
#define PYTHON_FACTS_H

#include "python.h"

/* The place as a token: str. */
PyObject *facts_place(PyObject *reader, void *closure);
/* What tundish_get_info says: a dict. */
PyObject *facts_info(PyObject *reader, void *closure);
PyObject *facts_standing(PyObject *reader, PyObject *seconds);
/* {name: (dtype, shape, kind, ragged_rank, widen_dtype, widen_scale, widen_offset)} */
PyObject *facts_columns(PyObject *reader, PyObject *unused);

#endif
