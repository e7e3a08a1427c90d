/* source_directory.c - the files of a folder of folders, each a row with its class, as Keras'
 * image_dataset_from_directory finds them. The plan puts the shuffle after it as a stage of its
 * own.
 *
 * Words of an element: the path's number in the table of paths, the label. The folders are searched
 * once a session; a file that is gone when it is read is a bad row.
 */
#include <stdlib.h>
#include <string.h>

#include "content/records/file_notes.h"
#include "content/records/other_files.h"
#include "content/records/remote_files.h"
#include "content/records/whole_file.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "source/files/class_folders.h"
#include "source/files/file_split.h"
#include "source/files/files_private.h"
#include "source/source.h"

struct directory {
    struct class_folders wanted; /* its lists are owned, the texts are the pipeline file's */
    struct file_split split;
};

struct directory_state {
    const struct path_list *list;
    uint32_t next;
};

enum { VALUE, LABEL, PATH };

static const char **
texts_of(const struct spec_value *value, size_t *ret_count)
{
    const char **texts = tnd_zalloc(value->count, sizeof *texts);

    for (uint32_t i = 0; i < value->count; i++)
        texts[i] = value->items[i].text;
    *ret_count = value->count;
    return texts;
}

static tundish_status
check_classes(const struct stage_config *config, const struct spec_value *names)
{
    for (uint32_t i = 0; i < names->count; i++) {
        const struct spec_value *name = &names->items[i];

        /* A slash or a leading dot could lead out of the directory. */
        if (name->text_bytes == 0 || strchr(name->text, '/') != NULL || name->text[0] == '.')
            return spec_complain(config->errors, name->line, name->column,
                                 "'%s' cannot be a class: it must be the name of a folder",
                                 name->text);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(names->items[k].text, name->text) == 0)
                return spec_complain(config->errors, name->line, name->column, "class '%s' twice",
                                     name->text);
    }
    return TUNDISH_OK;
}

/* Training and validation are two streams, which must come to the same split. */
static tundish_status
read_split(const struct stage_config *config, struct file_split *split)
{
    const struct spec_value *fraction = spec_get(config->stage, "validation_split");
    const struct spec_value *subset = spec_get(config->stage, "subset");
    const struct spec_value *seed = spec_get(config->stage, "seed");

    if (fraction == NULL && subset == NULL)
        return TUNDISH_OK;
    if (fraction == NULL || subset == NULL)
        return stage_complain(config, "validation_split and subset go together: how many files are "
                                      "for validation, and which of both parts this is");
    if (!(fraction->number > 0 && fraction->number < 1))
        return spec_complain(config->errors, fraction->line, fraction->column,
                             "validation_split must be between 0 and 1, not %g", fraction->number);
    split->validation = fraction->number;
    split->takes_validation = strcmp(subset->text, "validation") == 0;
    split->shuffled = spec_bool(config->stage, "shuffle");
    if (!split->shuffled)
        return TUNDISH_OK;
    if (seed == NULL || seed->kind != SPEC_INTEGER)
        return stage_complain(config, "validation_split with shuffle needs a seed, so that both "
                                      "parts are of one split");
    if (seed->integer < 0 || seed->integer > UINT32_MAX)
        return spec_complain(config->errors, seed->line, seed->column,
                             "with validation_split the seed must be between 0 and 4294967295");
    split->seed = (uint32_t)seed->integer;
    return TUNDISH_OK;
}

static tundish_status
directory_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    struct directory *directory = state;
    const struct spec_value *names = spec_get(config->stage, "class_names");
    const struct spec_value *extensions = spec_get(config->stage, "extensions");
    struct column_spec *label;
    tundish_status status = TUNDISH_OK;

    directory->wanted.directory = spec_text(config->stage, "directory");
    if (directory->wanted.directory[0] == '\0')
        return stage_complain(config, "directory needs the path of a folder");
    status = read_split(config, &directory->split);
    if (status != TUNDISH_OK)
        return status;
    if (names != NULL && names->kind == SPEC_LIST) {
        status = check_classes(config, names);
        directory->wanted.class_names = texts_of(names, &directory->wanted.class_count);
    }
    if (extensions->kind == SPEC_LIST)
        directory->wanted.extensions = texts_of(extensions, &directory->wanted.extension_count);
    schema_add(ret_schema, "value", TUNDISH_STRING);
    label = schema_add(ret_schema, "label", TUNDISH_INT32);
    /* With given classes later stages know the labels' range; otherwise it is known only after the
     * search. */
    if (directory->wanted.class_count > 0) {
        label->has_range = true;
        label->maximum = (int64_t)directory->wanted.class_count - 1;
    }
    schema_add(ret_schema, "path", TUNDISH_STRING);
    return status;
}

