/* whole_file.h - the bytes of a file that a row names. */
#ifndef CONTENT_RECORDS_WHOLE_FILE_H
#define CONTENT_RECORDS_WHOLE_FILE_H

#include "column/scratch.h"
#include "core/bytes.h"
#include "core/status.h"

/* Read all of a regular file into scratch; a relative path starts at `root`. The sentence names the
 * path as given. */
tundish_status whole_file_read(const char *root, struct byte_view path, struct scratch *scratch,
                               struct byte_view *ret_bytes);

#endif
