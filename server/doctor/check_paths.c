/* check_paths.c - the socket and the cache folder. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/cache_folder.h"
#include "core/status.h"
#include "doctor/doctor.h"
#include "shm/channel.h"

/* Indexes and tables are some percent of the data. */
#define CACHE_ENOUGH (UINT64_C(1) << 30)

/* For a path's folder, or the nearest folder above it that is there: the server makes its own. */
static bool
may_make(const char *path)
{
    char folder[TND_SOCKET_PATH_BYTES];
    char *slash;

    snprintf(folder, sizeof folder, "%s", path);
    while ((slash = strrchr(folder, '/')) != NULL) {
        slash[slash == folder] = '\0';
        if (access(folder, F_OK) == 0 || slash == folder)
            return access(folder, W_OK | X_OK) == 0;
    }
    return access(".", W_OK | X_OK) == 0;
}

void
doctor_check_socket(struct doctor *doctor)
{
    char path[TND_SOCKET_PATH_BYTES];
    int socket = -1;
    tundish_status status;

    if (tnd_channel_path(doctor->socket, path) != TUNDISH_OK ||
        tnd_channel_check_folder(path) != TUNDISH_OK) {
        doctor_say(doctor, DOCTOR_FAULT, "socket", NULL, "%s", tnd_error_text());
        return;
    }
    status = tnd_channel_connect(path, &socket);
    if (status == TUNDISH_OK) {
        close(socket);
        doctor_say(doctor, DOCTOR_NOTE, "socket", NULL,
                   "a server listens at %s already; another one needs another --socket", path);
    } else if (status != TUNDISH_E_SERVER_GONE) {
        doctor_say(doctor, DOCTOR_FAULT, "socket", NULL, "%s", tnd_error_text());
    } else if (!may_make(path)) {
        doctor_say(doctor, DOCTOR_FAULT, "socket",
                   "make its folder writable for the server's user, or choose another: --socket",
                   "%s cannot be made: %s", path, strerror(EACCES));
    } else {
        doctor_say(doctor, DOCTOR_OK, "socket", NULL, "%s is free", path);
    }
}

void
doctor_check_cache(struct doctor *doctor)
{
    struct statvfs space;
    int folder;

    if (tnd_cache_folder_open(doctor->cache, &folder) != TUNDISH_OK) {
        doctor_say(doctor, DOCTOR_FAULT, "cache folder",
                   "name another with --cache or TUNDISH_CACHE", "%s", tnd_error_text());
        return;
    }
    if (faccessat(folder, ".", W_OK | X_OK, 0) != 0)
        doctor_say(doctor, DOCTOR_FAULT, "cache folder",
                   "name another with --cache or TUNDISH_CACHE", "it cannot be written to: %s",
                   strerror(errno));
    else if (fstatvfs(folder, &space) == 0 &&
             (uint64_t)space.f_bavail * space.f_bsize < CACHE_ENOUGH)
        doctor_say(doctor, DOCTOR_WARNING, "cache folder",
                   "remove files there: they are made again when they are needed; or name another "
                   "folder with --cache or TUNDISH_CACHE",
                   "its file system has %llu MiB left for indexes and vocabulary tables",
                   (unsigned long long)space.f_bavail * space.f_bsize >> 20);
    else
        doctor_say(doctor, DOCTOR_OK, "cache folder", NULL, "can be written to");
    close(folder);
}
