/* spec.c - reads a pipeline file, and answers questions about it. */
#include "spec/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/must.h"
#include "core/plural.h"
#include "core/read_write.h"
#include "spec/check.h"
#include "spec/yaml_reader.h"

tundish_status
spec_open_text(const char *text, size_t text_bytes, const char *path, const char *root,
               struct spec_errors *errors, struct spec_file **ret_file)
{
    struct spec_memory *memory = spec_memory_open();
    struct spec_file *file = spec_memory_take(memory, 1, sizeof *file);
    struct check check = { .memory = memory, .errors = errors, .file = file };
    struct spec_value tree;
    tundish_status status;

    errors->path = path;
    file->memory = memory;
    /* Everything belongs to `memory`, so an error anywhere frees it all at once. */
    file->path = spec_memory_text(memory, path, strlen(path));
    file->root = spec_memory_text(memory, root, strlen(root));
    status = yaml_read(text, text_bytes, memory, errors, &tree);
    /* The checks run on the whole tree even after complaints about parts of it. */
    if (status == TUNDISH_OK)
        check_file(&check, &tree);
    if (status == TUNDISH_OK && errors->count > 0)
        status = TUNDISH_E_PIPELINE;
    if (status != TUNDISH_OK) {
        spec_close(file);
        if (errors->count == 0)
            return status;
        return tnd_fail(status, "%s: %zu error%s, the first at line %u: %s", path, errors->count,
                        TND_PLURAL(errors->count), errors->list[0].line, errors->list[0].text);
    }
    *ret_file = file;
    return TUNDISH_OK;
}

/* Read the whole file. It is enough to read one byte more than the limit to know that it is too
 * large. */
static tundish_status
read_whole(const char *path, char **ret_text, size_t *ret_bytes)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0, room = 64 * 1024;
    char *text;

    if (file < 0)
        return tnd_fail_errno(errno, "cannot open the pipeline file %s", path);
    text = tnd_alloc(room);
    for (;;) {
        size_t got = 0;
        int error = tnd_read(file, text + used, room - used, &got);

        if (error != 0) {
            tundish_status status = tnd_fail_errno(error, "cannot read the pipeline file %s", path);

            free(text);
            close(file);
            return status;
        }
        used += got;
        /* One byte more than allowed is enough to refuse the file; a pipe could go on without end.
         */
        if (used < room || used > YAML_BYTES_MAX)
            break;
        room *= 2;
        text = tnd_realloc(text, room, 1);
    }
    close(file);
    *ret_text = text;
    *ret_bytes = used;
    return TUNDISH_OK;
}

tundish_status
spec_open(const char *path, const char *root, struct spec_errors *errors,
          struct spec_file **ret_file)
{
    const char *slash = strrchr(path, '/');
    char *folder, *text = NULL;
    size_t text_bytes = 0;
    tundish_status status;

    errors->path = path;
    status = read_whole(path, &text, &text_bytes);
    if (status != TUNDISH_OK)
        return status;
    /* Relative paths start at the pipeline file's folder, wherever the command is run. */
    if (root != NULL)
        folder = tnd_strdup(root);
    else if (slash != NULL)
        folder = tnd_strndup(path, slash == path ? 1 : (size_t)(slash - path));
    else
        folder = tnd_strdup(".");
    status = spec_open_text(text, text_bytes, path, folder, errors, ret_file);
    free(folder);
    free(text);
    return status;
}

void
spec_close(struct spec_file *file)
{
    if (file != NULL)
        spec_memory_close(file->memory);
}

const struct spec_stream *
spec_find_stream(const struct spec_file *file, const char *name)
{
    for (uint32_t i = 0; i < file->stream_count; i++)
        if (strcmp(file->streams[i].name, name) == 0)
            return &file->streams[i];
    return NULL;
}

/* A stage asks only for parameters of its own table, so a wrong name is an error of the program. */
static uint32_t
index_of(const struct spec_stage *stage, const char *parameter)
{
    int index = stage_parameter(stage->info, parameter);

    must(index >= 0);
    return (uint32_t)index;
}

const struct spec_value *
spec_get(const struct spec_stage *stage, const char *parameter)
{
    return stage->arguments[index_of(stage, parameter)];
}

bool
spec_given(const struct spec_stage *stage, const char *parameter)
{
    return (stage->given >> index_of(stage, parameter) & 1) != 0;
}

bool
spec_has_value(const struct spec_stage *stage, const char *parameter)
{
    int index = stage_parameter(stage->info, parameter);

    /* Asked of stages of any kind, so the parameter may be unknown here. */
    return index >= 0 && stage->arguments[index] != NULL &&
           stage->arguments[index]->kind != SPEC_NULL;
}

/* check_value has made sure of the kind. */
static const struct spec_value *
value_of_kind(const struct spec_stage *stage, const char *parameter, enum spec_kind kind)
{
    const struct spec_value *value = spec_get(stage, parameter);

    must(value != NULL && value->kind == kind);
    return value;
}

int64_t
spec_int(const struct spec_stage *stage, const char *parameter)
{
    return value_of_kind(stage, parameter, SPEC_INTEGER)->integer;
}

double
spec_number(const struct spec_stage *stage, const char *parameter)
{
    const struct spec_value *value = spec_get(stage, parameter);

    must(value != NULL && (value->kind == SPEC_INTEGER || value->kind == SPEC_NATURAL ||
                           value->kind == SPEC_NUMBER));
    return value->number;
}

bool
spec_bool(const struct spec_stage *stage, const char *parameter)
{
    return value_of_kind(stage, parameter, SPEC_BOOL)->boolean;
}

const char *
spec_text(const struct spec_stage *stage, const char *parameter)
{
    return value_of_kind(stage, parameter, SPEC_TEXT)->text;
}

tundish_dtype
spec_dtype(const struct spec_stage *stage, const char *parameter)
{
    tundish_dtype dtype = tnd_dtype_by_name(spec_text(stage, parameter));

    must(dtype != 0);
    return dtype;
}

static int
compare_key(const void *name, const void *key_)
{
    const struct spec_value *key = *(const struct spec_value *const *)key_;

    return key->kind == SPEC_TEXT ? strcmp(name, key->text) : -1;
}

const struct spec_value *
spec_map_get(const struct spec_value *map, const char *key)
{
    const struct spec_value *const *found =
        map->count == 0 ? NULL
                        : bsearch(key, map->sorted, map->count, sizeof *map->sorted, compare_key);

    return found == NULL ? NULL : &map->items[*found - map->keys];
}

bool
spec_is_url(const char *path)
{
    static const char *const schemes[] = { "s3://", "gs://", "http://", "https://" };

    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncmp(path, schemes[i], strlen(schemes[i])) == 0)
            return true;
    return false;
}

char *
spec_path(const struct spec_file *file, const char *path)
{
    if (path[0] == '/' || strcmp(file->root, ".") == 0 || spec_is_url(path))
        return tnd_strdup(path);
    return tnd_memory_joined(file->root, "/", path);
}
