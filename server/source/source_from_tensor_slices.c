/* source_from_tensor_slices.c - tensors written in the pipeline file, cut along their first
 * dimension. */
#include "source/rows/tensor_table.h"

static tundish_status
from_tensor_slices_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    return tensor_table_open(state, config, true, ret_schema);
}

static tundish_status
from_tensor_slices_read(const void *state, const struct source_read *read)
{
    return tensor_table_read(state, read);
}

static void
from_tensor_slices_close(void *state)
{
    tensor_table_close(state);
}

const struct source_ops source_from_tensor_slices = {
    .name = "from_tensor_slices",
    .order = TENSOR_TABLE_ORDER("from_tensor_slices"),
    .tell = tensor_table_tell,
    .files_hash = tensor_table_files_hash,
    .texts = tensor_table_texts,
    .words = WORDS_ARE_THE_SAME,
    .state_bytes = sizeof(struct tensor_table),
    .open = from_tensor_slices_open,
    .read = from_tensor_slices_read,
    .reads_files = false,
    .close = from_tensor_slices_close,
};
