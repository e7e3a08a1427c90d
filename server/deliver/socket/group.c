/* group.c - groups of peers, as the kernel noted them when they connected. */
#include "deliver/socket/group.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/status.h"

tundish_status
group_find(const char *name, gid_t *ret_group)
{
    const struct group *found;

    errno = 0;
    found = getgrnam(name);
    if (found == NULL && errno != 0 && errno != ENOENT)
        return tnd_fail_errno(errno, "cannot look up the group %s", name);
    if (found == NULL)
        return tnd_fail(TUNDISH_E_ARGUMENT, "--group %s: there is no such group", name);
    *ret_group = found->gr_gid;
    return TUNDISH_OK;
}

tundish_status
group_share(const char *path, gid_t group, mode_t mode)
{
    struct stat about;

    if (lstat(path, &about) != 0)
        return tnd_fail_errno(errno, "cannot look at %s", path);
    /* A service whose own group it is may be forbidden to change owners at all. */
    if (about.st_gid != group && lchown(path, (uid_t)-1, group) != 0)
        return tnd_fail_errno(errno, "cannot give %s to group %u, which this user must be in", path,
                              (unsigned)group);
    return chmod(path, mode) == 0 ? TUNDISH_OK : tnd_fail_errno(errno, "cannot share %s", path);
}

bool
group_has_peer(int socket, gid_t own, gid_t group)
{
    socklen_t bytes = 0;
    gid_t *groups;
    bool found = own == group;

    if (found)
        return true;
    /* The first call says how much room the groups take; they never change afterwards. */
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes) == 0 || errno != ERANGE)
        return false;
    groups = tnd_zalloc(1, bytes);
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) == 0)
        for (size_t i = 0; !found && i < bytes / sizeof *groups; i++)
            found = groups[i] == group;
    free(groups);
    return found;
}
