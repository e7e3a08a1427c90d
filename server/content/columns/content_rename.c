/* content_rename.c - the same columns under other names. */
#include <stdlib.h>

#include "content/content.h"
#include "core/memory.h"

/* Complain of each old name that no column has, rather than of the first alone. */
static tundish_status
check_old_names(const struct stage_config *config, const struct spec_value *names)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < names->count; i++) {
        const struct spec_value *key = &names->keys[i];
        const char **known, *nearest;

        if (schema_find(config->input, key->text) >= 0)
            continue;
        known = schema_names(config->input);
        nearest = spec_nearest(key->text, known, config->input->count);
        status = spec_complain(config->errors, key->line, key->column,
                               "there is no column '%s' to rename%s", key->text,
                               spec_hint(nearest, "'").text);
        free(known);
    }
    return status;
}

static tundish_status
rename_open(void *state, const struct stage_config *config, struct schema *ret_schema,
            bool *ret_batch_wide)
{
    const struct spec_value *names = config->stage->arguments[0];
    tundish_status status = check_old_names(config, names);

    (void)state;
    *ret_batch_wide = false;
    for (uint32_t i = 0; i < config->input->count && status == TUNDISH_OK; i++) {
        const struct spec_value *name = spec_map_get(names, config->input->columns[i].name);
        const char *text = name != NULL ? name->text : config->input->columns[i].name;

        /* The columns before this one have their new names already, so two columns may swap
         * names. */
        if (schema_find(ret_schema, text) >= 0)
            return spec_complain(config->errors, (name != NULL ? name : names)->line,
                                 (name != NULL ? name : names)->column,
                                 "two columns would be called '%s'", text);
        schema_pass_as(ret_schema, config->input, i, text);
    }
    return status;
}

const struct content_ops content_rename = {
    .name = "rename",
    .open = rename_open,
    .takes_words = content_takes_words,
    .apply = content_apply_passing,
    .close = content_close_stateless,
};
