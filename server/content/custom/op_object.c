/* op_object.c - find an op in a shared object. The object is never unloaded: pointers into it may
 * be in use. */
#include "content/custom/op_object.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/memory.h"

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
    /* A name without a slash is searched for by the dynamic linker. */
    char *path = strchr(library, '/') != NULL ? spec_path(config->stage->file, library)
                                              : tnd_strdup(library);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const tundish_op *const *(*ops)(void) = NULL;
    const tundish_op *const *list;

    free(path);
    if (object == NULL)
        return stage_complain(config, "op: %s", dlerror());
    *(void **)&ops = dlsym(object, "tundish_ops");
    if (ops == NULL)
        return stage_complain(config, "op: %s does not export tundish_ops", library);
    list = ops();
    for (; list != NULL && *list != NULL; list++)
        if ((*list)->name != NULL && strcmp((*list)->name, name) == 0) {
            *ret_op = *list;
            return check_op(config, *list);
        }
    return stage_complain(config, "op: %s has no transform '%s'", library, name);
}

static void
write_parameters(struct json *json, const struct spec_value *value)
{
    if (value == NULL || value->kind == SPEC_NULL) {
        json_null(json);
    } else if (value->kind == SPEC_LIST) {
        json_array(json);
        for (uint32_t i = 0; i < value->count; i++)
            write_parameters(json, &value->items[i]);
        json_array_end(json);
    } else if (value->kind == SPEC_MAP) {
        json_object(json);
        for (uint32_t i = 0; i < value->count; i++) {
            json_key(json, value->keys[i].text);
            write_parameters(json, &value->items[i]);
        }
        json_object_end(json);
    } else if (value->kind == SPEC_BOOL) {
        json_bool(json, value->boolean);
    } else if (value->kind == SPEC_INTEGER) {
        json_int(json, value->integer);
    } else if (value->kind == SPEC_NATURAL) {
        json_uint(json, value->natural);
    } else if (value->kind == SPEC_NUMBER) {
        json_float(json, value->number, 17);
    } else {
        json_text(json, value->text);
    }
}

char *
op_object_parameters(const struct stage_config *config)
{
    struct json json;
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    tnd_must_have(file != NULL);
    json_start(&json, file);
    write_parameters(&json, spec_get(config->stage, "parameters"));
    tnd_must_have(fclose(file) == 0);
    return text;
}
