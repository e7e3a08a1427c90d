/* example_file.h - one of the files that a reader will read, for sources whose columns stand in
 * their files. */
#ifndef SOURCE_EXAMPLE_FILE_H
#define SOURCE_EXAMPLE_FILE_H

#include "source/source.h"

/* The name of the first file, as the pipeline gives it: written there, or found now by list_files.
 * The caller frees. Complains if it cannot be told before the stream runs. */
tundish_status example_file(const struct stage_config *config, char **ret_name);

#endif
