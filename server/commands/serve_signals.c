/* serve_signals.c - SIGTERM, SIGINT and SIGHUP drain a server, and a second SIGTERM or SIGINT ends
 * it at once; SIGUSR1 reports a failure on another node. */
#include "commands/serve_signals.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "core/end_signals.h"
#include "core/log.h"
#include "learn/interruption.h"
#include "remote/remote.h"

static void
awaited_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    tnd_end_signals_add(ret_set);
    sigaddset(ret_set, SIGUSR1);
    sigaddset(ret_set, SIGUSR2);
}

_Atomic int serve_stop_signal;
_Atomic bool serve_job_failed;
static sem_t woken;

/* Wait for signals until one ends the server. Where its `--signal` says so, Slurm sends SIGUSR1 or
 * SIGUSR2 to every process of a job step. They are for the trainers: only the process that started
 * this one knows of a failure elsewhere. */
static int
wait_for_signal(void)
{
    sigset_t set;
    siginfo_t about;

    awaited_signals(&set);
    for (;;) {
        int number = sigwaitinfo(&set, &about);

        if (number == SIGUSR1 && about.si_pid == getppid()) {
            atomic_store(&serve_job_failed, true);
            sem_post(&woken);
        } else if (number == SIGTERM || number == SIGINT || number == SIGHUP) {
            return number;
        }
    }
}

/* The first signal drains the server, and the second one ends it at once. A SIGHUP is never the
 * second: a terminal that closes sends it to its foreground, and so may the shell. */
static void *
hear_signals(void *unused)
{
    int number = wait_for_signal();

    (void)unused;
    interruption_take(number);
    atomic_store(&serve_stop_signal, number);
    /* A thread may wait for a server that does not answer. */
    remote_give_up();
    sem_post(&woken);
    do
        number = wait_for_signal();
    while (number == SIGHUP);
    tnd_log(TND_LOG_NOTICE, "stop", "signal %d again: stopping at once", number);
    tnd_log_flush();
    _exit(128 + number);
}

/* Block the signals before any thread starts: all inherit the mask, and one thread waits with
 * sigwait. */
tundish_status
serve_hear_signals(void)
{
    sigset_t set;
    pthread_t thread;
    int error;

    awaited_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    sem_init(&woken, 0, 0);
    error = pthread_create(&thread, NULL, hear_signals, NULL);
    if (error != 0)
        return tnd_fail_errno(error, "cannot start a thread");
    pthread_detach(thread);
    return TUNDISH_OK;
}

void
serve_wake(void *unused)
{
    (void)unused;
    sem_post(&woken);
}

/* A semaphore, because sem_post may be called from any thread and a post before the wait is not
 * lost. */
bool
serve_wait(int64_t timeout_ns)
{
    struct timespec until;

    if (timeout_ns < 0)
        return sem_wait(&woken) == 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += timeout_ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return sem_clockwait(&woken, CLOCK_MONOTONIC, &until) == 0;
}
