/* place_hashes.h - hashes of files' bytes, for place_files.c, kept in the cache folder.
 *
 * A hash covers the size and a sample of the bytes, or all bytes of a small file. It is believed in
 * later starts for as long as stat shows the file as it was (device, inode, size, times of change
 * to the nanosecond), as indexes are. It is not kept of a file younger than two seconds, nor where
 * few reads make all of a stream's hashes.
 */
#ifndef SESSION_CHECKPOINT_PLACE_HASHES_H
#define SESSION_CHECKPOINT_PLACE_HASHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct place_hashes;

/* Those of `count` files, in the folder by a key that is the same in the next start. */
struct place_hashes *place_hashes_open(const char *cache_folder, uint64_t key, uint32_t count);

/* The hash of a file, which has that number here. Its path begins at the open folder, or at the
 * process' own (AT_FDCWD). That of a missing file matches no other. Any thread, one at a time for a
 * number. */
uint64_t place_hashes_of(struct place_hashes *hashes, uint32_t number, int folder, const char *path,
                         bool *ret_is_here);

/* Keep what is new, if that is worth a file: it may wait for the disk. Accepts NULL. */
void place_hashes_close(struct place_hashes *hashes);

/* The samples of a large file, after its first bytes. */
struct place_samples {
    uint32_t count;
    size_t bytes; /* of each */
    uint64_t stride;
};
struct place_samples place_samples_of(int64_t size);
uint64_t place_samples_begin(int64_t size);

#endif
