/* content_drop.c - every column but the named ones. */
#include <stdlib.h>
#include <string.h>

#include "content/content.h"
#include "pipeline/column_list.h"

static bool
is_listed(const struct name_list *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->names[i], name) == 0)
            return true;
    return false;
}

static tundish_status
drop_open(void *state, const struct stage_config *config, struct schema *ret_schema,
          bool *ret_batch_wide)
{
    const char **known = schema_names(config->input);
    struct name_list names = { 0 };
    tundish_status status = spec_expand_columns(spec_get(config->stage, "columns"), known,
                                                config->input->count, config->errors, &names);

    (void)state;
    *ret_batch_wide = false;
    if (status == TUNDISH_OK)
        for (uint32_t i = 0; i < config->input->count; i++)
            if (!is_listed(&names, known[i]))
                schema_pass(ret_schema, config->input, i);
    free(known);
    name_list_close(&names);
    return status;
}

static tundish_status
drop_apply(const void *state, const struct frame *input, struct frame *output)
{
    (void)state;
    (void)input;
    (void)output; /* every column is passed on */
    return TUNDISH_OK;
}

static void
drop_close(void *state)
{
    (void)state;
}

const struct content_ops content_drop = {
    .name = "drop",
    .keeps_pixels = true,
    .open = drop_open,
    .apply = drop_apply,
    .close = drop_close,
};
