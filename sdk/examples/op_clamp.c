/* op_clamp.c - two transforms for `op` stages (tundish_op.h):
 *
 *     op: {library: "libop_clamp.so", name: clamp, parameters: [0, 10], columns: x}
 *     op: {library: "libop_clamp.so", name: initials, columns: [first, last], output: initials}
 *
 * clamp keeps float32 numbers within bounds, and refuses NaN. initials joins the first bytes of two
 * strings.
 */
#include <stdio.h>
#include <stdlib.h>

#include <tundish/tundish_op.h>

struct bounds {
    float low, high;
};

static const char *
clamp_open(const char *parameters, const tundish_op_spec *inputs, tundish_op_spec *outputs,
           void **ret_state)
{
    struct bounds *bounds = malloc(sizeof *bounds);

    *ret_state = bounds;
    if (bounds == NULL)
        return "there is no memory";
    if (sscanf(parameters, "[%f, %f]", &bounds->low, &bounds->high) != 2 ||
        !(bounds->low <= bounds->high))
        return "parameters are the lowest and the highest value, [0, 10] for instance";
    if (inputs[0].dtype != TUNDISH_FLOAT32)
        return "the column must be float32";
    outputs[0].dtype = TUNDISH_FLOAT32;
    return NULL;
}

static void
clamp_apply(const void *state, uint64_t count, const void *const *inputs, void *const *outputs,
            tundish_op_call *call)
{
    const struct bounds *bounds = state;
    const float *from = inputs[0];
    float *to = outputs[0];

    for (uint64_t i = 0; i < count; i++) {
        if (from[i] != from[i])
            call->reject(call, i, "NaN is not within any bounds");
        to[i] = from[i] < bounds->low    ? bounds->low
                : from[i] > bounds->high ? bounds->high
                                         : from[i];
    }
}

static const char *
initials_open(const char *parameters, const tundish_op_spec *inputs, tundish_op_spec *outputs,
              void **ret_state)
{
    (void)parameters;
    (void)ret_state;
    if (inputs[0].dtype != TUNDISH_STRING || inputs[1].dtype != TUNDISH_STRING)
        return "both columns must be strings";
    outputs[0].dtype = TUNDISH_STRING;
    return NULL;
}

static void
initials_apply(const void *state, uint64_t count, const void *const *inputs, void *const *outputs,
               tundish_op_call *call)
{
    tundish_op_text *to = outputs[0];

    (void)state;
    for (uint64_t i = 0; i < count; i++) {
        uint8_t *room = call->text_room(call, 2);

        to[i] = (tundish_op_text){ room, 0 };
        for (int k = 0; k < 2; k++) {
            const tundish_op_text *name = (const tundish_op_text *)inputs[k] + i;

            if (name->size > 0)
                room[to[i].size++] = name->data[0];
        }
    }
}

static const tundish_op clamp = {
    .version = TUNDISH_OP_VERSION,
    .size = sizeof(tundish_op),
    .name = "clamp",
    .help = "Keeps numbers within bounds.",
    .flags = TUNDISH_OP_PURE,
    .input_count = 1,
    .output_count = 1,
    .open = clamp_open,
    .apply = clamp_apply,
    .close = free,
};

static const tundish_op initials = {
    .version = TUNDISH_OP_VERSION,
    .size = sizeof(tundish_op),
    .name = "initials",
    .help = "The first bytes of two strings.",
    .flags = TUNDISH_OP_PURE,
    .input_count = 2,
    .output_count = 1,
    .open = initials_open,
    .apply = initials_apply,
    .close = free,
};

const tundish_op *const *
tundish_ops(void)
{
    static const tundish_op *const all[] = { &clamp, &initials, NULL };

    return all;
}