static void
directory_close(void *state)
{
    struct directory *directory = state;

    free((void *)(uintptr_t)directory->wanted.class_names);
    free((void *)(uintptr_t)directory->wanted.extensions);
}

static tundish_status
find_all(const struct class_folders *wanted, const struct path_base *base,
         struct matching_files *ret_found)
{
    if (spec_is_url(wanted->directory))
        return class_folders_list(wanted, base, ret_found);
    if (base->catalogue != NULL)
        return class_folders_unite(wanted, base, ret_found);
    return class_folders_find(wanted, base->root, ret_found);
}

static tundish_status
find_files(const void *context, const struct path_base *base, struct matching_files *ret_found)
{
    const struct directory *directory = context;
    struct matching_files found = { 0 };
    tundish_status status = find_all(&directory->wanted, base, &found);

    if (status == TUNDISH_OK)
        status = file_split_apply(&directory->split, directory->wanted.directory, &found);
    if (status == TUNDISH_OK)
        *ret_found = found;
    else
        matching_files_close(&found);
    return status;
}

static tundish_status
directory_own(const void *state, const struct path_base *base, struct matching_files *ret_found)
{
    const struct directory *directory = state;

    return class_folders_own(&directory->wanted, base, ret_found);
}

/* Copies of the folder elsewhere are the same. */
static tundish_status
directory_list_hash(const void *state, const struct path_base *base, uint64_t *ret_hash)
{
    const struct directory *directory = state;
    size_t folder_bytes = strlen(directory->wanted.directory);
    struct matching_files found = { 0 };
    uint64_t hash = 0;
    tundish_status status = find_files(directory, base, &found);

    for (size_t i = 0; i < found.count; i++) {
        const char *path = found.paths[i] + folder_bytes;

        while (*path == '/')
            path++;
        hash = tnd_hash_farm_chain(hash, path, strlen(path) + 1);
    }
    matching_files_close(&found);
    *ret_hash = hash;
    return status;
}

static tundish_status
directory_iterate(struct order_iterator *iterator)
{
    const struct directory *directory = iterator->node->state;
    struct directory_state *state = (struct directory_state *)iterator->state;
    /* The node is the key: its folder and classes cannot change, so all its iterators share one
     * search. */
    struct path_search search = { .key = (const char *)&iterator->node,
                                  .key_bytes = sizeof iterator->node,
                                  .find = find_files,
                                  .context = directory };

    return files_list_paths(iterator->instance->services->files, &search, &state->list);
}

static void
directory_reference(const struct path_list *list, uint64_t index, uint64_t *words)
{
    words[0] = list->numbers[index];
    words[1] = list->labels[index];
}

static enum order_result
directory_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct directory_state *state = (struct directory_state *)iterator->state;
    uint32_t left = state->list->count - state->next;
    size_t count = left < max ? left : max;

    for (size_t i = 0; i < count; i++)
        directory_reference(state->list, state->next++, &words[SOURCE_WIDTH * i]);
    *ret_count = count;
    return count > 0 ? ORDER_OK : ORDER_END;
}

static tundish_status
directory_count(struct order_iterator *iterator, uint64_t *ret_count)
{
    const struct directory_state *state = (const struct directory_state *)iterator->state;

    *ret_count = state->list->count;
    return TUNDISH_OK;
}

static tundish_status
directory_at(struct order_iterator *iterator, const uint64_t *indices, size_t index_count,
             uint64_t *words)
{
    const struct directory_state *state = (const struct directory_state *)iterator->state;

    for (size_t i = 0; i < index_count; i++)
        directory_reference(state->list, indices[i], &words[SOURCE_WIDTH * i]);
    return TUNDISH_OK;
}

static enum order_result
directory_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct directory_state *state = (struct directory_state *)iterator->state;
    uint32_t left = state->list->count - state->next;

    *ret_passed = count < left ? count : left;
    state->next += (uint32_t)*ret_passed;
    return *ret_passed == count ? ORDER_OK : ORDER_END;
}

/* The search when the iterator was made has reported missing files. */
static tundish_status
directory_check(struct order_iterator *iterator)
{
    (void)iterator;
    return TUNDISH_OK;
}

static void
directory_iterate_close(struct order_iterator *iterator)
{
    (void)iterator;
}

