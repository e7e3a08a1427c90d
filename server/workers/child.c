/* child.c - see child.h. */
#include "workers/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/read_write.h"
#include "workers/child_guard.h"

/* A function that prints for each row must not drown what else the log has to say. */
enum { LINES_A_MINUTE = 100 };

enum { PIPE_BYTES = 1 << 20, LOOK_AT_STOP_MS = 50, SILENT_S = 60, LOOK_AT_GUARD_NS = 1000000 };

/* A guard gives its program 200 ms to end and then kills it. This is for a guard that the program
 * has stopped or that hangs. */
static const int64_t GUARD_PATIENCE_NS = 5000000000;

extern char **environ;

/* The environment of this process, with the variables that the command adds or replaces. */
static const char **
environment_of(const struct child_command *command)
{
    size_t count = 0, own = 0;
    const char **all;

    while (environ[own] != NULL)
        own++;
    while (command->environment[count] != NULL)
        count++;
    all = tnd_zalloc(own + count + 1, sizeof *all);
    memcpy(all, command->environment, count * sizeof *all);
    for (size_t i = 0; i < own; i++) {
        bool is_replaced = false;

        for (const char *const *added = command->environment; *added != NULL; added++) {
            size_t name = strcspn(*added, "=") + 1;

            is_replaced |= strncmp(*added, environ[i], name) == 0;
        }
        if (!is_replaced)
            all[count++] = environ[i];
    }
    return all;
}

static bool
is_program(const char *path)
{
    struct stat info;

    if (access(path, X_OK) != 0 || stat(path, &info) != 0)
        return false;
    if (!S_ISREG(info.st_mode))
        errno = EACCES;
    return S_ISREG(info.st_mode);
}

/* Is it in this folder, which may be relative to another one? */
static bool
is_in(const char *within, const char *folder, int folder_bytes, const char *name)
{
    const char *slash = folder_bytes > 0 ? "/" : "";
    char *path = folder[0] == '/'
                     ? tnd_sprintf("%.*s/%s", folder_bytes, folder, name)
                     : tnd_sprintf("%s/%.*s%s%s", within, folder_bytes, folder, slash, name);
    bool found = is_program(path);

    free(path);
    return found;
}

/* As execvpe will look for it. */
static bool
is_found(const char *name, const char *folder)
{
    const char *path = getenv("PATH");

    if (name[0] == '/')
        return is_program(name);
    if (strchr(name, '/') != NULL)
        return is_in(folder, "", 0, name);
    for (path = path != NULL ? path : "/bin:/usr/bin";; path++) {
        int bytes = (int)strcspn(path, ":");

        if (is_in(folder, path, bytes, name))
            return true;
        path += bytes;
        if (*path == '\0')
            return false;
    }
}

tundish_status
child_check(const char *name, const char *folder)
{
    errno = ENOENT;
    if (is_found(name, folder))
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_DATA, "program %s cannot be started: %s", name, strerror(errno));
}

/* Each is read from [0] and written to [1]. `life` carries nothing: the guard ends the program when
 * it closes. */
struct pipes {
    int output[2], errors[2], life[2], report[2];
};

static void
pipes_close(struct pipes *pipes, int end)
{
    int *const all[] = { pipes->output, pipes->errors, pipes->life, pipes->report };

    for (int i = 0; i < 4; i++) {
        int *which = &all[i][i == 2 ? 1 - end : end]; /* life runs the other way */

        if (*which >= 0)
            close(*which);
        *which = -1;
    }
}

static tundish_status
pipes_open(struct pipes *pipes)
{
    memset(pipes, 0xFF, sizeof *pipes); /* -1 everywhere */
    if (pipe2(pipes->output, O_CLOEXEC) != 0 || pipe2(pipes->errors, O_CLOEXEC) != 0 ||
        pipe2(pipes->life, O_CLOEXEC) != 0 || pipe2(pipes->report, O_CLOEXEC) != 0) {
        tundish_status status = tnd_fail_errno(errno, "cannot make a pipe for a program");

        pipes_close(pipes, 0);
        pipes_close(pipes, 1);
        return status;
    }
    /* A larger pipe only makes it faster, and the kernel may refuse it. */
    (void)fcntl(pipes->output[0], F_SETPIPE_SZ, PIPE_BYTES);
    fcntl(pipes->output[0], F_SETFL, O_NONBLOCK);
    fcntl(pipes->errors[0], F_SETFL, O_NONBLOCK);
    return TUNDISH_OK;
}

