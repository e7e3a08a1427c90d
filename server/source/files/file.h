/* file.h - one file of a session: what it was when first opened, and reads of its bytes by any
 * thread.
 *
 * The first open records the identity of the file. It is compared when the file is opened again,
 * when a read is short, and at a read after a second without a comparison. Descriptors are kept, up
 * to the limit of the process, and are closed and reopened without the readers noticing.
 */
#ifndef SOURCE_FILES_FILE_H
#define SOURCE_FILES_FILE_H

#include "source/files/services.h"
#include "source/scan/scanner.h"

struct parquet_file;
struct peers;
struct remote_object;
struct remote_ranges;
struct scan;
struct scan_input_ops;
struct stat;

/* Tells a file from another, or from itself before a change. */
struct file_identity {
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
};
struct file_identity file_identity_of(const struct stat *about);

struct source_file {
    struct source_services *services;
    uint32_t number; /* in references */
    char *name;      /* as the user wrote it, for messages */
    char *path;
    struct peers *peers; /* by which to read it where another node has it; NULL: it is here */
    uint32_t owner;      /* that node */
    bool is_url;         /* file_remote.h: no door, but an object; false where another reads it */
    struct record_format format;
    /* The format's, or what the content shows: of a URL that is known once its scan begins. */
    _Atomic enum packing packing;
    const struct scan_input_ops *_Atomic input; /* by which its records are found */
    struct scan *scan;                          /* ... and kept */
    struct parquet_file *parquet;               /* of a Parquet file, once it has been scanned */

    bool is_known; /* guarded by services->lock */
    struct file_identity identity;
    _Atomic uint64_t content_sum; /* content_sum.h; 0: not known */
    _Atomic bool sum_is_wanted;   /* some thread is to make it */

    struct door door;
    _Atomic int64_t looked_at_ns;
    _Atomic(struct remote_object *) object; /* of a URL, once it was asked for */
    _Atomic bool object_is_known;           /* ... and its first part has come */
    _Atomic(struct remote_ranges *) ranges; /* the same, of one whose format wants only parts */
    bool is_spool;                          /* spool.h */
    _Atomic int unpacked;                   /* descriptor + 1 of the unpacked file; 0: none (yet) */
};

/* Open it again, and compare it with its recorded identity. The caller closes *ret_descriptor,
 * which is -1 where the name is a URL, which file_read_opened reads, or another node has the file,
 * of which only ranges are read. */
tundish_status file_open(struct source_file *file, int *ret_descriptor);

/* Is the open file unchanged? Fails naming it. */
tundish_status file_compare(const struct source_file *file, int descriptor);

/* Read bytes of the file, or of its unpacked content, all of them. Any thread. */
tundish_status file_read(struct source_file *file, void *to, size_t bytes, uint64_t offset);

/* The same for as many of the bytes as there are. */
tundish_status file_read_up_to(struct source_file *file, void *to, size_t bytes, uint64_t offset,
                               size_t *ret_bytes);

/* As file_read, for an isolated range: from a URL, fetch only these bytes, not the part around
 * them. */
tundish_status file_read_range(struct source_file *file, void *to, size_t bytes, uint64_t offset);

/* A range that is read soon, as it is. Returns at once. */
void file_expect_range(struct source_file *file, size_t bytes, uint64_t offset);

/* The same as file_read for bytes that go to two buffers: `bytes` to `to`, what follows them in the
 * file to `rest`. */
tundish_status file_read_apart(struct source_file *file, void *to, size_t bytes, void *rest,
                               size_t rest_bytes, uint64_t offset);

/* Bytes of a file that file_open has opened, as file_read_some. */
tundish_status file_read_opened(struct source_file *file, int descriptor, void *to, size_t bytes,
                                uint64_t offset, size_t *ret_bytes);

/* Close its descriptors. */
void file_close(struct source_file *file);

/* tnd_read_at; the sentence does not name the file. */
tundish_status file_read_some(int descriptor, void *to, size_t bytes, uint64_t offset,
                              size_t *ret_bytes);

#endif
