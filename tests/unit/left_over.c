/* left_over.c - a list of paths, and the process that removes them. */
#include "left_over.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/must.h"
#include "remove_tree.h"

enum { PATHS = 4096, PATH_BYTES = 128 };

struct left_over {
    _Atomic uint32_t count;
    char paths[PATHS][PATH_BYTES];
};

static struct left_over *noted;

char *__real_mkdtemp(char *path);
char *__wrap_mkdtemp(char *path);
int __real_mkstemp64(char *path);
int __wrap_mkstemp64(char *path);

static void
note(const char *path)
{
    uint32_t at = noted == NULL ? PATHS : atomic_fetch_add(&noted->count, 1);

    if (at < PATHS && strlen(path) < PATH_BYTES)
        strcpy(noted->paths[at], path);
}

char *
__wrap_mkdtemp(char *path)
{
    char *made = __real_mkdtemp(path);

    if (made != NULL)
        note(made);
    return made;
}

int
__wrap_mkstemp64(char *path)
{
    int file = __real_mkstemp64(path);

    if (file >= 0)
        note(path);
    return file;
}

/* In a session of its own, and nobody's child, so that no test waits for it. */
static _Noreturn void
remove_at_end(int pipe_end)
{
    char byte;

    if (setsid() < 0 || fork() != 0)
        _exit(0);
    while (read(pipe_end, &byte, 1) < 0)
        ;
    for (uint32_t i = 0; i < noted->count && i < PATHS; i++)
        remove_tree(noted->paths[i]);
    _exit(0);
}

void
left_over_remove_at_end(void)
{
    int ends[2];
    pid_t child;

    noted = mmap(NULL, sizeof *noted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(noted != MAP_FAILED && pipe2(ends, O_CLOEXEC) == 0);
    child = fork();
    must(child >= 0);
    if (child == 0) {
        close(ends[1]);
        remove_at_end(ends[0]);
    }
    close(ends[0]); /* the other end is closed when the last process that has it ends */
    must(waitpid(child, NULL, 0) == child);
}
