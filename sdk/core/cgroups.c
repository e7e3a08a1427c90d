/* cgroups.c - from /proc/self/cgroup to folders under /sys/fs/cgroup.
 *
 * In a container the path may be the host's, which does not exist there. The way up ends at the
 * mount, which is then the container's own group.
 */
#include "core/cgroups.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

/* Is it one of the names between commas? */
static bool
names_it(const char *names, const char *controller)
{
    size_t bytes = strlen(controller);

    for (const char *at = names; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, controller, bytes) == 0 && (at[bytes] == ',' || at[bytes] == '\0'))
            return true;
    }
    return false;
}

static void
visit_upwards(const char *mount, char *path, void (*visit)(void *context, const char *folder),
              void *context)
{
    for (;;) {
        char folder[PATH_BYTES];
        char *slash = strrchr(path, '/');

        snprintf(folder, sizeof folder, "%.100s%.900s", mount, path);
        visit(context, folder);
        if (slash == NULL)
            return;
        *slash = '\0';
    }
}

/* "0::/path" of version 2, "4:cpu,cpuacct:/path" of version 1. */
void
tnd_cgroups_visit(const char *controller, void (*visit)(void *context, const char *folder),
                  void *context)
{
    char line[PATH_BYTES], mount[128];
    FILE *file = fopen("/proc/self/cgroup", "re");

    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL) {
        char *names = strchr(line, ':');
        char *path = names == NULL ? NULL : strchr(names + 1, ':');

        if (path == NULL)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        names++;
        if (names[0] != '\0' && !names_it(names, controller))
            continue;
        if (strcmp(path, "/") == 0)
            *path = '\0';
        snprintf(mount, sizeof mount, "/sys/fs/cgroup%s%.64s", names[0] != '\0' ? "/" : "", names);
        visit_upwards(mount, path, visit, context);
    }
    fclose(file);
}
