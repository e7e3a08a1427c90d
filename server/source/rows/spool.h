/* spool.h - rows that come once and may be wanted again: one file without a name in the cache
 * folder, to which they are appended, and from which any thread reads them as from any other file
 * of the session. It is gone with the session.
 */
#ifndef SOURCE_ROWS_SPOOL_H
#define SOURCE_ROWS_SPOOL_H

#include "source/files/file.h"

struct source_files;

struct spool {
    struct source_file *file; /* for references and reads */
    uint64_t bytes;           /* where the next row goes */
};

/* One by that name, for messages: in the cache folder, or, if `descriptor` is not -1, in this file,
 * which becomes the spool's. The order's thread. */
tundish_status spool_open(struct source_files *files, const char *name, int descriptor,
                          struct spool *ret_spool);

/* Append. E_SYSTEM with the kernel's message if there is not enough room. */
tundish_status spool_append(struct spool *spool, const void *data, size_t bytes);

/* Give back the room of all of them: no thread runs, and nobody refers to their rows any more. */
void spool_drop_all(struct source_files *files);

#endif
