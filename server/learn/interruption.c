/* interruption.c - signals that end the process while it learns.
 *
 * A thread waits for the signals with sigwait, so that the response is ordinary code that may lock
 * and print. Where SIGINT is blocked already, the server's own signal thread calls
 * interruption_take. */
#include "learn/interruption.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "core/end_signals.h"
#include "core/log.h"

static struct {
    pthread_mutex_t lock;
    struct artifact_folder *folder; /* NULL: nothing is being learned */
    bool is_hearing;
    pthread_t hearer;
    sigset_t blocked_before;
} learning = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
fill_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    tnd_end_signals_add(ret_set);
    sigaddset(ret_set, SIGUSR2);
}

/* End by the signal itself, as if it had never been blocked: the parent sees the cause in the wait
 * status. */
static void
end_by(int number)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, number);
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
    _exit(128 + number); /* the first process of a container does not end by a signal */
}

void
interruption_take(int number)
{
    pthread_mutex_lock(&learning.lock);
    /* The lock is never released: while the process ends, interruption_end must not report success.
     */
    if (learning.folder != NULL) {
        artifact_folder_freeze(learning.folder);
        tnd_log_print("%sinterrupted by SIG%s: the statistics learned so far, in %s, cannot be "
                      "used; run `tundish analyze` again\n",
                      isatty(STDERR_FILENO) ? "\r\033[K" : "", sigabbrev_np(number),
                      learning.folder->path);
        tnd_log_flush();
        end_by(number);
    }
    pthread_mutex_unlock(&learning.lock);
}

/* Wait for a signal; SIGUSR2 comes from interruption_end and ends the thread. A signal that arrives
 * when all is learned is sent to the process again, for its usual handler. */
static void *
hear(void *unused)
{
    sigset_t set;
    int number;

    (void)unused;
    fill_signals(&set);
    while (sigwait(&set, &number) != 0)
        ;
    if (number == SIGUSR2)
        return NULL;
    interruption_take(number);
    kill(getpid(), number);
    return NULL;
}

tundish_status
interruption_begin(struct artifact_folder *folder)
{
    int error;
    sigset_t set;

    fill_signals(&set);
    /* Blocked before other threads start: they inherit the mask, and only the hearer takes the
     * signals. */
    pthread_sigmask(SIG_BLOCK, &set, &learning.blocked_before);
    pthread_mutex_lock(&learning.lock);
    learning.folder = folder;
    pthread_mutex_unlock(&learning.lock);
    if (sigismember(&learning.blocked_before, SIGINT) == 1)
        return TUNDISH_OK;
    error = pthread_create(&learning.hearer, NULL, hear, NULL);
    if (error != 0)
        return tnd_fail_errno(error, "cannot start a thread");
    learning.is_hearing = true;
    return TUNDISH_OK;
}

void
interruption_end(void)
{
    pthread_mutex_lock(&learning.lock);
    learning.folder = NULL;
    pthread_mutex_unlock(&learning.lock);
    if (learning.is_hearing) {
        pthread_kill(learning.hearer, SIGUSR2);
        pthread_join(learning.hearer, NULL);
        learning.is_hearing = false;
    }
    pthread_sigmask(SIG_SETMASK, &learning.blocked_before, NULL);
}
