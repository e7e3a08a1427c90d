/* source_list_files.c - the paths that match patterns, in byte order. The plan puts the shuffle
 * after it as a stage of its own, as tf.data does.
 *
 * Words of an element: the path's number in the table of paths, zero.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "content/records/missing_file.h"
#include "core/bytes.h"
#include "core/memory.h"
#include "order/cardinality.h"
#include "source/file_source.h"
#include "source/files/catalogue.h"
#include "source/files/files_private.h"
#include "source/source.h"
#include "source/variable.h"

struct list_files {
    const struct spec_value *patterns; /* one or a LIST */
};

struct list_files_state {
    const struct path_list *list;
    uint32_t next;
};

static uint32_t
pattern_count(const struct spec_value *patterns)
{
    return patterns->kind == SPEC_LIST ? patterns->count : 1;
}

static const struct spec_value *
pattern_at(const struct spec_value *patterns, uint32_t index)
{
    return patterns->kind == SPEC_LIST ? &patterns->items[index] : patterns;
}

static tundish_status
list_files_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    struct list_files *files = state;

    files->patterns = spec_get(config->stage, "file_pattern");
    if (files->patterns == NULL || pattern_count(files->patterns) == 0)
        return stage_complain(config, "list_files needs a file_pattern");
    for (uint32_t i = 0; i < pattern_count(files->patterns); i++) {
        const struct spec_value *pattern = pattern_at(files->patterns, i);
        tundish_status status = TUNDISH_OK;

        if (pattern->kind == SPEC_VARIABLE)
            status = variable_check_text(config, pattern);
        else if (pattern->kind != SPEC_TEXT)
            status = spec_complain(config->errors, pattern->line, pattern->column,
                                   "a file_pattern must be text");
        if (status != TUNDISH_OK)
            return status;
    }
    schema_add(ret_schema, source_column_name(config), TUNDISH_STRING);
    return TUNDISH_OK;
}

/* The pattern as text of its own, with $name replaced by the outer element's value. */
static tundish_status
resolve_pattern(const struct order_iterator *iterator, const struct spec_value *pattern,
                char **ret_text)
{
    struct byte_view text = { (const uint8_t *)pattern->text, pattern->text_bytes };
    tundish_status status = TUNDISH_OK;

    if (pattern->kind == SPEC_VARIABLE)
        status = order_value_text(iterator->instance, pattern, &text);
    if (status == TUNDISH_OK)
        *ret_text = tnd_strndup((const char *)text.data, text.size);
    return status;
}

static char *
join_patterns(char *const *patterns, size_t count, char separator, size_t *ret_bytes)
{
    size_t bytes = 0;
    char *text, *to;

    for (size_t i = 0; i < count; i++)
        bytes += strlen(patterns[i]) + 1;
    to = text = tnd_zalloc(bytes + 1, 1);
    for (size_t i = 0; i < count; i++) {
        memcpy(to, patterns[i], strlen(patterns[i]));
        to += strlen(patterns[i]);
        *to++ = separator;
    }
    *ret_bytes = bytes;
    return text;
}

/* An error and not an empty dataset, as in tf.data: Dataset.list_files asserts that a file matches.
 */
static tundish_status
no_match(const struct path_base *base, char *const *patterns, size_t pattern_count)
{
    size_t bytes, plain = strcspn(patterns[0], "*?[");
    char *text = join_patterns(patterns, pattern_count, ' ', &bytes), *folder;
    tundish_status status;

    text[bytes - (bytes > 0)] = '\0';
    /* Where the folder that is looked in is there, its nearest name means nothing to a pattern. */
    while (plain > 0 && patterns[0][plain - 1] != '/')
        plain--;
    folder = spec_is_url(patterns[0]) ? tnd_strdup("")
             : patterns[0][0] == '/'  ? tnd_sprintf("%.*s", (int)plain, patterns[0])
                                      : tnd_sprintf("%s/%.*s", base->root, (int)plain, patterns[0]);
    status = tnd_fail(TUNDISH_E_DATA, "no file matches %s%s", text,
                      folder[0] != '\0' ? missing_file_note(folder) : "");
    free(folder);
    free(text);
    return status;
}

struct patterns {
    char **list;
    size_t count;
};

/* Where each node has some files, those of all nodes count: search the common catalogue, not this
 * node's folder. */
static tundish_status
find_files(const void *context, const struct path_base *base, struct matching_files *ret_found)
{
    const struct patterns *patterns = context;
    tundish_status status = TUNDISH_OK;

    if (base->catalogue != NULL)
        catalogue_glob(base->catalogue, (const char *const *)patterns->list, patterns->count,
                       ret_found);
    else
        status = matching_files_find(base, (const char *const *)patterns->list, patterns->count,
                                     ret_found);
    if (status == TUNDISH_OK && ret_found->count == 0)
        status = no_match(base, patterns->list, patterns->count);
    return status;
}

