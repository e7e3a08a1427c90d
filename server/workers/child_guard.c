/* child_guard.c - see child_guard.h. */
#include "workers/child_guard.h"

#include "core/read_write.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Where the guard keeps its pipes: after the standard ones, and nothing above them is open. They
 * are first copied out of the way, so that no dup2 overwrites one that is still needed. */
enum { LIFE = 3, REPORT = 4, FORKER = 5, FIRST_CLOSED = 6, OUT_OF_THE_WAY = 64 };

/* SIGTERM first, and SIGKILL after the grace. */
enum { GRACE_MS = 200, STEP_MS = 5 };

/* If nobody reads the report any more, nobody needs it. */
static void
tell_parent(int32_t error, int32_t status)
{
    struct guard_report report = { error, status };

    (void)tnd_write(REPORT, &report, sizeof report);
}

/* The server ignores SIGPIPE and blocks signals in its threads. Both survive execve, and a program
 * expects neither. */
static void
clear_signals(void)
{
    struct sigaction as_usual = { .sa_handler = SIG_DFL };
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        sigaction(number, &as_usual, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Tell the forker, with descriptors. */
static bool
ask_for_fork(int line)
{
    uint64_t words[CHILD_FORK_WORDS] = { CHILD_FORK };
    int given[3] = { STDIN_FILENO, STDERR_FILENO, line };
    struct iovec bytes = { words, sizeof words };
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof given)] = { 0 };
    struct msghdr header = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
    };
    struct cmsghdr *with = CMSG_FIRSTHDR(&header);

    with->cmsg_level = SOL_SOCKET;
    with->cmsg_type = SCM_RIGHTS;
    with->cmsg_len = CMSG_LEN(sizeof given);
    memcpy(CMSG_DATA(with), given, sizeof given);
    return sendmsg(FORKER, &header, MSG_NOSIGNAL) == (ssize_t)sizeof words;
}

/* Stand for a fork of the forker, and end as it does; with the forker it is killed. */
static _Noreturn void
stand_for_fork(void)
{
    int line[2], status = SIGKILL, told;
    size_t got = 0;

    prctl(PR_SET_DUMPABLE, 0); /* it is the fork that has crashed */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) == 0 && ask_for_fork(line[1])) {
        close(line[1]);
        for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; standard++)
            close(standard);
        if (tnd_read(line[0], &told, sizeof told, &got) == 0 && got == sizeof told)
            status = told;
    }
    if (WIFSIGNALED(status))
        kill(getpid(), WTERMSIG(status));
    _exit(WEXITSTATUS(status));
}

static _Noreturn void
become_program(const struct guard_orders *orders, pid_t guard)
{
    /* A group of its own, so that an interrupt at the terminal does not reach it. */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* A guard that was killed before prctl would not end this process; then the parent is another
     * one. */
    if (getppid() == guard && orders->forker > 0)
        stand_for_fork();
    if (getppid() == guard && chdir(orders->folder) == 0)
        execvpe(orders->arguments[0], orders->arguments, orders->environment);
    tell_parent(errno, 0);
    _exit(127);
}

/* Put the standard pipes and the guard's where they belong, and close everything else: the
 * descriptors of the server (its files, sockets and shared memory) must not outlive it in a
 * program. */
static void
arrange_pipes(const struct guard_orders *orders)
{
    int output = fcntl(orders->output, F_DUPFD, OUT_OF_THE_WAY);
    int errors = fcntl(orders->errors, F_DUPFD, OUT_OF_THE_WAY);
    int life = fcntl(orders->life, F_DUPFD, OUT_OF_THE_WAY);
    int report = fcntl(orders->report, F_DUPFD, OUT_OF_THE_WAY);
    int input = orders->input > 0 ? fcntl(orders->input, F_DUPFD, OUT_OF_THE_WAY)
                                  : open("/dev/null", O_RDONLY | O_CLOEXEC);
    int forker = orders->forker > 0 ? fcntl(orders->forker, F_DUPFD, OUT_OF_THE_WAY) : -1;

    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    dup2(life, LIFE);
    dup2(report, REPORT);
    if (forker >= 0)
        dup2(forker, FORKER);
    close_range(forker >= 0 ? FIRST_CLOSED : FORKER, ~0U, 0);
    fcntl(LIFE, F_SETFD, FD_CLOEXEC);
    fcntl(REPORT, F_SETFD, FD_CLOEXEC);
}

/* Send a signal to each child in the kernel's list. Orphans of the program are in it, since the
 * guard is their subreaper. */
static bool
signal_children(int number)
{
    char text[4096];
    int list = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    size_t bytes = 0;
    pid_t child = 0;

    if (list >= 0)
        (void)tnd_read(list, text, sizeof text, &bytes);

    /* The list is numbers with a space after each. One that was cut at the end of the buffer is
     * left for the next look. */
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            child = 10 * child + (text[i] - '0');
        } else {
            if (child > 0)
                kill(child, number);
            child = 0;
        }
    }
    if (list >= 0)
        close(list);
    return list >= 0;
}

static void
pause_ms(long milliseconds)
{
    struct timespec wait = { .tv_nsec = milliseconds * 1000000 };

    nanosleep(&wait, NULL);
}

/* Signal and reap until no child is left, or for so long. SIGKILL is repeated without a limit,
 * because a process may fork while the list is read. */
static bool
is_alone_within(pid_t program, int number, int milliseconds)
{
    for (int waited = 0; waited <= milliseconds || number == SIGKILL; waited += STEP_MS) {
        pid_t gone;

        while ((gone = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (gone < 0 && errno == ECHILD)
            return true;
        if (!signal_children(number))
            kill(-program, number); /* without CONFIG_PROC_CHILDREN: the group */
        pause_ms(STEP_MS);
    }
    return false;
}

static _Noreturn void
watch_program(pid_t program)
{
    struct pollfd watched[2] = { { .fd = LIFE }, { .fd = -1, .events = POLLIN } };
    bool is_over = false;
    int status;

    /* Without pidfd_open (before Linux 5.3) it polls every 50 ms. */
    watched[1].fd = (int)syscall(SYS_pidfd_open, program, 0);
    while ((watched[0].revents & (POLLHUP | POLLERR | POLLNVAL)) == 0) {
        poll(watched, 2, watched[1].fd < 0 && !is_over ? 50 : -1);
        if (!is_over && waitpid(program, &status, WNOHANG) == program) {
            tell_parent(0, status);
            is_over = true;
            if (watched[1].fd >= 0)
                close(watched[1].fd);
            watched[1].fd = -1;
        }
    }
    if (!is_alone_within(program, SIGTERM, GRACE_MS))
        (void)is_alone_within(program, SIGKILL, 0);
    _exit(0);
}

/* SIGPIPE is ignored only after the program was forked: the report's reader may be gone, and the
 * guard must still end its program. */
_Noreturn void
child_guard(const struct guard_orders *orders)
{
    pid_t guard = getpid();
    pid_t program;

    setpgid(0, 0); /* an interrupt at the terminal is not for the guard */
    arrange_pipes(orders);
    clear_signals();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    program = fork();
    if (program == 0)
        become_program(orders, guard);
    close(STDIN_FILENO); /* else a socket there would outlive the program */
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    if (orders->forker > 0)
        close(FORKER);
    /* A program that could not be forked is reported like one that could not be executed. */
    if (program < 0) {
        tell_parent(errno, 0);
        _exit(1);
    }
    setpgid(program, program);
    signal(SIGPIPE, SIG_IGN);
    watch_program(program);
}
