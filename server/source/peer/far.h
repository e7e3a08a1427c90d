/* far.h - records of files that other nodes have: asked of their owners, as references name them.
 *
 * Each server has one, which asks for its sessions and answers others. An owner finds a file's
 * records and reads their bytes as it does for itself; what it cannot read is the same error,
 * wherever the row is wanted. Rows are asked for ahead of need (far_ask), and many at a time; their
 * bytes come packed where packing and unpacking takes less than the bytes it saves take on the
 * wire.
 *
 * What a node has asked for and not used yet is bounded by far_admit; what an owner has read and
 * not sent, by how much a node may have under way.
 */
#ifndef SOURCE_FAR_H
#define SOURCE_FAR_H

#include "link/link.h"
#include "source/files/catalogue.h"
#include "source/scan/records.h"

struct far;
struct far_rows;
struct source_file;
struct source_files;

struct far_options {
    struct link *link;
    const struct catalogue *catalogue; /* stays */
    const char *root, *cache_folder;
};

/* Serves other nodes until it is closed, which must be after link_leave. */
tundish_status far_open(const struct far_options *options, struct far **ret_far);
void far_close(struct far *far); /* accepts NULL */

const struct catalogue *far_catalogue(const struct far *far);

/* A row of a file that another node has. */
struct far_row {
    uint64_t offset;
    uint32_t file, bytes;
};

/* Ask for rows; returns at once. They are sorted here, and asked for once each. */
struct far_rows *far_ask(struct far *far, struct source_files *files, struct far_row *rows,
                         size_t count);
uint64_t far_bytes(const struct far_rows *rows);
bool far_has(const struct far_rows *rows, const struct far_row *row);

/* Wait until all are there: an owner answers, or is found to be lost, also while it is stopping.
 * Fails as reading them failed, or E_PEER_LOST. Any thread. */
tundish_status far_wait(struct far_rows *rows);

/* The bytes of one that was asked for, after far_wait. */
const uint8_t *far_find(const struct far_rows *rows, const struct far_row *row);
void far_rows_close(struct far_rows *rows); /* wanted no more, come or not; accepts NULL */

/* The records of a file from number `first` on, some of them; waits. */
tundish_status far_scan(struct far *far, const struct source_file *file, uint64_t first,
                        struct record_writer *writer, bool *ret_is_over);

#endif
