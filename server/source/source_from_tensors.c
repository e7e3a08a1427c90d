/* source_from_tensors.c - one element: whole tensors, written in the pipeline file. */
#include "source/rows/tensor_table.h"

static tundish_status
from_tensors_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    return tensor_table_open(state, config, false, ret_schema);
}

static tundish_status
from_tensors_read(const void *state, const struct source_read *read)
{
    return tensor_table_read(state, read);
}

static void
from_tensors_close(void *state)
{
    tensor_table_close(state);
}

const struct source_ops source_from_tensors = {
    .name = "from_tensors",
    .order = TENSOR_TABLE_ORDER("from_tensors"),
    .tell = tensor_table_tell,
    .files_hash = tensor_table_files_hash,
    .texts = tensor_table_texts,
    .words = WORDS_ARE_THE_SAME,
    .state_bytes = sizeof(struct tensor_table),
    .open = from_tensors_open,
    .read = from_tensors_read,
    .reads_files = false,
    .close = from_tensors_close,
};
