/* ending.c - a process without an address space, whose threads are all flagged as exiting. */
#include "deliver/ending.h"

#include "core/read_write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* The kernel's PF_EXITING: set before a thread lets go of its memory, never cleared. */
#define FLAG_EXITING 4UL

enum { STAT_BYTES = 512, FLAGS_FIELD = 7 }; /* fields after the name, which may hold anything */

/* Try to read a byte at address 0, which no process maps. Only the error matters: ESRCH comes only
 * after the first thread has released its memory. Before that it is EFAULT, or EPERM where we may
 * not read the process. */
static bool
has_no_memory(int pid)
{
    char byte;
    struct iovec here = { &byte, 1 }, there = { NULL, 1 };

    return process_vm_readv(pid, &here, 1, &there, 1, 0) < 0 && errno == ESRCH;
}

static bool
is_exiting(int task_folder, const char *thread)
{
    char path[64], text[STAT_BYTES];
    const char *field;
    size_t bytes;
    int file, error;

    snprintf(path, sizeof path, "%.20s/stat", thread);
    file = openat(task_folder, path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT || errno == ESRCH; /* the thread ended after readdir */
    error = tnd_read(file, text, sizeof text - 1, &bytes);
    close(file);
    if (error != 0)
        return true; /* the thread ended after openat */
    text[bytes] = '\0';
    /* The name is in parentheses and may itself contain parentheses and spaces. The last one ends
     * it. */
    field = strrchr(text, ')');
    for (int i = 0; field != NULL && i < FLAGS_FIELD; i++)
        field = strchr(field + 1, ' ');
    return field != NULL && (strtoul(field, NULL, 10) & FLAG_EXITING) != 0;
}

/* A program's first thread may end before the others, so look at all of them. */
static bool
are_all_exiting(int pid)
{
    char path[32];
    DIR *folder;
    struct dirent *entry;
    bool all = true;

    snprintf(path, sizeof path, "/proc/%d/task", pid);
    folder = opendir(path);
    if (folder == NULL)
        return false;
    while (all && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            all = is_exiting(dirfd(folder), entry->d_name);
    closedir(folder);
    return all;
}

bool
ending_has_begun(int pid)
{
    return has_no_memory(pid) && are_all_exiting(pid);
}
