/* test_lock.c - where checks are compiled in, a lock knows who holds it. */
#include "core/lock.h"
#include "unit/test_file.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct tnd_lock lock = { .mutex = PTHREAD_MUTEX_INITIALIZER };

/* Does a process end that says it holds the lock, where it does or does not? */
static bool
ends(bool holds_it)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        close(STDERR_FILENO);
        if (holds_it)
            tnd_lock_take(&lock);
        must_hold(&lock);
        if (holds_it)
            tnd_lock_release(&lock);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
}

#ifdef TND_CHECKS
static const bool IS_CHECKED = true;
#else
static const bool IS_CHECKED = false;
#endif

static void
who_does_not_hold_it_meets_a_bug(void **state)
{
    (void)state;
    assert_false(ends(true));
    assert_int_equal(ends(false), IS_CHECKED);
}

/* The owner is told by thread. */
static void *
hold(void *argument)
{
    (void)argument;
    tnd_lock_take(&lock);
    must_hold(&lock);
    tnd_lock_release(&lock);
    return NULL;
}

static void
it_passes_from_thread_to_thread(void **state)
{
    pthread_t thread;

    (void)state;
    tnd_lock_take(&lock);
    assert_int_equal(pthread_create(&thread, NULL, hold, NULL), 0);
    must_hold(&lock);
    tnd_lock_release(&lock);
    pthread_join(thread, NULL);
    tnd_lock_take(&lock);
    must_hold(&lock);
    tnd_lock_release(&lock);
}

TEST_FILE(test_lock)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_does_not_hold_it_meets_a_bug),
        cmocka_unit_test(it_passes_from_thread_to_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
