/* place_files.c - a stream's files, found by walking its stages. */
#include "session/checkpoint/place_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "content/content.h"
#include "core/clock.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/parallel_for.h"
#include "core/redact.h"
#include "plan/outer_texts.h"
#include "remote/seen.h"
#include "session/checkpoint/place_code.h"
#include "session/checkpoint/place_elsewhere.h"
#include "session/checkpoint/place_hashes.h"
#include "source/files/catalogue.h"
#include "source/files/matching_files.h"
#include "source/source.h"

/* On a network's file system each call waits for an answer, so as many files are looked at at a
 * time; few of them are not worth a thread, unless the first opens slowly. */
enum { LOOKERS = 64, FILES_A_LOOKER = 4, SLOW_LOOKERS = 128 };
static const int64_t SLOW_NS = 2000000;
/* From as many files in a row on, it is worth opening their folder, from which each is found sooner
 * than from the root. */
enum { FILES_A_FOLDER = 64, FOLDERS = 16 };

/* Where a file is looked at. */
struct target {
    const char *path; /* from the folder; NULL: its hash is known */
    int folder;       /* or AT_FDCWD */
};

struct folders {
    int open[FOLDERS];
    int count;
    const char *path; /* of the last file, with its folder's bytes */
    size_t bytes;
    int last; /* that folder, or AT_FDCWD */
    uint32_t in_a_row;
};

struct search {
    const struct spec_file *spec;
    const struct plan_graph *top;
    struct place_files files;
    struct target *targets; /* of each file */
    struct folders folders;
    uint64_t key;                      /* of all patterns, by which hashes are kept */
    bool in_data;                      /* of what is being added */
    bool are_local;                    /* each node has some of the files */
    const struct catalogue *catalogue; /* of all nodes' files, or NULL */
    struct remote_seen *seen;
    struct listed *listed;
};

/* Returns the file, which the next call may move. Takes over the name. */
static struct place_file *
add_entry(struct search *search, char *name, uint64_t hash)
{
    struct place_files *files = &search->files;
    uint32_t index = files->count++;

    files->list = tnd_grow(files->list, index, sizeof *files->list);
    search->targets = tnd_grow(search->targets, index, sizeof *search->targets);
    search->targets[index] = (struct target){ NULL, AT_FDCWD };
    files->list[index] = (struct place_file){
        .name = name,
        .raw_hash = hash,
        .is_data = search->in_data,
    };
    return &files->list[index];
}

static struct place_file *
add_match(struct search *search, const char *name, uint64_t hash)
{
    return add_entry(search, tnd_strdup(name), hash);
}

static void
add_vocabulary(void *context, const char *name, uint64_t hash)
{
    add_match(context, name, hash);
}

/* One entry for each stage: its results lie in a folder that users seldom look into, so the stage's
 * name says more. */
static void
add_learned(struct search *search, const struct plan_node *node)
{
    char *name = tnd_sprintf("what %s learned", node->name);

    add_match(search, name, node->learned_hash);
    free(name);
}

static void
add_code(struct search *search, const struct plan_node *node)
{
    char *name = tnd_sprintf("the code of %s (line %u), which decides the order,", node->name,
                             node->stage->line);

    add_match(search, name, place_code_of(node));
    free(name);
}

uint64_t
place_object_hash(uint64_t bytes, uint64_t tag_hash)
{
    uint64_t words[2] = { bytes, tag_hash };

    return tnd_hash_farm_chain(0, words, sizeof words);
}

/* An object's ETag says what it is; reading samples of it would take a part of it each. */
static void
add_object(struct search *search, const struct remote_match *object)
{
    struct place_file *file;
    /* A signature is another one each time that an address is signed. */
    char *name = tnd_strdup(object->name);

    tnd_redact(name);
    file = add_match(search, name, place_object_hash(object->bytes, object->hash));
    file->is_here = true;
    file->url = tnd_strdup(object->name);
    file->bytes = object->bytes;
    free(name);
}

static tundish_status
add_url(struct search *search, const char *url)
{
    struct remote_match found = { 0 };
    struct remote *remote = NULL;
    tundish_status status = remote_get(&search->spec->remote, &remote);

    if (status == TUNDISH_OK)
        status = remote_seen_look(search->seen, remote, url, &found);
    if (status == TUNDISH_OK)
        add_object(search, &found);
    free(found.name);
    return status;
}

