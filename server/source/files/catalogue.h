/* catalogue.h - the files of all nodes together, where each node has some (distribute.files:
 * local), and those at URLs that one node reads for all (remote.fetch: once).
 *
 * Every node makes the same one before it serves, so all see the same list of files and make the
 * same order of references. A file that several nodes have has one owner; who has it reads its own.
 * Files at URLs are dealt: each has one owner, and only that node has it.
 */
#ifndef SOURCE_FILES_CATALOGUE_H
#define SOURCE_FILES_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct matching_files;

struct catalogue_file {
    char *name;    /* as pipeline files call it: relative to each node's own root */
    uint64_t hash; /* of its content */
    uint32_t owner;
    bool is_here;
};

struct catalogue {
    bool is_made; /* else: files are those found here */
    uint32_t count;
    struct catalogue_file *files; /* by name */
};

/* Add the files of a node. They come in any order; catalogue_finish puts them right. */
void catalogue_add(struct catalogue *catalogue, const char *name, uint64_t hash, uint32_t owner,
                   bool is_here);

/* Deal the files at URLs among the nodes; this one is `rank`. After catalogue_finish. */
void catalogue_deal_urls(struct catalogue *catalogue, uint32_t node_count, uint32_t rank);

/* All have been added. A name that stands for unlike files gives E_ARGUMENT, with their owners. */
tundish_status catalogue_finish(struct catalogue *catalogue, const char **ret_name,
                                uint32_t ret_owners[2]);

/* NULL: no node has it. */
const struct catalogue_file *catalogue_find(const struct catalogue *catalogue, const char *name);

/* As matching_files_find, among the names of all nodes. */
void catalogue_glob(const struct catalogue *catalogue, const char *const *patterns,
                    size_t pattern_count, struct matching_files *ret_list);

void catalogue_close(struct catalogue *catalogue); /* accepts zeros */

#endif
