/* spare.h - memory for copies of columns, which the next copies take over.
 *
 * A loop copies as much for each batch as for the one before. The kernel would clear each page of
 * fresh memory again, which costs as much as the copy. So memory that comes back is kept for the
 * next, though never more than is in use: a program that drops all of its copies has none of it
 * left.
 *
 * All calls are safe in any thread, without the GIL, after the interpreter has ended, and in a
 * child after fork.
 */
#ifndef PYTHON_SPARE_H
#define PYTHON_SPARE_H

#include <stddef.h>

/* At least `byte_count` bytes, aligned to 64. NULL: no memory. */
void *spare_take(size_t byte_count);
void spare_give(void *memory); /* accepts NULL */

#endif