tundish_status
child_start(const struct child_command *command, struct child *ret_child)
{
    struct pipes pipes;
    const char **environment;
    sigset_t all, before;
    pid_t guard;
    tundish_status status = pipes_open(&pipes);

    if (status != TUNDISH_OK)
        return status;
    /* All of this allocates, so it is done before the fork: in the child of a process with threads
     * a lock of the allocator may be held for good. */
    environment = environment_of(command);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no handler of ours runs in the guard */
    guard = fork();
    if (guard == 0)
        child_guard(&(struct guard_orders){
            .output = pipes.output[1],
            .errors = pipes.errors[1],
            .life = pipes.life[0],
            .report = pipes.report[1],
            .arguments = (char *const *)(uintptr_t)command->arguments,
            .environment = (char *const *)(uintptr_t)environment,
            .folder = command->folder,
            .input = command->input,
            .forker = command->forker,
        });
    if (guard < 0)
        status = tnd_fail_errno(errno, "cannot start a process for a program");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(environment);
    pipes_close(&pipes, 1);
    if (guard < 0) {
        pipes_close(&pipes, 0);
        return status;
    }
    *ret_child = (struct child){
        .guard = guard,
        .output = pipes.output[0],
        .errors = pipes.errors[0],
        .life = pipes.life[1],
        .waited_ns = command->waited_ns,
        .report = pipes.report[0],
    };
    return TUNDISH_OK;
}

/* Frees the sentence. */
static void
say_left_out(const char *name, char *sentence)
{
    tnd_log_output(name, sentence, strlen(sentence));
    free(sentence);
}

/* May a line of its own go to the log? One that is left out is told of at once, and counted. */
static bool
may_log(struct child *child, const char *name)
{
    int64_t now_ns = tnd_clock_ns();

    if (child->lines == 0 || now_ns - child->lines_since_ns > INT64_C(60000000000)) {
        if (child->lines_dropped > 0)
            say_left_out(name, tnd_sprintf("(%u more lines of %s were left out)",
                                           child->lines_dropped, name));
        child->lines_since_ns = now_ns;
        child->lines = child->lines_dropped = 0;
    }
    if (child->lines < LINES_A_MINUTE) {
        child->lines++;
        return true;
    }
    if (child->lines_dropped++ == 0)
        say_left_out(name, tnd_sprintf("(more lines of %s are left out: %d were shown within a "
                                       "minute)",
                                       name, LINES_A_MINUTE));
    return false;
}

static void
add_words(struct child *child, const char *text, size_t bytes)
{
    size_t kept = child->last_word_bytes;

    if (bytes > CHILD_LAST_WORDS) {
        text += bytes - CHILD_LAST_WORDS;
        bytes = CHILD_LAST_WORDS;
    }
    if (kept > CHILD_LAST_WORDS - bytes)
        kept = CHILD_LAST_WORDS - bytes;
    memmove(child->last_words, child->last_words + child->last_word_bytes - kept, kept);
    memcpy(child->last_words + kept, text, bytes);
    child->last_word_bytes = kept + bytes;
    child->line_bytes += bytes;
    if (child->line_bytes > child->last_word_bytes)
        child->line_bytes = child->last_word_bytes;
}

/* The line that the last words end with. */
static void
log_line(struct child *child, const char *name)
{
    const char *line = child->last_words + child->last_word_bytes - child->line_bytes;
    size_t bytes = child->line_bytes;

    child->line_bytes = 0;
    if (bytes > 0 && line[bytes - 1] == '\n')
        bytes--;
    if (may_log(child, name))
        tnd_log_output(name, line, bytes);
}

/* A line that is longer than last_words is logged by its end. */
static void
hear(struct child *child, const char *name, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const char *end = memchr(text, '\n', bytes);
        size_t part = end != NULL ? (size_t)(end + 1 - text) : bytes;

        add_words(child, text, part);
        if (end != NULL)
            log_line(child, name);
        text += part;
        bytes -= part;
    }
}

void
child_listen(struct child *child, const char *name)
{
    char text[4096];
    ssize_t got;

    while (child->errors >= 0 &&
           ((got = read(child->errors, text, sizeof text)) >= 0 || errno == EINTR)) {
        if (got == 0) {
            close(child->errors);
            child->errors = -1;
            if (child->line_bytes > 0)
                log_line(child, name);
            return;
        }
        hear(child, name, text, got > 0 ? (size_t)got : 0);
    }
}

/* Wait until there is something to read from `descriptor`, and read the program's standard error
 * meanwhile: a program blocks when that pipe is full. A program may stop its guard, and then
 * nothing notices that it ended; so the guard is woken now and then. */
