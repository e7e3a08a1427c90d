/* source_filenames.c - the names that a reader was given, as elements. The plan puts them before
 * readers of several files, where TensorFlow has them too, so that FILE sharding can split them.
 * The stage is the reader's.
 */
#include "source/rows/tensor_table.h"

static tundish_status
filenames_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    return tensor_table_open_text(state, config, "value", spec_get(config->stage, "filenames"),
                                  ret_schema);
}

static tundish_status
filenames_read(const void *state, const struct source_read *read)
{
    return tensor_table_read(state, read);
}

static void
filenames_close(void *state)
{
    tensor_table_close(state);
}

const struct source_ops source_filenames = {
    .name = "filenames",
    .order = TENSOR_TABLE_ORDER("filenames"),
    .tell = tensor_table_tell,
    .words = WORDS_ARE_THE_SAME,
    .state_bytes = sizeof(struct tensor_table),
    .open = filenames_open,
    .read = filenames_read,
    .reads_files = false,
    .close = filenames_close,
};
