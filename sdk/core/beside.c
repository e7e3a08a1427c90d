/* beside.c - files that lie in the folder of the running program. */
#include "core/beside.h"

#include <string.h>
#include <unistd.h>

bool
tnd_beside_program(const char *name, char ret_path[PATH_MAX])
{
    char path[PATH_MAX];
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);
    size_t folder_bytes;

    if (bytes <= 0)
        return false;
    path[bytes] = '\0';
    folder_bytes = (size_t)(strrchr(path, '/') + 1 - path);
    if (folder_bytes + strlen(name) >= sizeof path)
        return false;
    memcpy(ret_path, path, folder_bytes);
    strcpy(ret_path + folder_bytes, name);
    return true;
}
