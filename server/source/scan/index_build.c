/* index_build.c - going through a file for its index alone, for `tundish index`. */
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "source/files/files_private.h"
#include "source/scan/index.h"
#include "source/scan/scan.h"

static const struct {
    const char *kind;
    struct record_format format;
} kinds[] = {
    { "tfrecord", { .scanner = &scanner_tfrecord } },
    { "text_line", { .scanner = &scanner_text_line } },
    { "webdataset", { .scanner = &scanner_webdataset } },
    { "csv", { .scanner = &scanner_csv, .numbers = { [CSV_DELIMITER] = ',', [CSV_QUOTES] = 1 } } },
};

static const struct record_format *
format_of(const char *kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].kind, kind) == 0)
            return &kinds[i].format;
    return NULL;
}

tundish_status
source_index_build(struct source_files *files, const char *path, const char *kind,
                   void (*progress)(void *context, uint64_t bytes_done), void *context,
                   struct source_index *ret_index)
{
    const struct record_format *format = format_of(kind);
    const struct record_list *list;
    struct source_file *file;
    tundish_status status;

    if (format == NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "files are indexed as tfrecord, text_line, csv or webdataset, not as %s",
                        kind);
    file = table_enter(files, path, strlen(path), format);
    while (scan_wait(file, NULL))
        if (progress != NULL)
            progress(context, scan_position(file->scan));
    status = scan_complete(file, NULL, &list);
    if (status != TUNDISH_OK)
        return status;
    *ret_index = (struct source_index){
        .record_count = list->count,
        .file_bytes = file->identity.size,
        .hash = list->hash,
        .is_kept = list->map != NULL,
    };
    return TUNDISH_OK;
}

/* The file, known by what stat says of it. */
static tundish_status
enter_known(struct source_files *files, const char *path, const char *kind,
            struct source_file **ret_file)
{
    const struct record_format *format = format_of(kind);
    struct source_file *file;
    int descriptor;
    tundish_status status;

    if (format == NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT, "files are not indexed as %s", kind);
    file = table_enter(files, path, strlen(path), format);
    status = file_open(file, &descriptor);
    if (status != TUNDISH_OK)
        return status;
    close(descriptor);
    *ret_file = file;
    return TUNDISH_OK;
}

bool
source_index_is_wanted(struct source_files *files, const char *path, const char *kind)
{
    struct source_file *file;

    return enter_known(files, path, kind, &file) == TUNDISH_OK && index_is_wanted(file);
}

tundish_status
source_index_export(struct source_files *files, const char *path, const char *kind,
                    uint8_t **ret_bytes, size_t *ret_byte_count)
{
    struct source_file *file;
    tundish_status status = enter_known(files, path, kind, &file);

    if (status == TUNDISH_OK && !index_bytes(file, ret_bytes, ret_byte_count))
        status = tnd_fail(TUNDISH_E_TIMEOUT, "there is no index of %s", path);
    return status;
}

tundish_status
source_index_import(struct source_files *files, const char *path, const char *kind,
                    const uint8_t *bytes, size_t byte_count)
{
    struct source_file *file;
    struct record_list found, *list;
    tundish_status status = enter_known(files, path, kind, &file);

    if (status == TUNDISH_OK)
        status = index_read_foreign(bytes, byte_count, file, &found);
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "another node's index of %s", path);
    list = tnd_alloc(sizeof *list);
    *list = found; /* into the caller's bytes: nothing is owned */
    list = index_keep(file, list);
    record_list_close(list);
    return TUNDISH_OK;
}
