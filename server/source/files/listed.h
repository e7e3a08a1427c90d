/* listed.h - what patterns matched while a stream starts, so that its place, the check of its
 * inputs and its first step list a folder once, and see the same files. Any thread. */
#ifndef SOURCE_FILES_LISTED_H
#define SOURCE_FILES_LISTED_H

#include "source/files/matching_files.h"

struct listed;

struct listed *listed_open(void);
void listed_close(struct listed *listed); /* accepts NULL */

/* As matching_files_find, of one pattern that is not a URL: the folder is looked at when the first
 * one asks. Every one names the same root. */
tundish_status listed_find(struct listed *listed, const char *root, const char *pattern,
                           struct matching_files *ret_list);

/* The stream has started: forget all, and look at the folder each time. Accepts NULL. */
void listed_end(struct listed *listed);

#endif
