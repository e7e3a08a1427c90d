/* own_file.c - see own_file.h. */
#include "core/own_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/status.h"

#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

tundish_status
tnd_own_folder_check(const struct tnd_own_folder *folder)
{
    struct stat about = { 0 };

    /* Looked at where it is open: its path could be exchanged in between. */
    if (fstat(folder->folder, &about) == 0 && about.st_uid == geteuid() &&
        (about.st_mode & OTHERS_WRITE) == 0)
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_SYSTEM,
                    "%s %s must belong to the user, and no other may write to it, because the "
                    "server trusts the files in it (owner %u, mode %04o); chmod go-w it, or %s",
                    folder->what, folder->path, (unsigned)about.st_uid,
                    (unsigned)(about.st_mode & 07777), folder->remedy);
}

bool
tnd_own_file_is_ours(const struct stat *about)
{
    return S_ISREG(about->st_mode) && about->st_uid == geteuid() &&
           (about->st_mode & OTHERS_WRITE) == 0;
}

bool
tnd_own_file_is_planted(const char *path, const struct stat *about)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX] = ".";
    struct stat around;

    if (about->st_uid == geteuid() || about->st_uid == 0)
        return false;
    if (slash != NULL)
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return stat(folder, &around) != 0 ||
           (about->st_uid != around.st_uid && (around.st_mode & S_IWOTH) != 0);
}
