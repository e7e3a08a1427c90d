/* index_build.c - going through a file for its index alone, for `tundish index`. */
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "source/files/files_private.h"
#include "source/scan/index.h"
#include "source/scan/scan.h"

/* Find the format of a kind. False: there is no such kind, or it cannot be read without
 * parameters. */
static bool
find_format(const char *kind, struct record_format *ret_format)
{
    const struct scanner_ops *scanner = scanner_find(kind);

    if (scanner == NULL || scanner->usual_numbers == NULL)
        return false;
    *ret_format = (struct record_format){ .scanner = scanner };
    memcpy(ret_format->numbers, scanner->usual_numbers, sizeof ret_format->numbers);
    return true;
}

tundish_status
source_index_build(struct source_files *files, const char *path, const char *kind,
                   void (*progress)(void *context, uint64_t bytes_done), void *context,
                   struct source_index *ret_index)
{
    const struct record_list *list;
    struct record_format format;
    struct source_file *file = NULL;
    tundish_status status;
    int folder;

    if (!find_format(kind, &format))
        return tnd_fail(TUNDISH_E_ARGUMENT,
                        "files are indexed as tfrecord, text_line, csv or webdataset, not as %s",
                        kind);
    status = services_cache_folder(files_services(files), &folder);
    if (status != TUNDISH_OK)
        return status;
    file = files_enter(files, path, strlen(path), &format);
    /* Progress is reported at every step of the scan. */
    while (scan_wait(file, NULL))
        if (progress != NULL)
            progress(context, scan_position(file->scan));
    status = scan_complete(file, NULL, &list);
    if (status == TUNDISH_OK && list->is_refused)
        status = tnd_fail_while(TUNDISH_E_SYSTEM, "cannot save the index of %s", path);
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

/* Enter the file and note its identity, by which an index is found. */
static tundish_status
enter_known(struct source_files *files, const char *path, const char *kind,
            struct source_file **ret_file)
{
    struct record_format format;
    struct source_file *file = NULL;
    int descriptor;
    tundish_status status;

    if (!find_format(kind, &format))
        return tnd_fail(TUNDISH_E_ARGUMENT, "files are not indexed as %s", kind);
    file = files_enter(files, path, strlen(path), &format);
    status = file_open(file, &descriptor);
    if (status != TUNDISH_OK)
        return status;
    if (descriptor >= 0)
        close(descriptor);
    *ret_file = file;
    return TUNDISH_OK;
}

bool
source_index_is_wanted(struct source_files *files, const char *path, const char *kind)
{
    struct source_file *file = NULL;

    return enter_known(files, path, kind, &file) == TUNDISH_OK && index_is_wanted(file);
}

tundish_status
source_index_export(struct source_files *files, const char *path, const char *kind,
                    uint8_t **ret_bytes, size_t *ret_byte_count)
{
    struct source_file *file = NULL;
    tundish_status status = enter_known(files, path, kind, &file);

    if (status == TUNDISH_OK && !index_bytes(file, ret_bytes, ret_byte_count))
        status = tnd_fail(TUNDISH_E_TIMEOUT, "there is no index of %s", path);
    return status;
}

tundish_status
source_index_import(struct source_files *files, const char *path, const char *kind,
                    const uint8_t *bytes, size_t byte_count)
{
    struct source_file *file = NULL;
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
