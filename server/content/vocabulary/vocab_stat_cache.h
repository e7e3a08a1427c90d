/* vocab_stat_cache.h - the content hash of a text file, known without reading it.
 *
 * An entry in the cache folder says that the file with this path, device, inode, size and times had
 * that content. No entry is made for a file younger than two seconds, whose times could stay the
 * same when it changes once more.
 */
#ifndef CONTENT_VOCABULARY_VOCAB_STAT_CACHE_H
#define CONTENT_VOCABULARY_VOCAB_STAT_CACHE_H

#include <sys/stat.h>

#include "content/vocabulary/vocab_table.h"

/* False if there is no entry, or not about this state of the file. */
bool vocab_stat_cache_find(int folder, const char *path, const struct stat *about,
                           struct vocab_content *ret_content);

/* It only saves time later, so a failure is ignored. */
void vocab_stat_cache_put(int folder, const char *path, const struct stat *about,
                          const struct vocab_content *content);

/* Is this the same file, unchanged? */
bool vocab_stat_cache_is_same(const struct stat *a, const struct stat *b);

#endif
