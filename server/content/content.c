/* content.c - the table of content stages, and their common parameters. */
#include "content/content.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "spec/column_list.h"

#define CONTENT(name, ...) extern const struct content_ops content_##name;
#define PLANNED_CONTENT(name) CONTENT(name, )
#include "spec/stages.def"

static const struct content_ops *const table[] = {
#define CONTENT(name, ...) &content_##name,
#define PLANNED_CONTENT(name) CONTENT(name, )
#include "spec/stages.def"
};

const struct content_ops *
content_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}

tundish_status
content_apply_passing(const void *state, const struct frame *input, struct frame *output)
{
    (void)state;
    (void)input;
    (void)output;
    return TUNDISH_OK;
}

void
content_close_stateless(void *state)
{
    (void)state;
}

bool
content_takes_words(const void *state, uint32_t column, struct words_maker *ret_maker)
{
    (void)state;
    (void)column;
    (void)ret_maker;
    return true;
}

bool
content_draws(const struct content_ops *ops, const struct spec_stage *stage)
{
    return ops->draws && spec_bool(stage, "training");
}

/* The names that the targets have in the output. */
static tundish_status
output_names(const struct stage_config *config, const struct spec_names *columns,
             struct spec_names *ret_names, bool *ret_given)
{
    const struct spec_value *output = stage_parameter(config->stage->info, "output") < 0
                                          ? NULL
                                          : spec_get(config->stage, "output");

    *ret_given = output != NULL;
    if (output == NULL)
        return TUNDISH_OK;
    return spec_output_names(output, columns, config->errors, ret_names);
}

/* The default of `columns`: the element's only column. */
static tundish_status
only_column(const struct stage_config *config, struct spec_names *ret_list)
{
    if (config->input->count + (config->missing != NULL ? config->missing->count : 0) != 1)
        return stage_complain(config, "%s needs columns: the element has %u of them",
                              config->stage->info->name, config->input->count);
    ret_list->count = 1;
    ret_list->names = tnd_zalloc(1, sizeof *ret_list->names);
    ret_list->names[0] = tnd_strdup(config->input->count == 1 ? config->input->columns[0].name
                                                              : config->missing->names[0]);
    return TUNDISH_OK;
}

/* Choose where each target is written: where it was, or with `output` in a new column. */
static tundish_status
choose_outputs(const struct stage_config *config, const struct spec_names *columns,
               const struct spec_names *outputs, bool given, struct schema *schema,
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
            schema_pass_as(schema, config->input, target->input, outputs->names[i]);
        }
        schema->columns[target->output].passed_from = -1;
    }
    return TUNDISH_OK;
}

static void
add_name(struct spec_names *list, const char *name)
{
    list->names = tnd_realloc(list->names, list->count + 1, sizeof *list->names);
    list->names[list->count++] = tnd_strdup(name);
}

/* The columns' names, followed by those that are missing. */
static const char **
all_names(const struct stage_config *config, size_t *ret_count)
{
    const char **known = schema_names(config->input);

    *ret_count = config->input->count;
    if (config->missing == NULL)
        return known;
    known = tnd_realloc(known, *ret_count + config->missing->count + 1, sizeof *known);
    for (size_t i = 0; i < config->missing->count; i++)
        known[(*ret_count)++] = config->missing->names[i];
    return known;
}

/* Remove targets whose column is missing. Their results are missing too. */
static void
leave_missing(const struct stage_config *config, bool given, struct spec_names *columns,
              struct spec_names *outputs)
{
    size_t left = 0;

    for (size_t i = 0; config->missing != NULL && i < columns->count; i++) {
        if (!spec_names_hold(config->missing, columns->names[i])) {
            columns->names[left] = columns->names[i];
            if (given)
                outputs->names[left] = outputs->names[i];
            left++;
            continue;
        }
        if (given) {
            add_name(config->missing, outputs->names[i]);
            free(outputs->names[i]);
        }
        free(columns->names[i]);
    }
    if (config->missing == NULL)
        return;
    columns->count = left;
    if (given)
        outputs->count = left;
}

tundish_status
content_targets_open(const struct stage_config *config, struct schema *ret_schema,
                     struct content_targets *ret_targets)
{
    const struct spec_value *value = spec_get(config->stage, "columns");
    struct spec_names columns = { 0 };
    struct spec_names outputs = { 0 };
    size_t known_count;
    const char **known = all_names(config, &known_count);
    bool given = false;
    tundish_status status;

    status = value == NULL
                 ? only_column(config, &columns)
                 : spec_expand_columns(value, known, known_count, config->errors, &columns);
    if (status == TUNDISH_OK)
        status = output_names(config, &columns, &outputs, &given);
    if (status == TUNDISH_OK) {
        leave_missing(config, given, &columns, &outputs);
        schema_pass_all(ret_schema, config->input);
        ret_targets->list = tnd_zalloc(columns.count + 1, sizeof *ret_targets->list);
        status = choose_outputs(config, &columns, &outputs, given, ret_schema, ret_targets);
    }
    free(known);
    spec_names_close(&columns);
    spec_names_close(&outputs);
    return status;
}

void
content_sort_columns(struct schema *schema, struct content_targets *targets)
{
    uint32_t *places = tnd_alloc((schema->count + 1) * sizeof *places);

    schema_sort(schema, places);
    for (uint32_t t = 0; t < targets->count; t++)
        targets->list[t].output = places[targets->list[t].output];
    free(places);
}

tundish_status
content_column_named(const struct stage_config *config, const char *parameter, uint32_t *ret_index)
{
    const struct spec_value *value = spec_get(config->stage, parameter);
    int32_t index = schema_find(config->input, value->text);
    const char **known;
    const char *nearest;

    if (index >= 0) {
        *ret_index = (uint32_t)index;
        return TUNDISH_OK;
    }
    known = schema_names(config->input);
    nearest = spec_nearest(value->text, known, config->input->count);
    spec_complain(config->errors, value->line, value->column, "%s: there is no column '%s'%s",
                  parameter, value->text, spec_hint(nearest, "'").text);
    free(known);
    return TUNDISH_E_PIPELINE;
}

void
content_targets_close(struct content_targets *targets)
{
    free(targets->list);
    *targets = (struct content_targets){ 0 };
}
