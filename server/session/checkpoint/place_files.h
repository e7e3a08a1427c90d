/* place_files.h - the files that a stream's batches depend on, and hashes of their content.
 *
 * A data file's hash covers its size and a sample of its bytes (place_hashes.h).
 * Vocabularies and learned results are hashed whole. A name is only what a pipeline file
 * calls it, a folder is not looked at: copies on other machines are the same.
 *
 * A place has no room for a hash of each file, and is yet to say which has changed. So files are
 * put into groups in the order found, and each group has a hash: as many groups as fit, so of few
 * files each has its own.
 */
#ifndef SESSION_CHECKPOINT_PLACE_FILES_H
#define SESSION_CHECKPOINT_PLACE_FILES_H

#include "plan/plan.h"

struct place_hashes;

enum { PLACE_FILE_GROUPS = 8 };

/* In a place. */
struct place_groups {
    uint32_t file_count;
    uint32_t hashes[PLACE_FILE_GROUPS];
};

struct place_file {
    char *name;       /* of a file with a path, the path's end */
    char *url, *path; /* where data is now, one of them; NULL: it is something else */
    uint64_t bytes;   /* at the URL */
    uint64_t hash;
    uint64_t raw_hash; /* of its content, whatever its name */
    bool is_data;      /* rows are read from it */
    bool is_here;
    bool is_list;  /* of a folder's files */
    bool is_named; /* by rows in memory: nodes may have others */
};

struct place_files {
    uint32_t count;
    struct place_file *list; /* in the order of the stages, then of names */
    struct place_groups groups;
    struct place_groups older_groups; /* without lists and files that are named by rows */
    const struct spec_remote *remote; /* the plan's */
    struct place_hashes *hashes;      /* of files, that are to be kept; or NULL */
};

/* Find the files by the plan's stages. The hash of a missing file matches no other. */
tundish_status place_files_open(const struct plan *plan, struct place_files *ret_files);

/* Keep hashes for later starts, once nobody waits for this one: it may wait for the disk. Closing
 * does so, too. One thread; others may use the files. */
void place_files_keep(struct place_files *files);
void place_files_close(struct place_files *files); /* accepts zeros */

/* Are these the files that a place was taken of? E_PLACE says which are not. */
tundish_status place_files_check(const struct place_files *files,
                                 const struct place_groups *groups);

/* For place_files.c: of all files, or of those that older places have. */
void place_groups_make(const struct place_files *files, bool are_older,
                       struct place_groups *ret_groups);

/* For place_elsewhere.c. A hash with the file's name, of the content's; of a group of such; and of
 * an object, with that of its ETag. */
uint64_t place_file_hash(const struct place_file *file, uint64_t raw_hash);
uint64_t place_group_hash(const uint64_t *hashes, uint32_t count);
uint64_t place_object_hash(uint64_t bytes, uint64_t tag_hash);
uint32_t place_group_of(uint32_t index, uint32_t count);

#endif