static tundish_status
list_paths(struct source_files *files, const struct patterns *patterns,
           const struct path_list **ret_list)
{
    struct path_search search = { .find = find_files, .context = patterns };
    /* No pattern holds a NUL, so that different lists have different keys. */
    char *key = join_patterns(patterns->list, patterns->count, '\0', &search.key_bytes);
    tundish_status status;

    search.key = key;
    status = files_list_paths(files, &search, ret_list);
    free(key);
    return status;
}

static tundish_status
list_files_iterate(struct order_iterator *iterator)
{
    const struct list_files *files = iterator->node->state;
    struct list_files_state *state = (struct list_files_state *)iterator->state;
    uint32_t count = pattern_count(files->patterns);
    char **patterns = tnd_zalloc(count, sizeof *patterns);
    tundish_status status = TUNDISH_OK;

    /* A pattern may hold a column of the outer element: it is resolved for each iterator, not once
     * for the node. */
    for (uint32_t i = 0; i < count && status == TUNDISH_OK; i++)
        status = resolve_pattern(iterator, pattern_at(files->patterns, i), &patterns[i]);
    if (status == TUNDISH_OK) {
        status = list_paths(iterator->instance->services->files,
                            &(struct patterns){ patterns, count }, &state->list);
        if (status != TUNDISH_OK)
            status = file_source_fail_at_stage(iterator, status);
    }
    for (uint32_t i = 0; i < count; i++)
        free(patterns[i]);
    free(patterns);
    return status;
}

static enum order_result
list_files_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct list_files_state *state = (struct list_files_state *)iterator->state;
    uint32_t left = state->list->count - state->next;
    size_t count = left < max ? left : max;

    for (size_t i = 0; i < count; i++) {
        words[SOURCE_WIDTH * i] = state->list->numbers[state->next++];
        words[SOURCE_WIDTH * i + 1] = 0;
    }
    *ret_count = count;
    return count > 0 ? ORDER_OK : ORDER_END;
}

static tundish_status
list_files_count(struct order_iterator *iterator, uint64_t *ret_count)
{
    const struct list_files_state *state = (const struct list_files_state *)iterator->state;

    *ret_count = state->list->count;
    return TUNDISH_OK;
}

static tundish_status
list_files_at(struct order_iterator *iterator, const uint64_t *indices, size_t index_count,
              uint64_t *words)
{
    const struct list_files_state *state = (const struct list_files_state *)iterator->state;

    for (size_t i = 0; i < index_count; i++) {
        words[SOURCE_WIDTH * i] = state->list->numbers[indices[i]];
        words[SOURCE_WIDTH * i + 1] = 0;
    }
    return TUNDISH_OK;
}

/* The search when the iterator was made has reported missing files. */
static tundish_status
list_files_check(struct order_iterator *iterator)
{
    (void)iterator;
    return TUNDISH_OK;
}

static void
list_files_iterate_close(struct order_iterator *iterator)
{
    (void)iterator;
}

static tundish_status
list_files_read(const void *state, const struct source_read *read)
{
    struct byte_view *views =
        scratch_array(read->output->scratch, (size_t)read->count + 1, sizeof *views);

    (void)state;
    for (int64_t i = 0; i < read->count; i++) {
        size_t bytes;
        const char *path =
            files_path(read->files, (uint32_t)read->words[(size_t)i * read->stride], &bytes);

        views[i] = (struct byte_view){ (const uint8_t *)path, bytes };
    }
    column_set_scalars(&read->output->columns[0], read->count, views);
    return TUNDISH_OK;
}

static void
list_files_close(void *state)
{
    (void)state;
}

/* The list lies in the table of files; without one (a plan that is only described) nothing is
 * known. */
static int64_t
list_files_cardinality(const struct plan_node *node, const struct order_counting *counting)
{
    return counting->instance->services->files != NULL ? order_count_source(node, counting)
                                                       : CARDINALITY_UNKNOWN;
}

static void
list_files_tell(const void *state, struct source_files *files, const uint64_t *words,
                struct whereabouts *ret_where)
{
    (void)state;
    ret_where->file.data =
        (const uint8_t *)files_path(files, (uint32_t)words[0], &ret_where->file.size);
    ret_where->note = "the row is the path of the file";
}

const struct source_ops source_list_files = {
    .name = "list_files",
    .order = { .name = "list_files",
               .is_list = true,
               .cardinality = list_files_cardinality,
               .state_bytes = sizeof(struct list_files_state),
               .open = list_files_iterate,
               .next = list_files_next,
               .close = list_files_iterate_close,
               .check = list_files_check,
               .count = list_files_count,
               .at = list_files_at },
    .tell = list_files_tell,
    .lists_files = true,
    .words = WORDS_HAVE_PATH,
    .state_bytes = sizeof(struct list_files),
    .open = list_files_open,
    .read = list_files_read,
    .reads_files = false,
    .close = list_files_close,
};
