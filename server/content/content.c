/* content.c - the table of content stages, and their common parameters. */
#include "content/content.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "spec/columns.h"

#define CONTENT(name) extern const struct content_ops content_##name;
#include "content/stages.def"
#undef CONTENT

static const struct content_ops *const table[] = {
#define CONTENT(name) &content_##name,
#include "content/stages.def"
#undef CONTENT
    NULL,
};

const struct content_ops *
content_find(const char *name)
{
    for (size_t i = 0; table[i] != NULL; i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}

/* The names that the targets have in the output. */
static tundish_status
output_names(const struct content_config *config, const struct name_list *columns,
             struct name_list *ret_names, bool *ret_given)
{
    const struct spec_value *output = spec_get(config->stage, "output");

    *ret_given = output != NULL;
    if (output == NULL)
        return TUNDISH_OK;
    return spec_output_names(output, columns, config->errors, ret_names);
}

static tundish_status
only_column(const struct content_config *config, struct name_list *ret_list)
{
    if (config->input->count != 1)
        return content_complain(config, "%s needs columns: the element has %u of them",
                                config->stage->info->name, config->input->count);
    ret_list->count = 1;
    ret_list->names = tnd_zalloc(1, sizeof *ret_list->names);
    ret_list->names[0] = tnd_strdup(config->input->columns[0].name);
    return TUNDISH_OK;
}

static tundish_status
place_targets(const struct content_config *config, const struct name_list *columns,
              const struct name_list *outputs, bool given, struct schema *schema,
              struct content_targets *targets)
{
    for (size_t i = 0; i < columns->count; i++) {
        struct content_target *target = &targets->list[targets->count++];
        int32_t index = schema_find(config->input, columns->names[i]);

        target->input = (uint32_t)index;
        if (!given) {
            target->output = target->input;
        } else {
            const struct spec_value *output = spec_get(config->stage, "output");

            if (schema_find(schema, outputs->names[i]) >= 0)
                return spec_complain(config->errors, output->line, output->column,
                                     "output '%s' is a column already", outputs->names[i]);
            target->output = schema->count;
            schema_pass(schema, config->input, target->input);
            free(schema->columns[target->output].name);
            schema->columns[target->output].name = tnd_strdup(outputs->names[i]);
        }
        schema->columns[target->output].passed_from = -1;
    }
    return TUNDISH_OK;
}

tundish_status
content_targets_open(const struct content_config *config, struct schema *ret_schema,
                     struct content_targets *ret_targets)
{
    const struct spec_value *value = spec_get(config->stage, "columns");
    struct name_list columns = { 0 };
    struct name_list outputs = { 0 };
    const char **known = schema_names(config->input);
    bool given = false;
    tundish_status status;

    status = value == NULL ? only_column(config, &columns)
                           : spec_expand_columns(value, known, config->input->count, config->errors,
                                                 &columns);
    if (status == TUNDISH_OK)
        status = output_names(config, &columns, &outputs, &given);
    if (status == TUNDISH_OK) {
        schema_pass_all(ret_schema, config->input);
        ret_targets->list = tnd_zalloc(columns.count, sizeof *ret_targets->list);
        status = place_targets(config, &columns, &outputs, given, ret_schema, ret_targets);
    }
    free(known);
    name_list_close(&columns);
    name_list_close(&outputs);
    return status;
}

void
content_targets_close(struct content_targets *targets)
{
    free(targets->list);
    *targets = (struct content_targets){ 0 };
}
