/* taken.h - the line of the program that takes a batch. */
#ifndef PYTHON_TAKEN_H
#define PYTHON_TAKEN_H

#include "lease.h"
#include "python.h"

/* The innermost line outside of the package, whose folder that is (NULL: any line). `holder` keeps
 * the file's name alive for the caller, who drops it. Sets no exception. */
void taken_here(const char *package, struct source_line *ret_line, PyObject **ret_holder);

#endif
