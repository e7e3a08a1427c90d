/* upstream.c - see upstream.h. */
#include "source/upstream.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "content/content.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "order/arguments.h"
#include "remote/list.h"
#include "source/files/matching_files.h"
#include "source/source.h"

/* Raise this when a new version makes different rows of the same stages: caches of the old one must
 * not be read. */
static const uint64_t RULES_VERSION = 2;

static uint64_t
mix_text(uint64_t hash, const char *text)
{
    return tnd_hash_farm_cat(hash, tnd_hash_farm(text, strlen(text)));
}

/* A store tells what its objects are with their names. */
static uint64_t
mix_objects(uint64_t hash, const struct path_base *base, const char *pattern, bool names_only)
{
    struct remote_matches found = { 0 };
    struct remote *remote = NULL;

    if (remote_get(base->remote, &remote) == TUNDISH_OK)
        (void)remote_list(remote, pattern, &found);
    for (size_t i = 0; i < found.count; i++) {
        hash = mix_text(hash, found.list[i].name);
        if (!names_only)
            hash =
                tnd_hash_farm_cat(tnd_hash_farm_cat(hash, found.list[i].bytes), found.list[i].hash);
    }
    remote_matches_close(&found);
    return hash;
}

/* Mix in the files that match a pattern now: their names and, unless names_only, sizes and times.
 */
static uint64_t
mix_matches(uint64_t hash, const struct path_base *base, const char *pattern, bool names_only)
{
    struct matching_files found = { 0 };

    if (spec_is_url(pattern))
        return mix_objects(hash, base, pattern, names_only);
    if (matching_files_find(base, &pattern, 1, &found) != TUNDISH_OK)
        return hash;
    for (size_t i = 0; i < found.count; i++) {
        const char *name = found.paths[i];
        char *path = name[0] == '/' ? tnd_strdup(name) : tnd_sprintf("%s/%s", base->root, name);
        struct stat about;

        hash = mix_text(hash, name);
        if (!names_only && stat(path, &about) == 0) {
            hash = tnd_hash_farm_cat(hash, (uint64_t)about.st_size);
            hash = tnd_hash_farm_cat(hash, (uint64_t)about.st_mtim.tv_sec);
            hash = tnd_hash_farm_cat(hash, (uint64_t)about.st_mtim.tv_nsec);
        }
        free(path);
    }
    matching_files_close(&found);
    return hash;
}

/* A vocabulary's path may hold {column}: mix in the files of all columns. */
static uint64_t
mix_looked_up(uint64_t hash, const struct path_base *base, const char *path)
{
    char *pattern = tnd_strdup(path);
    char *marker = strstr(pattern, "{column}");

    if (marker != NULL) {
        *marker = '*';
        memmove(marker + 1, marker + strlen("{column}"), strlen(marker + strlen("{column}")) + 1);
    }
    hash = mix_matches(hash, base, pattern, false);
    free(pattern);
    return hash;
}

static uint64_t
mix_value(uint64_t hash, const struct spec_value *value)
{
    if (value == NULL)
        /* An argument that is not given must differ from one that is empty. */
        return tnd_hash_farm_cat(hash, UINT64_MAX);
    hash = tnd_hash_farm_cat(hash, (uint64_t)value->kind);
    if (value->text != NULL)
        hash = mix_text(hash, value->text);
    for (uint32_t i = 0; i < value->count; i++) {
        if (value->kind == SPEC_MAP)
            hash = mix_text(hash, value->keys[i].text);
        hash = mix_value(hash, &value->items[i]);
    }
    return hash; /* datasets are nodes of their own */
}

static uint64_t
mix_stage(uint64_t hash, const struct plan_node *node, const char *root)
{
    const struct spec_stage *stage = node->stage;

    for (uint32_t i = 0; stage != NULL && i < stage->info->parameter_count; i++) {
        const struct parameter_info *parameter = &stage->info->parameters[i];
        const struct spec_value *value = stage->arguments[i];

        /* Threads, buffers and the like change no row. */
        if ((parameter->types & TYPE_NO_EFFECT) != 0)
            continue;
        hash = mix_value(hash, value);
        if (strcmp(parameter->name, "vocabulary") == 0 && value != NULL && value->kind == SPEC_TEXT)
            hash = mix_looked_up(
                hash, &(struct path_base){ .root = root, .remote = &stage->file->remote },
                value->text);
    }
    return hash;
}

/* The user's code and statistics decide rows, and are not written in the pipeline file. */
static uint64_t
mix_beside(uint64_t hash, const struct plan_node *node)
{
    uint64_t (*code)(const void *state) = node->source != NULL    ? node->source->code_hash
                                          : node->content != NULL ? node->content->code_hash
                                                                  : NULL;

    if (code != NULL)
        hash = tnd_hash_farm_cat(hash, code(node->state));
    return node->learned_hash != 0 ? tnd_hash_farm_cat(hash, node->learned_hash) : hash;
}

static uint64_t
mix_node(uint64_t hash, const struct plan_node *node, const char *root)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        hash = mix_node(hash, node->inputs[i], root);
    if (node->body != NULL)
        hash = mix_node(hash, node->body->root, root);
    hash = mix_text(hash, node->name);
    hash = tnd_hash_farm_cat(hash, node->cuts_content);
    /* An ordinal's are an address and what follows from the stages around it. */
    if (node->order != NULL && node->order != &order_ordinal && node->order->arguments_bytes > 0)
        hash =
            tnd_hash_farm_cat(hash, tnd_hash_farm(node->arguments, node->order->arguments_bytes));
    return mix_beside(mix_stage(hash, node, root), node);
}

uint64_t
upstream_fingerprint(const struct plan_node *node, const char *root)
{
    uint64_t hash = mix_node(TND_HASH_CROSS_KEY, node, root);

    hash = tnd_hash_farm_cat(hash, RULES_VERSION);
    /* A column's type may depend on more than the arguments of these stages. */
    for (uint32_t i = 0; i < node->schema.count; i++) {
        char *text = column_spec_text(&node->schema.columns[i]);

        hash = mix_text(mix_text(hash, node->schema.columns[i].name), text);
        free(text);
    }
    return hash;
}

uint64_t
upstream_listing(const struct plan_node *node, const char *root)
{
    uint64_t listing = 0;

    for (uint32_t i = 0; i < node->input_count; i++)
        listing ^= upstream_listing(node->inputs[i], root);
    if (node->body != NULL)
        listing ^= upstream_listing(node->body->root, root);
    if (node->stage != NULL && node->source != NULL && node->source->lists_files) {
        const struct spec_value *patterns = spec_get(node->stage, "file_pattern");
        const struct spec_value *each = patterns->kind == SPEC_LIST ? patterns->items : patterns;
        uint32_t count = patterns->kind == SPEC_LIST ? patterns->count : 1;

        for (uint32_t i = 0; i < count; i++)
            if (each[i].kind == SPEC_TEXT)
                listing = mix_matches(
                    listing,
                    &(struct path_base){ .root = root, .remote = &node->stage->file->remote },
                    each[i].text, true);
    }
    return listing;
}
