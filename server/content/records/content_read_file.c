/* content_read_file.c - tf.io.read_file. */
#include <stdio.h>

#include "content/records/decode_text.h"
#include "content/records/file_notes.h"
#include "content/records/other_files.h"
#include "content/records/remote_files.h"
#include "content/records/whole_file.h"

struct read_file {
    const char *root;
    const struct spec_remote *remote;
    struct content_targets targets;
};

/* A batch that is being read. */
struct reading {
    const char *root;
    struct remote_files *remote;      /* NULL: none of its paths is a URL */
    const struct other_files *others; /* NULL: all files are here */
    struct asked_files *asked;
    const struct file_notes *notes;
    size_t next;           /* of the paths that are not URLs */
    tundish_status status; /* of what is not the fault of a row */
    char text[512];
};

/* A file that is at no URL: another node's, or here. */
static tundish_status
read_path(struct reading *reading, struct byte_view path, struct scratch *scratch,
          struct byte_view *ret_bytes)
{
    struct byte_view bytes = { 0 };
    tundish_status status = TUNDISH_OK;

    if (reading->others != NULL)
        status = reading->others->take(reading->asked, reading->next++, scratch, &bytes);
    if (status == TUNDISH_OK && bytes.data == NULL)
        status = whole_file_read(reading->root, path, scratch, &bytes);
    if (status != TUNDISH_OK)
        return status;
    file_notes_add(reading->notes, path, bytes);
    *ret_bytes = bytes;
    return TUNDISH_OK;
}

static tundish_status
read_url(struct reading *reading, struct byte_view url, struct scratch *scratch,
         struct byte_view *ret_bytes)
{
    tundish_status status = remote_files_next(reading->remote, scratch, ret_bytes);

    if (status == TUNDISH_OK && reading->notes != NULL)
        reading->notes->add(reading->notes->context, url, remote_files_version(reading->remote));
    return status;
}

static const char *
decode(void *context, struct byte_view from, struct scratch *scratch, struct byte_view *ret_to)
{
    struct reading *reading = context;
    bool is_remote = reading->remote != NULL && remote_files_is_url(from);
    tundish_status status = is_remote ? read_url(reading, from, scratch, ret_to)
                                      : read_path(reading, from, scratch, ret_to);

    /* A store or a node that does not answer must not look like rows that are bad. */
    if (status != TUNDISH_OK && status != TUNDISH_E_DATA && status != TUNDISH_E_PIPELINE &&
        reading->status == TUNDISH_OK && (reading->remote != NULL || reading->others != NULL)) {
        reading->status = status;
        snprintf(reading->text, sizeof reading->text, "%s", tnd_error_text());
    }
    return status == TUNDISH_OK ? NULL : tnd_error_text();
}

static tundish_status
read_file_open(void *memory, const struct stage_config *config, struct schema *ret_schema,
               bool *ret_batch_wide)
{
    struct read_file *state = memory;

    (void)ret_batch_wide;
    state->root = config->stage->file->root;
    state->remote = &config->stage->file->remote;
    return decode_text_open(config, ret_schema, &state->targets);
}

/* The paths of all targets, in the order in which decode meets them: those at URLs, or those that
 * are not. */
static struct byte_view *
find_paths(const struct content_targets *targets, const struct frame *input, bool are_urls,
           size_t *ret_count)
{
    struct byte_view *paths;
    size_t room = 1, count = 0;

    for (uint32_t t = 0; t < targets->count; t++)
        room += (size_t)input->columns[targets->list[t].input].value_count;
    paths = scratch_array(input->scratch, room, sizeof *paths);
    for (uint32_t t = 0; t < targets->count; t++) {
        const struct column *texts = &input->columns[targets->list[t].input];
        const struct byte_view *views = texts->values;

        for (int64_t i = 0; i < texts->value_count; i++)
            if (remote_files_is_url(views[i]) == are_urls)
                paths[count++] = views[i];
    }
    *ret_count = count;
    return paths;
}

static tundish_status
read_file_apply(const void *memory, const struct frame *input, struct frame *output)
{
    const struct read_file *state = memory;
    struct reading reading = { .root = state->root,
                               .others = output->other_files,
                               .notes = output->file_notes };
    size_t url_count, path_count;
    struct byte_view *urls = find_paths(&state->targets, input, true, &url_count), *paths;
    tundish_status status = TUNDISH_OK;

    if (reading.others != NULL) {
        paths = find_paths(&state->targets, input, false, &path_count);
        reading.asked = reading.others->ask(reading.others->context, paths, path_count);
    }
    if (url_count > 0)
        status = remote_files_open(state->remote, urls, url_count, &reading.remote);
    if (status == TUNDISH_OK)
        decode_text_apply(&state->targets, input, output, decode, &reading);
    remote_files_close(reading.remote);
    if (reading.others != NULL)
        reading.others->close(reading.asked);
    if (status == TUNDISH_OK && reading.status != TUNDISH_OK)
        status = tnd_fail(reading.status, "%s", reading.text);
    return status;
}

static void
read_file_close(void *memory)
{
    struct read_file *state = memory;

    content_targets_close(&state->targets);
}

static int32_t
read_file_paths_of(const void *memory, uint32_t column)
{
    const struct read_file *state = memory;

    for (uint32_t t = 0; t < state->targets.count; t++)
        if (state->targets.list[t].output == column)
            return (int32_t)state->targets.list[t].input;
    return -1;
}

const struct content_ops content_read_file = {
    .name = "read_file",
    .takes_missing = true,
    .paths_of = read_file_paths_of,
    .state_bytes = sizeof(struct read_file),
    .open = read_file_open,
    .apply = read_file_apply,
    .close = read_file_close,
};
