/* helper_allowed.c - names are compared, as texts: a request cannot make this machine look at a
 * file that it may not name. */
#include "helpers/helper_allowed.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "source/source.h"

struct texts {
    const char **list;
    size_t count;
};

struct allowed_files {
    const struct spec_file *spec;
    struct texts names;    /* in byte order */
    struct texts patterns; /* of list_files */
    struct texts folders;  /* owned, and ways to them: "/data/" */
    bool are_in_rows;      /* some names are */
};

static void
add(struct texts *texts, const char *text)
{
    texts->list = tnd_grow(texts->list, texts->count, sizeof *texts->list);
    texts->list[texts->count++] = text;
}

static void
add_all(struct texts *texts, const struct spec_value *value)
{
    if (value != NULL && value->kind == SPEC_TEXT)
        add(texts, value->text);
    if (value != NULL && (value->kind == SPEC_LIST || value->kind == SPEC_MAP))
        for (uint32_t i = 0; i < value->count; i++)
            add_all(texts, &value->items[i]);
}

/* The folder that a name, or what a pattern matches, lies in: as far as no character is special. */
static void
add_folder(struct allowed_files *files, const char *text)
{
    char *path = spec_path(files->spec, text);
    char *end = path + strcspn(path, "*?[\\");

    while (end > path && end[-1] != '/')
        end--;
    *end = '\0';
    add(&files->folders, path);
}

/* Are its elements, or what stages make of them, more than the pipeline file itself says? */
static bool
has_rows(const struct plan_node *node)
{
    if (node->content != NULL || (node->body != NULL && has_rows(node->body->root)) ||
        (node->source != NULL && !node->source->lists_files &&
         node->source->words != WORDS_ARE_THE_SAME))
        return true;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (has_rows(node->inputs[i]))
            return true;
    return false;
}

static bool
rows_are_outside(const struct plan_graph *graph)
{
    for (; graph->outer != NULL; graph = graph->outside)
        if (has_rows(graph->outer))
            return true;
    return false;
}

/* Not if an outer element says it. */
static bool
says_names(const struct spec_value *value)
{
    if (value == NULL || value->kind != SPEC_LIST)
        return value != NULL && value->kind == SPEC_TEXT;
    for (uint32_t i = 0; i < value->count; i++)
        if (!says_names(&value->items[i]))
            return false;
    return true;
}

/* A pattern stored in a tensor is data, so the files that it matches count as named by rows. */
static void
add_paths(struct allowed_files *files, const struct plan_graph *graph, const struct plan_node *node,
          const struct spec_value *value)
{
    bool lists = node->source->lists_files;

    add_all(lists ? &files->patterns : &files->names, value);
    if (!says_names(value) && (lists || rows_are_outside(graph)))
        files->are_in_rows = true;
}

static void
add_source(struct allowed_files *files, const struct plan_graph *graph,
           const struct plan_node *node)
{
    const struct stage_info *info = node->stage->info;

    for (uint32_t i = 0; i < info->parameter_count; i++)
        if ((info->parameters[i].types & TYPE_PATHS) != 0)
            add_paths(files, graph, node, node->stage->arguments[i]);
        else if ((info->parameters[i].types & TYPE_ENTRIES) != 0)
            add_all(&files->names, node->stage->arguments[i]); /* tensors may name files */
    if (node->source->own_files != NULL) {
        char *inside = tnd_sprintf("%s/", spec_text(node->stage, "directory"));

        add_folder(files, inside);
        free(inside);
    }
}

static void
add_graph(struct allowed_files *files, const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        if (node->source != NULL && node->stage != NULL)
            add_source(files, graph, node);
        if (node->body != NULL)
            add_graph(files, node->body);
    }
}

static int
compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct allowed_files *
allowed_files_open(const struct plan *plan)
{
    struct allowed_files *files = tnd_zalloc(1, sizeof *files);

    files->spec = plan->file;
    add_graph(files, plan->graph);
    if (files->names.count > 0)
        qsort(files->names.list, files->names.count, sizeof *files->names.list, compare);
    for (size_t i = 0; files->are_in_rows && i < files->names.count; i++)
        add_folder(files, files->names.list[i]);
    for (size_t i = 0; files->are_in_rows && i < files->patterns.count; i++)
        add_folder(files, files->patterns.list[i]);
    return files;
}

void
allowed_files_close(struct allowed_files *files)
{
    if (files == NULL)
        return;
    for (size_t i = 0; i < files->folders.count; i++)
        free((void *)(uintptr_t)files->folders.list[i]);
    free(files->folders.list);
    free(files->patterns.list);
    free(files->names.list);
    free(files);
}

static bool
leads_up(const char *part, size_t bytes)
{
    return bytes == 2 && memcmp(part, "..", 2) == 0;
}

/* No * or ? stands for "..", which a folder does not list. */
static bool
matches(const char *pattern, const char *name)
{
    if (fnmatch(pattern, name, FNM_PATHNAME) != 0)
        return false;
    for (;;) {
        size_t bytes = strcspn(name, "/"), others = strcspn(pattern, "/");

        if (leads_up(name, bytes) && !leads_up(pattern, others))
            return false;
        if (name[bytes] == '\0')
            return true;
        name += bytes + 1;
        pattern += others + 1;
    }
}

/* The next part of a path that is not "", nor "."; empty after the last. */
static size_t
next_part(const char **path)
{
    size_t bytes;

    do {
        *path += strspn(*path, "/");
        bytes = strcspn(*path, "/");
        if (bytes != 1 || **path != '.')
            return bytes;
        *path += bytes;
    } while (true);
}

static bool
lies_beneath(const char *folder, const char *path)
{
    bool is_inside = false;
    size_t bytes, others;

    while ((bytes = next_part(&folder)) > 0) {
        others = next_part(&path);
        if (others != bytes || memcmp(path, folder, bytes) != 0)
            return false;
        folder += bytes;
        path += bytes;
    }
    while ((others = next_part(&path)) > 0 && !leads_up(path, others)) {
        is_inside = true;
        path += others;
    }
    return is_inside && others == 0;
}

static bool
is_allowed(const struct allowed_files *files, const char *name)
{
    char *path;
    bool is_beneath = false;

    if (files->names.count > 0 && bsearch(&name, files->names.list, files->names.count,
                                          sizeof *files->names.list, compare) != NULL)
        return true;
    for (size_t i = 0; i < files->patterns.count; i++)
        if (matches(files->patterns.list[i], name))
            return true;
    path = spec_path(files->spec, name);
    for (size_t i = 0; i < files->folders.count && !is_beneath; i++)
        is_beneath = lies_beneath(files->folders.list[i], path);
    free(path);
    return is_beneath;
}

tundish_status
allowed_files_check(const struct allowed_files *files, const char *name)
{
    return is_allowed(files, name)
               ? TUNDISH_OK
               : tnd_fail(TUNDISH_E_DATA, "%s: the pipeline file names no such file", name);
}
