/* input_files.c - the files that a dataset reads, and whether they have changed since it learned.
 */
#include "learn/input_files.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "content/learned/learned_file.h"
#include "core/memory.h"
#include "core/redact.h"
#include "remote/object.h"
#include "source/files/matching_files.h"

/* An origin is a file that people read. */
static char *
shown(const char *url)
{
    char *text = tnd_strdup(url);

    tnd_redact(text);
    return text;
}

/* The ETag stands for time and content. */
static tundish_status
add_url(const struct spec_file *file, const char *url, struct input_files *files)
{
    struct object_identity identity;
    struct remote *remote = NULL;
    tundish_status status = remote_get(&file->remote, &remote);

    if (status == TUNDISH_OK)
        status = remote_identify(remote, url, &identity);
    if (status != TUNDISH_OK)
        return status;
    files->list = tnd_realloc(files->list, files->count + 1, sizeof *files->list);
    files->list[files->count++] = (struct input_file){
        .path = shown(url),
        .where = tnd_strdup(url),
        .bytes = identity.bytes,
        .modified_ns = (int64_t)(object_identity_hash(&identity) >> 1),
        .hash = object_identity_hash(&identity),
    };
    return TUNDISH_OK;
}

static tundish_status
hash_content(struct input_file *file)
{
    tundish_status status = TUNDISH_OK;

    if (!file->is_hashed && !spec_is_url(file->where))
        status = learned_file_hash(file->where, &file->hash);
    file->is_hashed = status == TUNDISH_OK;
    return status;
}

static tundish_status
add_file(const struct spec_file *file, const char *path, struct input_files *files)
{
    struct input_file found = { .path = tnd_strdup(path), .where = spec_path(file, path) };
    struct stat stat_now;

    if (spec_is_url(path)) {
        free(found.path);
        free(found.where);
        return add_url(file, path, files);
    }
    files->list = tnd_realloc(files->list, files->count + 1, sizeof *files->list);
    if (stat(found.where, &stat_now) != 0) {
        tundish_status status = tnd_fail_errno(errno, "%s", found.where);

        free(found.path);
        free(found.where);
        return status;
    }
    found.bytes = (uint64_t)stat_now.st_size;
    found.modified_ns =
        (int64_t)stat_now.st_mtim.tv_sec * INT64_C(1000000000) + stat_now.st_mtim.tv_nsec;
    files->list[files->count++] = found;
    return TUNDISH_OK;
}

static tundish_status
add_pattern(const struct spec_file *file, const char *pattern, struct input_files *files)
{
    struct matching_files found = { 0 };
    tundish_status status = matching_files_find(
        &(struct path_base){ .root = file->root, .remote = &file->remote }, &pattern, 1, &found);

    for (size_t i = 0; i < found.count && status == TUNDISH_OK; i++)
        status = add_file(file, found.paths[i], files);
    matching_files_close(&found);
    return status;
}

static tundish_status find_in(const struct spec_file *file, const struct spec_dataset *dataset,
                              struct input_files *files);

static tundish_status
find_in_value(const struct spec_file *file, const struct spec_value *value,
              const struct parameter_info *parameter, struct input_files *files)
{
    bool is_pattern = strcmp(parameter->name, "file_pattern") == 0;
    tundish_status status = TUNDISH_OK;

    if (value == NULL)
        return TUNDISH_OK;
    if (value->kind == SPEC_DATASET)
        return find_in(file, value->dataset, files);
    if ((parameter->types & TYPE_PATHS) != 0 && value->kind == SPEC_TEXT)
        return is_pattern ? add_pattern(file, value->text, files)
                          : add_file(file, value->text, files);
    if ((parameter->types & TYPE_ENTRIES) != 0 && value->kind == SPEC_MAP) {
        /* An entry {npy: PATH} names a file too. */
        const struct spec_value *npy = spec_map_get(value, "npy");

        if (npy != NULL && npy->kind == SPEC_TEXT && value->count == 1)
            return add_file(file, npy->text, files);
    }
    for (uint32_t i = 0; (value->kind == SPEC_LIST || value->kind == SPEC_MAP) &&
                         i < value->count && status == TUNDISH_OK;
         i++)
        status = find_in_value(file, &value->items[i], parameter, files);
    return status;
}

static tundish_status
find_in(const struct spec_file *file, const struct spec_dataset *dataset, struct input_files *files)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < dataset->stage_count && status == TUNDISH_OK; i++) {
        const struct spec_stage *stage = &dataset->stages[i];

        for (uint32_t k = 0; k < stage->info->parameter_count && status == TUNDISH_OK; k++)
            status = find_in_value(file, stage->arguments[k], &stage->info->parameters[k], files);
    }
    return status;
}