static tundish_status
wait_for(struct child *child, const char *name, int descriptor, const char *what,
         const _Atomic int *stop)
{
    int64_t begin_ns = tnd_clock_ns(), counted_ns = begin_ns;
    bool is_told = false;

    for (;;) {
        struct pollfd watched[2] = { { .fd = descriptor, .events = POLLIN },
                                     { .fd = child->errors, .events = POLLIN } };
        int64_t now_ns;

        if (stop != NULL && atomic_load_explicit(stop, memory_order_relaxed) != 0)
            return tnd_fail(TUNDISH_STOPPED, "stopped while program %s was %s", name, what);
        if (poll(watched, 2, LOOK_AT_STOP_MS) == 0)
            kill(child->guard, SIGCONT);
        child_listen(child, name);
        now_ns = tnd_clock_ns();
        if (child->waited_ns != NULL)
            atomic_fetch_add_explicit(child->waited_ns, (uint64_t)(now_ns - counted_ns),
                                      memory_order_relaxed);
        counted_ns = now_ns;
        if (watched[0].revents != 0)
            return TUNDISH_OK;
        if (!is_told && now_ns - begin_ns > SILENT_S * INT64_C(1000000000)) {
            tnd_log(TND_LOG_WARNING, "program_silent", "%s has been %s for %d s: the stream waits",
                    name, what, SILENT_S);
            is_told = true;
        }
    }
}

tundish_status
child_read(struct child *child, const char *name, const _Atomic int *stop, void *to, size_t bytes,
           size_t *ret_bytes)
{
    *ret_bytes = 0;
    while (!child->output_ended) {
        ssize_t got = read(child->output, to, bytes);
        tundish_status status;

        if (got > 0) {
            *ret_bytes = (size_t)got;
            return TUNDISH_OK;
        }
        if (got == 0) {
            child->output_ended = true;
            break;
        }
        if (errno != EAGAIN && errno != EINTR)
            return tnd_fail_errno(errno, "cannot read what program %s writes", name);
        status = wait_for(child, name, child->output, "writing nothing", stop);
        if (status != TUNDISH_OK)
            return status;
    }
    return TUNDISH_OK;
}

/* Append the last lines as one sentence, with " | " between them. Control characters become spaces,
 * since the text may go to a terminal. */
static void
say_last_words(const struct child *child, char *text, size_t bytes)
{
    size_t at = (size_t)snprintf(text, bytes, "; the end of its standard error: ");
    size_t from = 0;

    if (child->last_word_bytes == 0) {
        snprintf(text, bytes, "; it wrote nothing to its standard error");
        return;
    }
    if (child->last_word_bytes > 600)
        from = child->last_word_bytes - 600;
    for (size_t end = child->last_word_bytes; from < end && at + 4 < bytes; from++) {
        char letter = child->last_words[from];

        if (letter == '\n' && from + 1 == end)
            break;
        if (letter == '\n') {
            memcpy(text + at, " | ", 3);
            at += 3;
        } else {
            text[at++] = (unsigned char)letter < ' ' ? ' ' : letter;
        }
    }
    text[at] = '\0';
}

tundish_status
child_wait(struct child *child, const char *name, const _Atomic int *stop)
{
    struct guard_report report = { 0 };
    char words[1024];
    size_t got = 0;
    tundish_status status =
        wait_for(child, name, child->report, "finished writing, but has not exited", stop);

    if (status != TUNDISH_OK)
        /* A short report is a closed pipe: the guard ended before it could tell. */
        return status;
    (void)tnd_read(child->report, &report, sizeof report, &got);
    child_listen(child, name);
    if (got != sizeof report)
        return tnd_fail(TUNDISH_E_DATA, "program %s: its guard was killed", name);
    if (report.error != 0)
        return tnd_fail(TUNDISH_E_DATA, "program %s cannot be started: %s", name,
                        strerror(report.error));
    if (report.status == 0)
        return TUNDISH_OK;
    say_last_words(child, words, sizeof words);
    child->ended_by = WIFSIGNALED(report.status) ? WTERMSIG(report.status) : 0;
    if (child->ended_by != 0)
        return tnd_fail(TUNDISH_E_DATA, "program %s was ended by signal %d (%s)%s", name,
                        WTERMSIG(report.status), strsignal(WTERMSIG(report.status)), words);
    return tnd_fail(TUNDISH_E_DATA, "program %s returned %d%s", name, WEXITSTATUS(report.status),
                    words);
}

/* The guard ends by itself, now that `life` is closed. It is killed if its program keeps it from
 * that. */
static void
await_guard(pid_t guard)
{
    const struct timespec pause = { .tv_nsec = LOOK_AT_GUARD_NS };
    int64_t deadline_ns = tnd_clock_deadline_ns(GUARD_PATIENCE_NS);

    while (waitpid(guard, NULL, WNOHANG) == 0) {
        kill(guard, tnd_clock_left_ns(deadline_ns) > 0 ? SIGCONT : SIGKILL);
        nanosleep(&pause, NULL);
    }
}

void
child_stop(struct child *child)
{
    if (child->guard == 0)
        return;
    close(child->life);
    close(child->output); /* a process that still writes is ended by SIGPIPE */
    if (child->errors >= 0)
        close(child->errors);
    close(child->report);
    await_guard(child->guard);
    *child = (struct child){ 0 };
}
