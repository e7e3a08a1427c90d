/* shared_object.c - see shared_object.h. */
#include "spec/shared_object.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/memory.h"

tundish_status
spec_load(const struct spec_stage *stage, struct spec_errors *errors, const char *symbol,
          void **ret_symbol)
{
    const char *library = spec_text(stage, "library");
    char *path =
        strchr(library, '/') != NULL ? spec_path(stage->file, library) : tnd_strdup(library);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *found;

    free(path);
    if (object == NULL)
        return spec_complain(errors, stage->line, stage->column, "%s: %s", stage->info->name,
                             dlerror());
    found = dlsym(object, symbol);
    if (found == NULL)
        return spec_complain(errors, stage->line, stage->column, "%s: %s does not export %s",
                             stage->info->name, library, symbol);
    *ret_symbol = found;
    return TUNDISH_OK;
}

static void
write_value(struct json *json, const struct spec_value *value)
{
    if (value == NULL || value->kind == SPEC_NULL) {
        json_null(json);
    } else if (value->kind == SPEC_LIST) {
        json_array(json);
        for (uint32_t i = 0; i < value->count; i++)
            write_value(json, &value->items[i]);
        json_array_end(json);
    } else if (value->kind == SPEC_MAP) {
        json_object(json);
        for (uint32_t i = 0; i < value->count; i++) {
            json_key(json, value->keys[i].text);
            write_value(json, &value->items[i]);
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
spec_json(const struct spec_value *value)
{
    struct json json;
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);

    tnd_must_have(file != NULL);
    json_start(&json, file);
    write_value(&json, value);
    tnd_must_have(fclose(file) == 0);
    return text;
}
