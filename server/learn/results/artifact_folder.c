/* artifact_folder.c - the folder that results are written into. */
#include "learn/results/artifact_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "content/learned/learned_file.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/own_file.h"

/* analysis/, for analysis/NAME. A failure shows when the folder itself is made. */
static void
make_around(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *around = slash != NULL ? tnd_strndup(path, (size_t)(slash - path)) : NULL;

    if (around != NULL)
        (void)mkdir(around, 0777);
    free(around);
}

tundish_status
artifact_folder_open(const char *path, struct artifact_folder **ret_folder)
{
    struct artifact_folder *folder;
    struct stat about;

    make_around(path);
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return tnd_fail_errno(errno, "cannot make the folder %s", path);
    if (stat(path, &about) == 0 && tnd_own_file_is_planted(path, &about))
        return tnd_fail(TUNDISH_E_SYSTEM,
                        "the folder %s belongs to user %u, in a folder that every user may write "
                        "to: name another",
                        path, (unsigned)about.st_uid);
    folder = tnd_zalloc(1, sizeof *folder);
    folder->path = tnd_strdup(path);
    folder->held = -1;
    pthread_mutex_init(&folder->building, NULL);
    *ret_folder = folder;
    return TUNDISH_OK;
}

void
artifact_folder_close(struct artifact_folder *folder)
{
    if (folder == NULL)
        return;
    for (size_t i = 0; i < folder->file_count; i++)
        free(folder->files[i].name);
    free(folder->files);
    if (folder->held >= 0)
        close(folder->held);
    pthread_mutex_destroy(&folder->building);
    free(folder->path);
    free(folder);
}

/* Is this the name of an unfinished file: NAME.PROCESS.building? */
static bool
is_building(const char *name)
{
    const char *end = strrchr(name, '.');
    size_t digits = 0;

    if (end == NULL || strcmp(end, ".building") != 0)
        return false;
    while (end - digits > name && end[-1 - (ptrdiff_t)digits] >= '0' &&
           end[-1 - (ptrdiff_t)digits] <= '9')
        digits++;
    return digits > 0 && end - digits > name && end[-1 - (ptrdiff_t)digits] == '.';
}

/* Remove the unfinished files of processes that were killed. The lock on the folder means that no
 * other process is writing. */
static void
clear_away(const struct artifact_folder *folder)
{
    DIR *listing = opendir(folder->path);
    struct dirent *entry;

    if (listing == NULL)
        return;
    while ((entry = readdir(listing)) != NULL)
        if (is_building(entry->d_name))
            unlinkat(dirfd(listing), entry->d_name, 0);
    closedir(listing);
}

tundish_status
artifact_folder_hold(struct artifact_folder *folder)
{
    int result;

    /* The lock is on the folder itself and ends with the process, however it ends. */
    folder->held = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->held < 0)
        return tnd_fail_errno(errno, "%s", folder->path);
    result = flock(folder->held, LOCK_EX | LOCK_NB);
    if (result != 0 && errno == EWOULDBLOCK) {
        tnd_log_print("waiting for another process that writes to %s\n", folder->path);
        do
            result = flock(folder->held, LOCK_EX);
        while (result != 0 && errno == EINTR);
    }
    if (result != 0)
        return tnd_fail_errno(errno, "cannot lock %s", folder->path);
    clear_away(folder);
    return TUNDISH_OK;
}

void
artifact_folder_freeze(struct artifact_folder *folder)
{
    /* The lock is held until the folder is closed or the process ends: no thread may begin a file
     * any more. */
    pthread_mutex_lock(&folder->building);
    clear_away(folder);
}

tundish_status
artifact_folder_begin(struct artifact_folder *folder, const char *building, FILE **ret_file)
{
    FILE *file;
    int problem;

    pthread_mutex_lock(&folder->building);
    /* A new file: one that lies there could be a link, or another user's. errno is kept because
     * unlocking may change it. */
    (void)unlink(building);
    file = fopen(building, "wxe");
    problem = errno;
    pthread_mutex_unlock(&folder->building);
    if (file == NULL)
        return tnd_fail_errno(problem, "%s", building);
    *ret_file = file;
    return TUNDISH_OK;
}

static void
note(struct artifact_folder *folder, const char *name, uint64_t hash)
{
    folder->files = tnd_realloc(folder->files, folder->file_count + 1, sizeof *folder->files);
    folder->files[folder->file_count++] = (struct artifact_file){ tnd_strdup(name), hash };
}

tundish_status
artifact_folder_publish(struct artifact_folder *folder, const char *building, const char *name)
{
    char *path = tnd_sprintf("%s/%s", folder->path, name);
    uint64_t hash = 0;
    /* Only an analysis records hashes; other commands write without holding the folder. */
    tundish_status status = folder->held >= 0 ? learned_file_hash(building, &hash) : TUNDISH_OK;

    if (status == TUNDISH_OK) {
        pthread_mutex_lock(&folder->building);
        if (rename(building, path) != 0)
            status = tnd_fail_errno(errno, "cannot write %s", path);
        else if (folder->held >= 0)
            note(folder, name, hash);
        pthread_mutex_unlock(&folder->building);
    }
    free(path);
    return status;
}
