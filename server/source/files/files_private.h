/* files_private.h - inside of struct source_files, for the parts of this folder. */
#ifndef SOURCE_FILES_FILES_PRIVATE_H
#define SOURCE_FILES_FILES_PRIVATE_H

#include "source/files/file.h"
#include "source/files/files.h"
#include "source/files/matching_files.h"

/* The file of that name, to be read in that format; entered if it is new. Its number depends on
 * nothing but what was entered before, in which order. The order's thread. */
struct source_file *files_enter(struct source_files *files, const char *name, size_t name_bytes,
                                const struct record_format *format);

/* A file without a path that is open already, for spools: reads go to `descriptor`, which becomes
 * its own. The order's thread. */
struct source_file *files_enter_open(struct source_files *files, const char *name, int descriptor);

/* Files by number, each perhaps several times. */
struct file_set {
    uint32_t *numbers;
    size_t count;
};

/* From now on note each file that is entered, in `set` (NULL: nowhere); returns where they were
 * noted before. The order's thread. */
struct file_set *files_note_files(struct source_files *files, struct file_set *set);

/* The file of a number, or NULL. Any thread, no lock. */
struct source_file *files_file(const struct source_files *files, uint32_t number);

/* Paths that `find` finds for a key, once, and that are then remembered for the session, with a
 * number that stands for each. The order's thread. */
struct path_list {
    uint32_t count;
    uint32_t *numbers;
    uint32_t *labels; /* as found, or NULL */
};
struct path_search {
    const char *key; /* any bytes: the same for the same search */
    size_t key_bytes;
    tundish_status (*find)(const void *context, const struct path_base *base,
                           struct matching_files *ret_found);
    const void *context;
};
tundish_status files_list_paths(struct source_files *files, const struct path_search *search,
                                const struct path_list **ret_list);

/* A path that another process has found, and its number here. Any thread. */
uint32_t files_enter_path(struct source_files *files, const char *path);

/* The path of a number; lives as long as the table. Any thread, no lock. */
const char *files_path(const struct source_files *files, uint32_t number, size_t *ret_bytes);

/* The reader of other nodes' files, with the rows asked of them for coming steps; or NULL. */
struct peers *files_peers(const struct source_files *files);
struct peer_ahead *files_peer_ahead(const struct source_files *files);

/* Is any of the files at a URL? Any thread. */
bool files_has_urls(const struct source_files *files);

/* Is any of them a Parquet file? Any thread. */
bool files_has_parquet(const struct source_files *files);

/* Where relative paths start: an absolute path. */
const char *files_root(const struct source_files *files);

/* Rows that are read one by one are read through it. */
struct block_cache *files_block_cache(const struct source_files *files);

/* The decoded row groups of Parquet files. */
struct row_groups *files_row_groups(const struct source_files *files);

/* The services that its files share. */
struct source_services *files_services(struct source_files *files);

/* The first of what was left: begun.h. */
struct begun;
struct begun **files_begun(struct source_files *files);

#endif
