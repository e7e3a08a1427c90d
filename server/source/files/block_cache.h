/* block_cache.h - pieces of files that rows were read from, for the rows beside them.
 *
 * A shuffled stream reads small rows out of order, yet all rows of a piece of a file within one
 * window. A system call for each costs more than the row. So such reads go through blocks, in
 * memory that is fixed when the cache is opened; where blocks would be thrown out before they are
 * used often enough to be worth reading, the cache notices that and admits no more.
 *
 * Any thread, no lock.
 */
#ifndef SOURCE_FILES_BLOCK_CACHE_H
#define SOURCE_FILES_BLOCK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct block_cache;
struct source_file;

enum {
    BLOCK_BYTES = 64 << 10,
    BLOCK_ROW_BYTES = 8 << 10,   /* longer reads are worth a system call each */
    BLOCK_FILE_BYTES = 256 << 10 /* smaller files are not cached */
};

/* Memory is taken as it is used. NULL: this process may not have the addresses. */
struct block_cache *block_cache_open(uint64_t bytes);
void block_cache_close(struct block_cache *cache); /* accepts NULL */

/* Copy bytes of a file, at most BLOCK_ROW_BYTES. False: they are not in the cache; read the file
 * itself, which also reports its errors. */
bool block_cache_read(struct block_cache *cache, struct source_file *file, void *to, size_t bytes,
                      uint64_t offset);

/* A hint that these bytes are read soon: where they lie far apart, waiting for memory is what
 * reading them costs. */
void block_cache_prefetch(const struct block_cache *cache, const struct source_file *file,
                          size_t bytes, uint64_t offset);

#endif
