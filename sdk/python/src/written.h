/* written.h - name the column that a program wrote to, before the signal ends it.
 *
 * Batches are read-only, and libraries that pass over that (torch) end the process by SIGSEGV.
 */
#ifndef PYTHON_WRITTEN_H
#define PYTHON_WRITTEN_H

/* From now on one line on stderr says so, and the signal goes its usual way: to the handler that
 * was there before, or to the end of the process. Once for a process. */
void written_watch(void);

#endif
