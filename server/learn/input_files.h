/* input_files.h - the files that a dataset reads, and whether they are still the same. */
#ifndef LEARN_INPUT_FILES_H
#define LEARN_INPUT_FILES_H

#include <stdio.h>

#include "spec/spec.h"

struct input_file {
    char *path;  /* as the pipeline file has it, or found by its patterns */
    char *where; /* the same from the root; NULL: read from an origin */
    uint64_t bytes, hash;
    int64_t modified_ns;
    bool is_hashed;
};

struct input_files {
    size_t count;
    struct input_file *list;
};

/* Every file named in the dataset, patterns expanded, in the order of their paths. Files
 * that a stage names by $value are found by the pattern that stands outside. */
tundish_status input_files_find(const struct spec_file *file, const struct spec_dataset *dataset,
                                struct input_files *ret_files);
void input_files_close(struct input_files *files); /* accepts zeros */

/* Read those whose hashes are not known yet. */
tundish_status input_files_hash(struct input_files *files);

/* Lines of an origin. Reading one is false if it is none. */
void input_files_write(const struct input_files *files, FILE *file);
bool input_files_read(struct input_files *files, const char *line);

/* Is each of the files named in the dataset, or does a pattern of it match its name? The files need
 * not be there. */
bool input_files_are_named(const struct input_files *files, const struct spec_dataset *dataset);

/* NULL if `now` is the same as `then`; else the difference in words, which the caller frees. Files
 * whose size is the same but not their time are read. */
char *input_files_differ(const struct input_files *then, struct input_files *now);

#endif
