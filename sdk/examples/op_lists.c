/* op_lists.c - transforms for `op` stages that make lists or take vectors (tundish_op.h):
 *
 *     op: {library: "libop_lists.so", name: pieces, parameters: 3, columns: text}
 *     op: {library: "libop_lists.so", name: unit_length, columns: embedding}
 *
 * pieces cuts a string into pieces of a number of bytes and returns a number for each, as a
 * tokenizer does. The result is a ragged column. unit_length divides a vector by its length.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tundish/tundish_op.h>

static const char *
pieces_open(const char *parameters, const tundish_op_spec *inputs, tundish_op_spec *outputs,
            void **ret_state)
{
    unsigned *piece_bytes = malloc(sizeof *piece_bytes);

    *ret_state = piece_bytes;
    if (piece_bytes == NULL)
        return "there is no memory";
    if (sscanf(parameters, "%u", piece_bytes) != 1 || *piece_bytes < 1 || *piece_bytes > 4)
        return "parameters is the number of bytes in a piece, from 1 to 4";
    if (inputs[0].dtype != TUNDISH_STRING)
        return "the column must be of strings";
    outputs[0] = (tundish_op_spec){ TUNDISH_INT64, TUNDISH_OP_LIST };
    return NULL;
}

static void
pieces_apply(const void *state, uint64_t count, const void *const *inputs, void *const *outputs,
             tundish_op_call *call)
{
    const unsigned *piece_bytes = state;
    const tundish_op_text *texts = inputs[0];

    (void)outputs;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t pieces = (texts[i].size + *piece_bytes - 1) / *piece_bytes;
        int64_t *numbers = call->list_room(call, 0, i, pieces);

        if (numbers == NULL) {
            call->reject(call, i, "there are too many pieces");
            continue;
        }
        for (uint64_t k = 0; k < texts[i].size; k++)
            numbers[k / *piece_bytes] = numbers[k / *piece_bytes] * 256 + texts[i].data[k];
    }
}

static const char *
unit_length_open(const char *parameters, const tundish_op_spec *inputs, tundish_op_spec *outputs,
                 void **ret_state)
{
    uint32_t *width = malloc(sizeof *width);

    (void)parameters;
    *ret_state = width;
    if (width == NULL)
        return "there is no memory";
    if (inputs[0].dtype != TUNDISH_FLOAT32)
        return "the column must be float32";
    *width = inputs[0].width;
    outputs[0] = inputs[0];
    return NULL;
}

static void
unit_length_apply(const void *state, uint64_t count, const void *const *inputs,
                  void *const *outputs, tundish_op_call *call)
{
    const uint32_t *width = state;

    for (uint64_t i = 0; i < count; i++) {
        const float *from = (const float *)inputs[0] + i * *width;
        float *to = (float *)outputs[0] + i * *width;
        float sum = 0;

        for (uint32_t k = 0; k < *width; k++)
            sum += from[k] * from[k];
        if (!(sum > 0))
            call->reject(call, i, "a vector of zeros has no direction");
        for (uint32_t k = 0; k < *width; k++)
            to[k] = from[k] / sqrtf(sum);
    }
}

static const tundish_op pieces = {
    .version = TUNDISH_OP_VERSION,
    .size = sizeof(tundish_op),
    .name = "pieces",
    .help = "Numbers for the pieces of a string.",
    .flags = TUNDISH_OP_PURE,
    .input_count = 1,
    .output_count = 1,
    .open = pieces_open,
    .apply = pieces_apply,
    .close = free,
};

static const tundish_op unit_length = {
    .version = TUNDISH_OP_VERSION,
    .size = sizeof(tundish_op),
    .name = "unit_length",
    .help = "Divides vectors by their length.",
    .flags = TUNDISH_OP_PURE | TUNDISH_OP_VECTORS,
    .input_count = 1,
    .output_count = 1,
    .open = unit_length_open,
    .apply = unit_length_apply,
    .close = free,
};

const tundish_op *const *
tundish_ops(void)
{
    static const tundish_op *const all[] = { &pieces, &unit_length, NULL };

    return all;
}
