/* missing_file.c - see missing_file.h. */
#include "content/records/missing_file.h"

#include <dirent.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/printable.h"
#include "spec/errors.h"

/* There may be millions of bad rows: only the first names are looked for. */
enum { NAMES_MAX = 5000, NOTE_BYTES = 700, LOOKS_MAX = 64 };

static _Atomic int looks;

/* The nearest name in an open folder; the caller frees. NULL: none is near. */
static char *
nearest_in(DIR *folder, const char *name)
{
    const char **names = tnd_zalloc(NAMES_MAX, sizeof *names);
    const struct dirent *entry;
    const char *nearest;
    char *found = NULL;
    size_t count = 0;

    if (atomic_fetch_add_explicit(&looks, 1, memory_order_relaxed) >= LOOKS_MAX) {
        free(names);
        return NULL;
    }
    while (count < NAMES_MAX && (entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            names[count++] = tnd_strdup(entry->d_name);
    nearest = spec_nearest(name, names, count);
    if (nearest != NULL)
        found = tnd_strdup(nearest);
    for (size_t i = 0; i < count; i++)
        free((void *)(uintptr_t)names[i]);
    free(names);
    return found;
}

/* The caller frees. */
static char *
absolute(const char *path)
{
    char here[PATH_MAX];

    return path[0] != '/' && getcwd(here, sizeof here) != NULL ? tnd_sprintf("%s/%s", here, path)
                                                               : tnd_strdup(path);
}

/* Into `note`, for an absolute path. */
static void
write_note(const char *path, char note[NOTE_BYTES])
{
    char *folder_path = tnd_strdup(path), *slash = strrchr(folder_path, '/'), *nearest;
    const char *name = slash != NULL ? path + (slash - folder_path) + 1 : path;
    char shown[300] = "", where[300];
    bool is_folder = false; /* what is missing */
    DIR *folder;

    note[0] = '\0';
    /* The innermost folder that is there. */
    while (slash != NULL) {
        *slash = '\0';
        folder = opendir(slash == folder_path ? "/" : folder_path);
        if (folder != NULL)
            break;
        is_folder = true;
        slash = strrchr(folder_path, '/');
    }
    if (slash == NULL) {
        free(folder_path);
        return;
    }
    if (is_folder) {
        char *next = tnd_strndup(path + (slash - folder_path) + 1,
                                 strcspn(path + (slash - folder_path) + 1, "/"));

        nearest = nearest_in(folder, next);
        (void)tnd_printable(next, shown, sizeof shown);
        free(next);
    } else {
        nearest = nearest_in(folder, name);
    }
    closedir(folder);
    (void)tnd_printable(slash == folder_path ? "/" : folder_path, where, sizeof where);
    snprintf(note, NOTE_BYTES, is_folder ? " (there is no folder '%s' in %s" : " (%sin %s", shown,
             where);
    if (nearest != NULL) {
        size_t used = strlen(note);

        (void)tnd_printable(nearest, shown, sizeof shown);
        snprintf(note + used, NOTE_BYTES - used, "; the nearest name there is '%s'", shown);
    }
    strncat(note, ")", NOTE_BYTES - strlen(note) - 1);
    free(nearest);
    free(folder_path);
}

const char *
missing_file_note(const char *path)
{
    static _Thread_local char note[NOTE_BYTES];
    char *whole = absolute(path);

    write_note(whole, note);
    free(whole);
    return note;
}
