/* example_file.c - see example_file.h. */
#include "source/example_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "source/files/matching_files.h"

static char *first_of(const struct plan_graph *graph, const struct spec_value *list,
                      const struct spec_file *file);
static char *example_of(const struct plan_graph *graph, const struct plan_node *node,
                        const char *column, const struct spec_file *file);

/* The meaning of $name in `graph`: a column of the nearest outer element that has one. */
static char *
example_of_outer(const struct plan_graph *graph, const char *name, const struct spec_file *file)
{
    for (; graph != NULL && graph->outer != NULL; graph = graph->outside)
        if (schema_find(&graph->outer->schema, name) >= 0)
            return example_of(graph->outside, graph->outer, name, file);
    return NULL;
}

/* Each node may have only some of the files. */
static bool
is_there(const char *name, const struct spec_file *file)
{
    char *path = spec_path(file, name);
    bool is_found = spec_is_url(path) || access(path, F_OK) == 0;

    free(path);
    return is_found;
}

/* The first text in nested lists that names a file, else the first. */
static char *
first_text(const struct plan_graph *graph, const struct spec_value *value,
           const struct spec_file *file)
{
    if (value == NULL)
        return NULL;
    if (value->kind == SPEC_LIST)
        return first_of(graph, value, file);
    if (value->kind == SPEC_VARIABLE)
        return example_of_outer(graph, value->text, file);
    return value->kind == SPEC_TEXT ? tnd_strdup(value->text) : NULL;
}

static char *
first_of(const struct plan_graph *graph, const struct spec_value *list,
         const struct spec_file *file)
{
    char *first = NULL;

    for (uint32_t i = 0; i < list->count; i++) {
        char *name = first_text(graph, &list->items[i], file);

        if (name != NULL && is_there(name, file)) {
            free(first);
            return name;
        }
        if (first == NULL)
            first = name;
        else
            free(name);
    }
    return first;
}

static char *
first_match(const struct spec_value *patterns, const struct spec_file *file)
{
    const struct spec_value *each = patterns->kind == SPEC_LIST ? patterns->items : patterns;
    uint32_t count = patterns->kind == SPEC_LIST ? patterns->count : 1;
    char *name = NULL;

    for (uint32_t i = 0; i < count && name == NULL; i++) {
        struct matching_files found = { 0 };

        if (each[i].kind != SPEC_TEXT ||
            matching_files_find(&(struct path_base){ .root = file->root, .remote = &file->remote },
                                &each[i].text, 1, &found) != TUNDISH_OK)
            continue;
        if (found.count > 0)
            name = tnd_strdup(found.paths[0]);
        matching_files_close(&found);
    }
    return name;
}

static char *
example_of_source(const struct plan_graph *graph, const struct plan_node *node, const char *column,
                  const struct spec_file *file)
{
    const struct spec_stage *stage = node->stage;
    const struct spec_value *tensors;

    if (stage == NULL)
        return NULL;
    if (node->source->lists_files)
        return first_match(spec_get(stage, "file_pattern"), file);
    if (!node->source->order.is_list)
        return NULL;
    if (stage_parameter(stage->info, "filenames") >= 0)
        return first_text(graph, spec_get(stage, "filenames"), file);
    tensors = stage_parameter(stage->info, "tensors") >= 0 ? spec_get(stage, "tensors") : NULL;
    return tensors != NULL ? first_text(graph, spec_map_get(tensors, column), file) : NULL;
}

/* An element's column, followed to where it comes from, as long as stages only pass it on. */
static char *
example_of(const struct plan_graph *graph, const struct plan_node *node, const char *column,
           const struct spec_file *file)
{
    if (node->body != NULL)
        return example_of(node->body, node->body->root, column, file);
    if (node->source != NULL)
        return example_of_source(graph, node, column, file);
    if (node->input_count == 0 || schema_find(&node->inputs[0]->schema, column) < 0)
        return NULL;
    return example_of(graph, node->inputs[0], column, file);
}

tundish_status
example_file(const struct stage_config *config, char **ret_name)
{
    const struct spec_value *names = spec_get(config->stage, "filenames");
    char *name = names == NULL || names->kind == SPEC_NULL
                     ? example_of_outer(config->graph, "value", config->stage->file)
                     : first_text(config->graph, names, config->stage->file);

    if (name == NULL)
        return stage_complain(config,
                              "%s must know one of its files when the pipeline is planned, because "
                              "its columns' types stand there: name it in filenames, or let "
                              "list_files find it",
                              config->stage->info->name);
    *ret_name = name;
    return TUNDISH_OK;
}
