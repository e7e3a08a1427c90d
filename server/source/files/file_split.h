/* file_split.h - which of the files belong to a subset, as Keras' image_dataset_from_directory
 * splits them: get_training_or_validation_split of what index_directory gives. */
#ifndef SOURCE_FILES_FILE_SPLIT_H
#define SOURCE_FILES_FILE_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "source/files/matching_files.h"

struct file_split {
    double validation; /* the fraction of files that is for validation; 0: nothing is split */
    bool takes_validation;
    bool shuffled; /* by NumPy's RandomState(seed), before it is split */
    uint32_t seed;
};

/* Leave the files of the subset, in the order in which they were split. Fails if there are none. */
tundish_status file_split_apply(const struct file_split *split, const char *directory,
                                struct matching_files *files);

#endif
