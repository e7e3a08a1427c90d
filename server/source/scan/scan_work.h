/* scan_work.h - the work of a scan: read, feed the scanner, note the file's identity. */
#ifndef SOURCE_SCAN_SCAN_WORK_H
#define SOURCE_SCAN_SCAN_WORK_H

#include <stdalign.h>
#include <stddef.h>

#include "source/files/file.h"
#include "source/scan/records.h"
#include "source/scan/scan.h"

struct scan_work;

/* Where a scan has its records from. */
struct scan_input_ops {
    /* The file is open. Ready to read, or done already: *ret_list is set then. */
    tundish_status (*open)(struct source_file *file, struct scan_work *work,
                           struct record_list **ret_list);

    /* The next bytes, for the scanner, into work->buffer. NULL: there are records. */
    tundish_status (*read)(struct source_file *file, struct scan_work *work, size_t *ret_bytes);

    /* Some records, from number work->record_count on; sets work->is_over if the last are among
     * them. Its error names the file. NULL: there are bytes. */
    tundish_status (*find)(struct source_file *file, struct scan_work *work,
                           struct record_writer *writer);

    /* Bytes are where the file has them: reads may jump, and an index of them may be kept. */
    bool is_plain;
};

enum { SCAN_READ_BYTES = READ_AHEAD_BUFFER_BYTES }; /* the largest read */

extern const struct scan_input_ops scan_input_plain, scan_input_packed;

struct scan_work {
    int descriptor;
    struct unpacker *unpacker;
    uint64_t position; /* of the next read */
    size_t read_bytes;
    uint64_t record_end, hash;
    uint32_t piece_crc; /* of what has been hashed of a piece */
    size_t piece_bytes;
    uint64_t record_count; /* found so far, where the input gives records */
    bool is_over;
    const char *kind;      /* file_kind of the first bytes */
    bool is_damaged;       /* the file's content is why the scan failed */
    tundish_status damage; /* the error that unpacking met after the bytes that it gave */
    char damage_text[256];
    uint8_t *buffer; /* of READ_AHEAD_BUFFER_BYTES, during a step only: many files may stand half
                        scanned */
    alignas(max_align_t) uint8_t state[SCANNER_STATE_BYTES];
};

/* As the file's input opens. *ret_work is there in every case. */
tundish_status scan_work_open(struct source_file *file, struct scan_work **ret_work,
                              struct record_list **ret_list);
void scan_work_close(struct scan_work *work); /* accepts NULL */

/* Can the next step read without waiting for a server? Asks for the bytes if not. `work` may be
 * NULL: before the first. */
bool scan_work_is_here(struct source_file *file, const struct scan_work *work);

/* Read for a while; the records found are in *writer in every case. `buffer` has
 * READ_AHEAD_BUFFER_BYTES. */
tundish_status scan_work_step(struct source_file *file, struct scan_work *work, uint8_t *buffer,
                              struct record_writer *writer);

/* The size of the input, once all of it has been scanned. */
uint64_t scan_work_bytes(struct source_file *file, const struct scan_work *work);

#endif
