/* index.h - lists of records in the cache folder, so that a file is gone through once.
 *
 *     header | path | groups | bytes          as in records.h; all numbers little-endian
 *
 * An index belongs to a file as stat shows it (path, device, inode, size, times of change to the
 * nanosecond) and to a format. It is not kept for a file younger than two seconds, which could
 * change again without showing it. An index that is read back is hostile: lengths and checksums are
 * checked before it is used, and each record's bounds whenever one is read.
 */
#ifndef SOURCE_SCAN_INDEX_H
#define SOURCE_SCAN_INDEX_H

#include "source/files/file.h"
#include "source/scan/records.h"

/* The file and the format that an index must be of. */
struct index_key {
    const char *path;
    struct file_identity identity;
    struct record_format format;
};

/* The list of an index in memory, which must stay. E_CORRUPT or E_DATA (another file's) with a
 * sentence. */
tundish_status index_read(const void *data, size_t bytes, const struct index_key *key,
                          struct record_list *ret_list);

/* The file's list if the cache folder has it, else NULL. */
struct record_list *index_load(const struct source_file *file);

/* Would the cache folder take the file's list, and does not have it? */
bool index_is_wanted(const struct source_file *file);

/* Keep a list in the cache folder if that is worth it. Returns it, or takes it over and returns the
 * same list from the folder, whose memory the kernel may have back. */
struct record_list *index_keep(const struct source_file *file, struct record_list *list);

/* The bytes of the file's index in the cache folder; false: it is not there. The caller frees. */
bool index_bytes(const struct source_file *file, uint8_t **ret_bytes, size_t *ret_byte_count);

/* The list in the bytes of an index that another machine made of a file of the same size and
 * format, under whatever path. The bytes must stay. */
tundish_status index_read_foreign(const uint8_t *bytes, size_t byte_count,
                                  const struct source_file *file, struct record_list *ret_list);

#endif
