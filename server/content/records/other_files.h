/* other_files.h - whole files that other nodes have, where each node has some (distribute.files:
 * local). The server makes one for each session (frame.other_files); without it all files are here.
 */
#ifndef CONTENT_RECORDS_OTHER_FILES_H
#define CONTENT_RECORDS_OTHER_FILES_H

#include "column/scratch.h"
#include "core/bytes.h"
#include "core/status.h"

struct asked_files;

struct other_files {
    void *context;

    /* Ask for those of the files that other nodes have; returns at once. The paths are the
     * caller's, until it is closed. */
    struct asked_files *(*ask)(void *context, const struct byte_view *paths, size_t count);

    /* The bytes of the file at `index`, in scratch; waits. Their data is NULL where the file is to
     * be read here. E_DATA: it is bad. */
    tundish_status (*take)(struct asked_files *asked, size_t index, struct scratch *scratch,
                           struct byte_view *ret_bytes);
    void (*close)(struct asked_files *asked);
};

#endif
