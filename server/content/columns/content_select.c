/* content_select.c - only the named columns, in the order of their naming. */
#include <stdlib.h>

#include "content/content.h"
#include "spec/column_list.h"

static tundish_status
select_open(void *state, const struct stage_config *config, struct schema *ret_schema,
            bool *ret_batch_wide)
{
    const char **known = schema_names(config->input);
    struct spec_names names = { 0 };
    tundish_status status = spec_expand_columns(spec_get(config->stage, "columns"), known,
                                                config->input->count, config->errors, &names);

    (void)state;
    *ret_batch_wide = false;
    if (status == TUNDISH_OK)
        for (size_t i = 0; i < names.count; i++)
            schema_pass(ret_schema, config->input,
                        (uint32_t)schema_find(config->input, names.names[i]));
    free(known);
    spec_names_close(&names);
    return status;
}

const struct content_ops content_select = {
    .name = "select",
    .keeps_pixels = true,
    .open = select_open,
    .takes_words = content_takes_words,
    .apply = content_apply_passing,
    .close = content_close_stateless,
};