static bool is_named_in(const char *path, const struct spec_dataset *dataset);

/* As find_in_value, which looks for the files. */
static bool
is_named(const char *path, const struct spec_value *value, const struct parameter_info *parameter)
{
    if (value == NULL)
        return false;
    if (value->kind == SPEC_DATASET)
        return is_named_in(path, value->dataset);
    if (value->kind == SPEC_TEXT && strcmp(value->text, path) == 0)
        return true;
    if (value->kind == SPEC_TEXT && strcmp(parameter->name, "file_pattern") == 0)
        return fnmatch(value->text, path, 0) == 0;
    for (uint32_t i = 0; (value->kind == SPEC_LIST || value->kind == SPEC_MAP) && i < value->count;
         i++)
        if (is_named(path, &value->items[i], parameter))
            return true;
    return false;
}

static bool
is_named_in(const char *path, const struct spec_dataset *dataset)
{
    for (uint32_t i = 0; i < dataset->stage_count; i++) {
        const struct spec_stage *stage = &dataset->stages[i];

        for (uint32_t k = 0; k < stage->info->parameter_count; k++)
            if (is_named(path, stage->arguments[k], &stage->info->parameters[k]))
                return true;
    }
    return false;
}

bool
input_files_are_named(const struct input_files *files, const struct spec_dataset *dataset)
{
    for (size_t i = 0; i < files->count; i++)
        if (!is_named_in(files->list[i].path, dataset))
            return false;
    return true;
}

static int
compare(const void *a, const void *b)
{
    return strcmp(((const struct input_file *)a)->path, ((const struct input_file *)b)->path);
}

tundish_status
input_files_find(const struct spec_file *file, const struct spec_dataset *dataset,
                 struct input_files *ret_files)
{
    tundish_status status = find_in(file, dataset, ret_files);

    /* Sorted, so that two lists can be compared entry by entry. */
    if (ret_files->count > 0)
        qsort(ret_files->list, ret_files->count, sizeof *ret_files->list, compare);
    return status;
}

void
input_files_close(struct input_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->list[i].path);
        free(files->list[i].where);
    }
    free(files->list);
    *files = (struct input_files){ 0 };
}

tundish_status
input_files_hash(struct input_files *files)
{
    tundish_status status = TUNDISH_OK;

    for (size_t i = 0; i < files->count && status == TUNDISH_OK; i++)
        status = hash_content(&files->list[i]);
    return status;
}

void
input_files_write(const struct input_files *files, FILE *file)
{
    for (size_t i = 0; i < files->count; i++)
        fprintf(file, "file %016" PRIx64 " %" PRIu64 " %" PRId64 " %s\n", files->list[i].hash,
                files->list[i].bytes, files->list[i].modified_ns, files->list[i].path);
}

bool
input_files_read(struct input_files *files, const char *line)
{
    struct input_file file = { 0 };
    int used = 0;

    /* The path is the rest of the line, for it may hold spaces. Widths bound the numbers: the file
     * may be damaged. */
    if (sscanf(line, "file %16" SCNx64 " %20" SCNu64 " %20" SCNd64 " %n", &file.hash, &file.bytes,
               &file.modified_ns, &used) != 3 ||
        used == 0)
        return false;
    file.path = tnd_strdup(line + used);
    files->list = tnd_realloc(files->list, files->count + 1, sizeof *files->list);
    files->list[files->count++] = file;
    return true;
}

static const char *
name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

char *
input_files_differ(const struct input_files *then, struct input_files *now)
{
    for (size_t i = 0; i < then->count && i < now->count; i++) {
        const struct input_file *old = &then->list[i];
        struct input_file *file = &now->list[i];

        /* Compare names without folders: data may be mounted elsewhere than where they were learned
         * from. */
        if (strcmp(name_of(old->path), name_of(file->path)) != 0)
            break;
        /* Equal size and time spare the hash. Another time alone may be a copy, so the content
         * decides. */
        if (old->bytes == file->bytes && old->modified_ns == file->modified_ns)
            continue;
        if (old->bytes != file->bytes)
            return tnd_sprintf("%s had %" PRIu64 " bytes and has %" PRIu64, file->path, old->bytes,
                               file->bytes);
        if (hash_content(file) != TUNDISH_OK)
            return tnd_strdup(tnd_error_text());
        if (file->hash != old->hash)
            return tnd_sprintf("%s has changed", file->path);
    }
    if (then->count == now->count)
        for (size_t i = 0; i < then->count; i++)
            if (strcmp(name_of(then->list[i].path), name_of(now->list[i].path)) != 0)
                return tnd_sprintf("%s is new", now->list[i].path);
    if (then->count != now->count)
        return tnd_sprintf("there were %zu, now there are %zu", then->count, now->count);
    return NULL;
}
