/* content_drop.c - every column but the named ones. */
#include <stdlib.h>

#include "content/content.h"
#include "spec/column_list.h"

static tundish_status
drop_open(void *state, const struct stage_config *config, struct schema *ret_schema,
          bool *ret_batch_wide)
{
    const char **known = schema_names(config->input);
    struct spec_names names = { 0 };
    tundish_status status = spec_expand_columns(spec_get(config->stage, "columns"), known,
                                                config->input->count, config->errors, &names);

    (void)state;
    *ret_batch_wide = false;
    if (status == TUNDISH_OK)
        for (uint32_t i = 0; i < config->input->count; i++)
            if (!spec_names_hold(&names, known[i]))
                schema_pass(ret_schema, config->input, i);
    free(known);
    spec_names_close(&names);
    return status;
}

const struct content_ops content_drop = {
    .name = "drop",
    .keeps_pixels = true,
    .open = drop_open,
    .takes_words = content_takes_words,
    .apply = content_apply_passing,
    .close = content_close_stateless,
};