/* Files of a store, all of a batch. */
static tundish_status
read_urls(const struct source_read *read, const struct byte_view *paths, struct byte_view *values)
{
    struct frame *output = read->output;
    const struct file_notes *notes = output->file_notes;
    struct remote_files *files = NULL;
    tundish_status status =
        remote_files_open(files_services(read->files)->remote, paths, (size_t)read->count, &files);

    for (size_t i = 0; i < (size_t)read->count && status == TUNDISH_OK; i++) {
        status = remote_files_next(files, output->scratch, &values[i]);
        if (status == TUNDISH_OK && notes != NULL)
            notes->add(notes->context, paths[i], remote_files_version(files));
        /* A store that does not answer must not look like rows that are bad. */
        if (status != TUNDISH_E_DATA)
            continue;
        frame_reject(output, (int64_t)i, "%s", tnd_error_text());
        status = TUNDISH_OK;
    }
    remote_files_close(files);
    return status;
}

static tundish_status
read_paths(const struct source_read *read, const struct byte_view *paths, struct byte_view *values)
{
    struct frame *output = read->output;
    const struct other_files *others = source_other_files(read->files);
    struct asked_files *asked =
        others != NULL ? others->ask(others->context, paths, (size_t)read->count) : NULL;
    tundish_status status = TUNDISH_OK;

    for (size_t i = 0; i < (size_t)read->count && status == TUNDISH_OK; i++) {
        if (others != NULL)
            status = others->take(asked, i, output->scratch, &values[i]);
        if (status == TUNDISH_OK && values[i].data == NULL)
            status =
                whole_file_read(files_root(read->files), paths[i], output->scratch, &values[i]);
        if (status == TUNDISH_OK)
            file_notes_add(output->file_notes, paths[i], values[i]);
        /* A node that does not answer must not look like rows that are bad. */
        if (status == TUNDISH_OK || status == TUNDISH_E_PEER_LOST)
            continue;
        frame_reject(output, (int64_t)i, "%s", tnd_error_text());
        status = TUNDISH_OK;
    }
    if (others != NULL)
        others->close(asked);
    return status;
}

/* A file is read when its row is made, on a worker's thread: the order handles only path numbers.
 */
static tundish_status
directory_read(const void *state, const struct source_read *read)
{
    const struct directory *directory = state;
    struct frame *output = read->output;
    size_t count = (size_t)read->count;
    struct byte_view *values = scratch_array(output->scratch, count + 1, sizeof *values);
    struct byte_view *paths = scratch_array(output->scratch, count + 1, sizeof *paths);
    int32_t *labels = frame_values(output, LABEL, count * sizeof *labels);
    uint64_t bytes_read = 0;
    tundish_status status = TUNDISH_OK;

    for (size_t i = 0; i < count; i++) {
        const uint64_t *words = &read->words[i * read->stride];
        size_t path_bytes;
        const char *path = files_path(read->files, (uint32_t)words[0], &path_bytes);

        labels[i] = (int32_t)words[1];
        paths[i] = (struct byte_view){ (const uint8_t *)path, path_bytes };
        values[i] = (struct byte_view){ 0 };
    }
    if (spec_is_url(directory->wanted.directory))
        status = read_urls(read, paths, values);
    else
        status = read_paths(read, paths, values);
    if (status != TUNDISH_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        bytes_read += values[i].size;
    count_up(&files_services(read->files)->counters.bytes_read, bytes_read);
    count_up(&files_services(read->files)->counters.rows_read, count);
    column_set_scalars(&output->columns[VALUE], read->count, values);
    column_set_scalars(&output->columns[LABEL], read->count, labels);
    column_set_scalars(&output->columns[PATH], read->count, paths);
    return TUNDISH_OK;
}

static void
directory_tell(const void *state, struct source_files *files, const uint64_t *words,
               struct whereabouts *ret_where)
{
    (void)state;
    ret_where->file.data =
        (const uint8_t *)files_path(files, (uint32_t)words[0], &ret_where->file.size);
    ret_where->number_name = "label";
    ret_where->number = (int64_t)words[1];
    ret_where->note = "the row is the whole file";
}

const struct source_ops source_directory = {
    .name = "directory",
    .order = { .name = "directory",
               .state_bytes = sizeof(struct directory_state),
               .open = directory_iterate,
               .next = directory_next,
               .close = directory_iterate_close,
               .check = directory_check,
               .count = directory_count,
               .at = directory_at,
               .pass_over = directory_pass_over },
    .tell = directory_tell,
    .whole_files = true,
    .words = WORDS_HAVE_PATH,
    .own_files = directory_own,
    .list_hash = directory_list_hash,
    .path_column = "path",
    .state_bytes = sizeof(struct directory),
    .open = directory_open,
    .read = directory_read,
    .reads_files = false,
    .close = directory_close,
};
