/* cache_folder.c - find the folder, and publish files in it by rename.
 *
 * The lock of a build is a flock on the building file itself. A process that gets the lock after a
 * wait may hold a file that was renamed or removed meanwhile. Then the name leads to another inode,
 * or to none, and the process locks again. So no lock files remain, only published files.
 */
#include "core/cache_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/own_file.h"
#include "core/read_write.h"
#include "core/status.h"

#define PATH_BYTES 4096

static tundish_status
default_path(char path[PATH_BYTES])
{
    const char *own = getenv("TUNDISH_CACHE");
    const char *shared = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int bytes;

    if (own != NULL && *own != '\0')
        bytes = snprintf(path, PATH_BYTES, "%s", own);
    else if (shared != NULL && *shared == '/') /* a relative one is to be ignored, XDG says */
        bytes = snprintf(path, PATH_BYTES, "%s/tundish", shared);
    else if (home != NULL && *home != '\0')
        bytes = snprintf(path, PATH_BYTES, "%s/.cache/tundish", home);
    else
        return tnd_fail(TUNDISH_E_SYSTEM, "no cache folder: neither HOME nor "
                                          "XDG_CACHE_HOME is set; set TUNDISH_CACHE to a folder");
    if (bytes < 0 || bytes >= PATH_BYTES)
        return tnd_fail(TUNDISH_E_SYSTEM,
                        "the cache folder's path is longer than %d bytes; set "
                        "TUNDISH_CACHE to a shorter one",
                        PATH_BYTES - 1);
    return TUNDISH_OK;
}

/* As mkdir -p. A failure shows when the folder is opened. */
static void
make_with_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    (void)mkdir(path, 0700);
}

tundish_status
tnd_cache_folder_open(const char *path, int *ret_folder)
{
    char chosen[PATH_BYTES];
    int folder;
    tundish_status status;

    if (path == NULL) {
        status = default_path(chosen);
        if (status != TUNDISH_OK)
            return status;
    } else if (snprintf(chosen, sizeof chosen, "%s", path) >= PATH_BYTES) {
        return tnd_fail(TUNDISH_E_ARGUMENT, "the cache folder's path is longer than %d bytes",
                        PATH_BYTES - 1);
    }
    make_with_parents(chosen);
    folder = open(chosen, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return tnd_fail_errno(errno, "cache folder %s (set TUNDISH_CACHE to another)", chosen);
    status = tnd_own_folder_check(
        &(struct tnd_own_folder){ folder, chosen, "cache folder", "set TUNDISH_CACHE to another" });
    if (status == TUNDISH_OK)
        *ret_folder = folder;
    else
        close(folder);
    return status;
}

static void
building_name(const struct tnd_cache_build *build, char name[TND_CACHE_NAME_BYTES + 16])
{
    snprintf(name, TND_CACHE_NAME_BYTES + 16, "%s.building", build->name);
}

static void
forget(struct tnd_cache_build *build)
{
    *build = (struct tnd_cache_build){ 0 };
}

/* Another user may have made it while the folder was open to all: its writer could go on writing
 * after it is published. */
static bool
is_own(int file)
{
    struct stat held;

    return fstat(file, &held) == 0 && tnd_own_file_is_ours(&held);
}

/* Is the locked file still the one that the name leads to? */
static bool
is_current(int folder, const char *name, int file)
{
    struct stat named, held;

    return fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(file, &held) == 0 &&
           named.st_dev == held.st_dev && named.st_ino == held.st_ino;
}

static int
lock_waiting(int file)
{
    int result;

    do
        result = flock(file, LOCK_EX);
    while (result != 0 && errno == EINTR);
    return result;
}

tundish_status
tnd_cache_build_begin(int folder, const char *name, struct tnd_cache_build *ret_build)
{
    struct tnd_cache_build build = { .folder = folder, .file = -1 };
    char building[TND_CACHE_NAME_BYTES + 16];

    if (strlen(name) >= sizeof build.name)
        return tnd_fail(TUNDISH_E_ARGUMENT, "cache file name %s is too long", name);
    strcpy(build.name, name);
    building_name(&build, building);
    for (;;) {
        build.file = openat(folder, building, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (build.file < 0 || lock_waiting(build.file) != 0)
            break;
        if (is_current(folder, building, build.file)) {
            if (!is_own(build.file)) {
                if (unlinkat(folder, building, 0) != 0)
                    break;
                close(build.file);
                continue;
            }
            if (ftruncate(build.file, 0) != 0)
                break;
            *ret_build = build;
            return TUNDISH_OK;
        }
        close(build.file);
    }
    tnd_fail_errno(errno, "cannot build %s in the cache folder", name);
    if (build.file >= 0)
        close(build.file);
    return TUNDISH_E_SYSTEM;
}

tundish_status
tnd_cache_build_write(struct tnd_cache_build *build, const void *data, uint64_t bytes)
{
    int error = tnd_write(build->file, data, bytes);

    if (error == 0)
        return TUNDISH_OK;
    return tnd_fail_errno(error,
                          "cannot write %s in the cache folder (%llu bytes; make room, or set "
                          "TUNDISH_CACHE to another folder)",
                          build->name, (unsigned long long)bytes);
}

tundish_status
tnd_cache_build_publish(struct tnd_cache_build *build, int *ret_file)
{
    char building[TND_CACHE_NAME_BYTES + 16];

    building_name(build, building);
    /* Synced before the rename: after a power failure the name must not lead to an empty file. */
    if (fsync(build->file) != 0 ||
        renameat(build->folder, building, build->folder, build->name) != 0) {
        tnd_fail_errno(errno, "cannot publish %s in the cache folder", build->name);
        tnd_cache_build_cancel(build);
        return TUNDISH_E_SYSTEM;
    }
    if (ret_file != NULL) {
        (void)flock(build->file, LOCK_UN);
        *ret_file = build->file;
    } else {
        close(build->file);
    }
    forget(build);
    return TUNDISH_OK;
}

void
tnd_cache_build_cancel(struct tnd_cache_build *build)
{
    char building[TND_CACHE_NAME_BYTES + 16];

    if (build->name[0] == '\0')
        return;
    building_name(build, building);
    (void)unlinkat(build->folder, building, 0);
    close(build->file);
    forget(build);
}
