/* op_object.c - find an op in a shared object. */
#include "content/custom/op_object.h"

#include <string.h>

#include "spec/shared_object.h"

/* Refuse an op that this build cannot call safely. */
static tundish_status
check_op(const struct stage_config *config, const tundish_op *op)
{
    if (op->version != TUNDISH_OP_VERSION || op->size < sizeof *op)
        return stage_complain(config, "op %s is made for version %u of tundish_op.h, not %u",
                              op->name, op->version, TUNDISH_OP_VERSION);
    if ((op->flags & ~(TUNDISH_OP_PURE | TUNDISH_OP_VECTORS)) != 0)
        return stage_complain(config, "op %s has flags that this build does not know (%#x)",
                              op->name, op->flags);
    if ((op->flags & TUNDISH_OP_PURE) == 0)
        return stage_complain(config, "op %s does not set the flag TUNDISH_OP_PURE", op->name);
    if (op->input_count < 1 || op->input_count > OP_COLUMNS_MAX || op->output_count < 1 ||
        op->output_count > OP_COLUMNS_MAX || op->open == NULL || op->apply == NULL ||
        op->close == NULL)
        return stage_complain(config, "op %s: its struct tundish_op is incomplete", op->name);
    return TUNDISH_OK;
}

tundish_status
op_object_find(const struct stage_config *config, const tundish_op **ret_op)
{
    const char *library = spec_text(config->stage, "library");
    const char *name = spec_text(config->stage, "name");
    const tundish_op *const *(*ops)(void) = NULL;
    const tundish_op *const *list;
    tundish_status status = spec_load(config->stage, config->errors, "tundish_ops", (void **)&ops);

    if (status != TUNDISH_OK)
        return status;
    list = ops();
    for (; list != NULL && *list != NULL; list++)
        if ((*list)->name != NULL && strcmp((*list)->name, name) == 0) {
            *ret_op = *list;
            return check_op(config, *list);
        }
    return stage_complain(config, "op: %s has no transform '%s'", library, name);
}
