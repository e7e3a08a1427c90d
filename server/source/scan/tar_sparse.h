/* tar_sparse.h - a sparse member of a tar: only parts of the file are stored, and zeros lie between
 * them.
 *
 * GNU tar has written them in four forms: parts in the header and the blocks after it; in pax
 * records one by one; in one pax record; and (bsdtar's form, too) in front of the data. All are
 * bytes from the archive, and hostile.
 */
#ifndef SOURCE_SCAN_TAR_SPARSE_H
#define SOURCE_SCAN_TAR_SPARSE_H

#include "core/bytes.h"
#include "core/status.h"

struct tar_part {
    uint64_t offset, bytes; /* in the file */
};

struct tar_sparse {
    uint64_t file_bytes;
    struct byte_view stored; /* the parts, one after the other */
    struct tar_part *parts;  /* in order, within the file, and all of them stored */
    size_t count;
};

/* Read where the parts are. `headers` are all bytes from the member's first header to its data, as
 * tar_walk has passed over them; `data` are what the member stores. Sentences name no file. */
tundish_status tar_sparse_open(struct byte_view headers, struct byte_view data,
                               struct tar_sparse *ret_sparse);
void tar_sparse_close(struct tar_sparse *sparse); /* accepts zeros */

/* Write the file's bytes. */
void tar_sparse_fill(const struct tar_sparse *sparse, uint8_t *to);

#endif
