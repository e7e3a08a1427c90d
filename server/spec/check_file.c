/* check_file.c - the top level of a pipeline file. */
#include "spec/check.h"

static void
check_streams(struct check *check, const struct spec_value *streams)
{
    struct spec_stream *list = spec_memory_take(check->memory, streams->count, sizeof *list);
    /* Streams are checked even when one is broken, so that one run reports all errors. */
    uint32_t count = 0;

    for (uint32_t i = 0; i < streams->count; i++) {
        const struct spec_value *key = &streams->keys[i];

        if (key->kind != SPEC_TEXT)
            continue;
        if (key->text_bytes == 0)
            spec_complain(check->errors, key->line, key->column, "a stream needs a name");
        check_stream(check, key, &streams->items[i], &list[count++]);
    }
    if (streams->count == 0)
        spec_complain(check->errors, streams->line, streams->column,
                      "streams needs at least one stream");
    check->file->streams = list;
    check->file->stream_count = count;
}

static void
check_learn_from(struct check *check, const struct spec_value *learn_from)
{
    struct spec_file *file = check->file;
    const char **words = spec_memory_take(check->memory, file->stream_count, sizeof *words);
    const char *nearest;

    file->learn_from = learn_from->text;
    if (spec_find_stream(file, learn_from->text) != NULL)
        return;
    for (uint32_t i = 0; i < file->stream_count; i++)
        words[i] = file->streams[i].name;
    nearest = spec_nearest(learn_from->text, words, file->stream_count);
    spec_complain(check->errors, learn_from->line, learn_from->column,
                  "learn_from: there is no stream \"%.60s\"%s", learn_from->text,
                  spec_hint(nearest, "").text);
}

void
check_file(struct check *check, const struct spec_value *root)
{
    const struct stage_info *info = &section_file;
    const struct spec_value **arguments;
    const struct spec_value *datasets = NULL, *seed, *streams, *learn_from, *remote;

    if (root->kind == SPEC_MAP)
        /* Datasets by name come first: streams refer to them wherever they are in the file. */
        datasets = spec_map_get(root, "datasets");
    if (datasets != NULL && datasets->kind == SPEC_MAP)
        check_named_datasets(check, datasets);
    arguments = check_mapping(check, info, root, NULL);
    seed = arguments[stage_parameter(info, "seed")];
    streams = arguments[stage_parameter(info, "streams")];
    learn_from = arguments[stage_parameter(info, "learn_from")];
    remote = arguments[stage_parameter(info, "remote")];
    check->file->remote = spec_remote_default;
    if (remote != NULL && remote->kind == SPEC_MAP)
        check_remote(check, remote, &check->file->remote);
    /* A broken value has been reported by check_mapping. */
    if (seed != NULL && seed->kind == SPEC_INTEGER) {
        check->file->has_seed = true;
        check->file->seed = seed->integer;
    }
    if (streams != NULL && streams->kind == SPEC_MAP)
        check_streams(check, streams);
    if (learn_from != NULL && learn_from->kind == SPEC_TEXT && streams != NULL)
        check_learn_from(check, learn_from);
}
