/* class_folders.h - the files of a folder of folders, one per class, as Keras' index_directory
 * finds them: classes sorted (or as given), in each the files of all folders below, by folder, then
 * name.
 */
#ifndef SOURCE_FILES_CLASS_FOLDERS_H
#define SOURCE_FILES_CLASS_FOLDERS_H

#include "source/files/matching_files.h"

struct class_folders {
    const char *directory; /* as the user wrote it: paths begin with it */
    const char *const *class_names;
    size_t class_count; /* 0: all folders whose names do not begin with a dot */
    const char *const *extensions;
    size_t extension_count;
};

/* Fails if a class is not a folder, or there are no files at all. */
tundish_status class_folders_find(const struct class_folders *wanted, const char *root,
                                  struct matching_files *ret_found);

/* The same of a store, where a folder is what keys have in common before a slash. */
tundish_status class_folders_list(const struct class_folders *wanted, const struct path_base *base,
                                  struct matching_files *ret_found);

/* The same of the files of all nodes (base->catalogue), each of which told those of
 * class_folders_own. */
tundish_status class_folders_unite(const struct class_folders *wanted, const struct path_base *base,
                                   struct matching_files *ret_found);

/* This node's part of them, maybe nothing, or (base->catalogue) what all have: files, and each
 * class folder, with a slash at its end, for it may have no files. */
tundish_status class_folders_own(const struct class_folders *wanted, const struct path_base *base,
                                 struct matching_files *ret_found);

#endif