static tundish_status
add_urls(struct search *search, const char *pattern)
{
    struct remote_matches matches = { 0 };
    struct remote *remote = NULL;
    tundish_status status = remote_get(&search->spec->remote, &remote);

    if (status == TUNDISH_OK)
        status = remote_seen_list(search->seen, remote, pattern, &matches);
    for (size_t i = 0; i < matches.count; i++)
        add_object(search, &matches.list[i]);
    remote_matches_close(&matches);
    return status;
}

/* The path stays where it is until all files were looked at. */
static struct target
find_target(struct folders *folders, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t bytes = slash != NULL ? (size_t)(slash + 1 - path) : 0;

    if (folders->path == NULL || bytes != folders->bytes ||
        memcmp(path, folders->path, bytes) != 0) {
        folders->in_a_row = 0;
        folders->last = AT_FDCWD;
    }
    folders->path = path;
    folders->bytes = bytes;
    if (++folders->in_a_row == FILES_A_FOLDER && bytes > 0 && folders->count < FOLDERS) {
        char *name = tnd_strndup(path, bytes);
        int folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        free(name);
        if (folder >= 0)
            folders->last = folders->open[folders->count++] = folder;
    }
    return (struct target){ folders->last == AT_FDCWD ? path : path + bytes, folders->last };
}

static void
add_file(struct search *search, const char *name)
{
    const struct catalogue_file *known =
        search->catalogue != NULL ? catalogue_find(search->catalogue, name) : NULL;
    char *path = spec_path(search->spec, name);
    struct place_file *file =
        add_entry(search, path + strlen(path) - strlen(name), known != NULL ? known->hash : 0);

    file->path = path;
    if (known == NULL)
        search->targets[search->files.count - 1] = find_target(&search->folders, path);
    else
        file->is_here = access(path, F_OK) == 0;
}

static tundish_status
add_pattern(struct search *search, const char *pattern)
{
    struct matching_files list = { 0 };
    tundish_status status = TUNDISH_OK;

    if (spec_is_url(pattern))
        return add_urls(search, pattern);
    if (search->catalogue != NULL)
        catalogue_glob(search->catalogue, &pattern, 1, &list);
    else
        status = matching_files_find(
            &(struct path_base){ .root = search->spec->root, .listed = search->listed }, &pattern,
            1, &list);

    for (size_t i = 0; status == TUNDISH_OK && i < list.count; i++)
        add_file(search, list.paths[i]);
    matching_files_close(&list);
    return status;
}

/* All of a list are asked for before the first is waited for. */
static void
expect_urls(const struct search *search, const struct spec_value *list)
{
    struct remote *remote = NULL;

    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i].kind == SPEC_TEXT && spec_is_url(list->items[i].text) &&
            remote_get(&search->spec->remote, &remote) == TUNDISH_OK)
            remote_seen_expect(search->seen, remote, list->items[i].text);
}

/* A folder's files: known to be part of what is read only where other nodes have some of them. */
static tundish_status
add_own_files(struct search *search, const struct plan_node *node)
{
    const struct path_base base = { .root = search->spec->root, .catalogue = search->catalogue };
    struct matching_files list = { 0 };
    tundish_status status = node->source->own_files(node->state, &base, &list);

    for (size_t i = 0; status == TUNDISH_OK && i < list.count; i++)
        add_file(search, list.paths[i]);
    matching_files_close(&list);
    return status;
}

/* Which files a folder has decides the order of rows. Their bytes are not looked at: there may be
 * millions. */
static tundish_status
add_list(struct search *search, const struct plan_node *node)
{
    const struct path_base base = { .root = search->spec->root,
                                    .remote = &search->spec->remote,
                                    .seen = search->seen,
                                    .listed = search->listed };
    uint64_t hash = 0;
    tundish_status status = node->source->list_hash(node->state, &base, &hash);
    /* place_file_hash takes the part of a name after the last slash. */
    char *name = tnd_sprintf("%s/ (its list of files)", spec_text(node->stage, "directory"));

    tnd_redact(name);
    if (status == TUNDISH_OK)
        add_match(search, name, hash)->is_list = true;
    free(name);
    return status;
}

