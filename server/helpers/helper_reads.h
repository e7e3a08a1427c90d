/* helper_reads.h - the whole files that the rows of a part name (read_file, directory), as a helper
 * has read them. It notes each with a sum of the bytes that it got, or an object with the version
 * that the store told it, and sends these notes after its answer. Before the part is used, the
 * server makes the same of its own copies. */
#ifndef HELPERS_HELPER_READS_H
#define HELPERS_HELPER_READS_H

#include "batch/portable.h"
#include "content/records/file_notes.h"
#include "helpers/helper_sums.h"

/* An answer has no more bytes of them. */
enum { HELPER_READS_BYTES = 16 << 20 };

/* The path follows. */
struct helper_read {
    uint64_t version; /* 0: its store tells none */
    uint32_t path_bytes;
    uint32_t reserved;
};

/* Notes that are added to `reads`; which outlive them. */
struct file_notes helper_reads_notes(struct portable_bytes *reads);

/* Are they what is read here, by this root and these options? E_CORRUPT: one is not, and the
 * sentence says which, or they make no sense. E_PLACE: one that is named cannot be compared, now or
 * ever. Others: one cannot be had here. */
struct helper_own {
    const struct spec_file *file;
    struct helper_sums *sums;
};
tundish_status helper_reads_compare(const struct helper_own *own, struct byte_view reads,
                                    bool *ret_differs);

#endif
