/* content_read_file.c - tf.io.read_file. */
#include "content/records/decode_text.h"
#include "content/records/whole_file.h"

struct read_file {
    const char *root;
    struct content_targets targets;
};

static const char *
decode(void *context, struct byte_view from, struct scratch *scratch, struct byte_view *ret_to)
{
    return whole_file_read(context, from, scratch, ret_to) == TUNDISH_OK ? NULL : tnd_error_text();
}

static tundish_status
read_file_open(void *memory, const struct stage_config *config, struct schema *ret_schema,
               bool *ret_batch_wide)
{
    struct read_file *state = memory;

    (void)ret_batch_wide;
    state->root = config->stage->file->root;
    return decode_text_open(config, ret_schema, &state->targets);
}

static tundish_status
read_file_apply(const void *memory, const struct frame *input, struct frame *output)
{
    const struct read_file *state = memory;

    decode_text_apply(&state->targets, input, output, decode, (void *)(uintptr_t)state->root);
    return TUNDISH_OK;
}

static void
read_file_close(void *memory)
{
    struct read_file *state = memory;

    content_targets_close(&state->targets);
}

const struct content_ops content_read_file = {
    .name = "read_file",
    .takes_missing = true,
    .whole_files = true,
    .state_bytes = sizeof(struct read_file),
    .open = read_file_open,
    .apply = read_file_apply,
    .close = read_file_close,
};