static tundish_status
walk_paths(struct search *search, const struct spec_value *value, bool are_patterns)
{
    tundish_status status = TUNDISH_OK;

    if (value == NULL)
        return TUNDISH_OK;
    if (value->kind == SPEC_TEXT)
        search->key = tnd_hash_farm_chain(search->key, value->text, strlen(value->text) + 1);
    if (value->kind == SPEC_TEXT && are_patterns)
        status = add_pattern(search, value->text);
    else if (value->kind == SPEC_TEXT && spec_is_url(value->text))
        status = add_url(search, value->text);
    else if (value->kind == SPEC_TEXT)
        add_file(search, value->text);
    if (value->kind == SPEC_LIST && !are_patterns)
        expect_urls(search, value);
    for (uint32_t i = 0; status == TUNDISH_OK && value->kind == SPEC_LIST && i < value->count; i++)
        status = walk_paths(search, &value->items[i], are_patterns);
    return status;
}

/* {npy: file}, anywhere among the values of a source in memory. */
static void
walk_arrays(struct search *search, const struct spec_value *value)
{
    if (value == NULL)
        return;
    for (uint32_t i = 0; value->kind == SPEC_MAP && i < value->count; i++)
        if (strcmp(value->keys[i].text, "npy") == 0 && value->items[i].kind == SPEC_TEXT)
            add_file(search, value->items[i].text);
        else
            walk_arrays(search, &value->items[i]);
}

/* The variable that the name of a reader's file is, inside a function, or NULL. */
static const char *
name_of_file(const struct plan_node *node)
{
    const struct spec_stage *stage = node->stage;

    if (node->source == NULL || node->reads_outer_name)
        return NULL;
    if (stage_parameter(stage->info, "filenames") >= 0 && spec_given(stage, "filenames"))
        return spec_get(stage, "filenames")->kind == SPEC_VARIABLE
                   ? spec_get(stage, "filenames")->text
                   : NULL;
    return node->source->reads_files ? "value" : NULL;
}

/* One that is not there may be one that no reader comes to. */
static tundish_status
add_named_url(struct search *search, const char *url)
{
    tundish_status status = add_url(search, url);
    char *name;

    if (status != TUNDISH_E_DATA)
        return status;
    name = tnd_strdup(url);
    tnd_redact(name);
    add_match(search, name, 0);
    free(name);
    return TUNDISH_OK;
}

/* Files that rows in memory name to a reader inside a function. */
static tundish_status
add_named(struct search *search, const struct plan_graph *graph, const char *variable)
{
    struct outer_texts names = plan_outer_texts(graph, variable);
    uint32_t first = search->files.count;
    struct remote *remote = NULL;
    tundish_status status = TUNDISH_OK;

    for (int64_t i = 0; i < names.count; i++) {
        char *name = tnd_strndup((const char *)names.texts[i].data, names.texts[i].size);

        if (spec_is_url(name) && remote_get(&search->spec->remote, &remote) == TUNDISH_OK)
            remote_seen_expect(search->seen, remote, name);
        free(name);
    }
    for (int64_t i = 0; i < names.count && status == TUNDISH_OK; i++) {
        char *name = tnd_strndup((const char *)names.texts[i].data, names.texts[i].size);

        if (spec_is_url(name))
            status = add_named_url(search, name);
        else
            add_file(search, name);
        free(name);
    }
    for (uint32_t i = first; i < search->files.count; i++)
        search->files.list[i].is_named = true;
    return status;
}

static tundish_status
walk_stage(struct search *search, const struct plan_graph *graph, const struct plan_node *node)
{
    const struct stage_info *info = node->stage->info;
    const char *variable;
    tundish_status status = TUNDISH_OK;

    search->in_data = node->source != NULL;
    for (uint32_t i = 0; i < info->parameter_count && status == TUNDISH_OK; i++)
        if (info->parameters[i].types & TYPE_PATHS)
            status = walk_paths(search, node->stage->arguments[i],
                                node->source != NULL && node->source->lists_files);
        else if (node->source != NULL)
            walk_arrays(search, node->stage->arguments[i]);
    variable = search->are_local ? NULL : name_of_file(node);
    if (status == TUNDISH_OK && variable != NULL)
        status = add_named(search, graph, variable);
    if (status == TUNDISH_OK && search->are_local && node->source != NULL &&
        node->source->own_files != NULL)
        status = add_own_files(search, node);
    search->in_data = false;
    if (status == TUNDISH_OK && !search->are_local && node->source != NULL &&
        node->source->list_hash != NULL)
        status = add_list(search, node);
    return status;
}

static tundish_status
walk_graph(struct search *search, const struct plan_graph *graph)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < graph->node_count && status == TUNDISH_OK; i++) {
        const struct plan_node *node = graph->nodes[i];

        if (node->stage != NULL)
            status = walk_stage(search, graph, node);
        if (node->content != NULL && node->content->files != NULL)
            node->content->files(node->state, add_vocabulary, search);
        if (node->source != NULL && node->source->files != NULL)
            node->source->files(node->state, add_vocabulary, search);
        if (node->learned_hash != 0)
            add_learned(search, node);
        if (place_code_of(node) != 0 && place_code_decides(search->top, node))
            add_code(search, node);
        if (node->body != NULL && status == TUNDISH_OK)
            status = walk_graph(search, node->body);
    }
    return status;
}

static tundish_status
look_at(void *context, uint32_t number)
{
    struct search *search = context;
    struct place_file *file = &search->files.list[number];

    must_in_debug(number < search->files.count);
    if (search->targets[number].path != NULL)
        file->raw_hash =
            place_hashes_of(search->files.hashes, number, search->targets[number].folder,
                            search->targets[number].path, &file->is_here);
    return TUNDISH_OK;
}

/* Only the last part of a path counts: folders may differ between machines, signatures from day to
 * day. */
uint64_t
place_file_hash(const struct place_file *file, uint64_t raw_hash)
{
    size_t bytes = tnd_redact_unsigned_bytes(file->name);
    const char *last = memrchr(file->name, '/', bytes);

    last = last != NULL ? last + 1 : file->name;
    return tnd_hash_farm_chain(raw_hash, last, (size_t)(file->name + bytes - last));
}

static uint32_t
smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* How many are to look at the files? Opening one asks a network's file system, also where it
 * remembers what stat tells. */
static uint32_t
count_lookers(const struct search *search)
{
    const uint32_t count = search->files.count;
    int64_t since_ns = tnd_clock_ns();
    uint32_t number = 0;
    int descriptor;

    while (number < count && search->targets[number].path == NULL)
        number++;
    if (number == count)
        return 1;
    descriptor = openat(search->targets[number].folder, search->targets[number].path,
                        O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (descriptor >= 0)
        close(descriptor);
    if (tnd_clock_ns() - since_ns >= SLOW_NS)
        return smaller(count, SLOW_LOOKERS);
    return smaller(count / FILES_A_LOOKER, LOOKERS);
}

static void
look_at_all(struct search *search, const char *cache_folder)
{
    struct place_files *files = &search->files;
    char *root = realpath(search->spec->root, NULL);

    if (root != NULL)
        search->key = tnd_hash_farm_chain(search->key, root, strlen(root));
    free(root);
    files->hashes = place_hashes_open(cache_folder, search->key, files->count);
    (void)tnd_parallel_for(files->count, count_lookers(search), look_at, search);
    for (uint32_t i = 0; i < files->count; i++)
        files->list[i].hash = place_file_hash(&files->list[i], files->list[i].raw_hash);
}

tundish_status
place_files_open(const struct plan *plan, struct place_files *ret_files)
{
    const struct catalogue *catalogue = plan->options.catalogue;
    struct remote_seen *own = plan->options.seen == NULL ? remote_seen_open() : NULL;
    struct search search = { .spec = plan->file,
                             .top = plan->graph,
                             .seen = own != NULL ? own : plan->options.seen,
                             .listed = plan->options.listed,
                             .are_local = plan->stream->distribute.files_local };
    tundish_status status;

    if (search.are_local && catalogue != NULL && catalogue->is_made)
        search.catalogue = catalogue;
    status = walk_graph(&search, plan->graph);
    remote_seen_close(own);
    if (status == TUNDISH_OK)
        look_at_all(&search, plan->options.cache_folder);
    for (int i = 0; i < search.folders.count; i++)
        close(search.folders.open[i]);
    free(search.targets);
    search.files.remote = &plan->file->remote;
    if (status != TUNDISH_OK) {
        place_files_close(&search.files);
        return status;
    }
    place_groups_make(&search.files, false, &search.files.groups);
    place_groups_make(&search.files, true, &search.files.older_groups);
    *ret_files = search.files;
    return TUNDISH_OK;
}

void
place_files_keep(struct place_files *files)
{
    place_hashes_close(files->hashes);
    files->hashes = NULL;
}

void
place_files_close(struct place_files *files)
{
    place_files_keep(files);
    for (uint32_t i = 0; i < files->count; i++) {
        if (files->list[i].path == NULL)
            free(files->list[i].name);
        free(files->list[i].url);
        free(files->list[i].path);
    }
    free(files->list);
    *files = (struct place_files){ 0 };
}
