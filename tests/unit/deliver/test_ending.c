/* test_ending.c - who is on his way out, and who only looks like it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deliver/ending.h"
#include "unit/test_file.h"

/* A child that has done `before` and now waits for its end. */
static pid_t
start_child(void (*before)(int ready))
{
    int ends[2];
    char word;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        before(ends[1]);
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &word, 1), 1);
    close(ends[0]);
    return child;
}

static void
be_ready(int ready)
{
    if (write(ready, "r", 1) != 1)
        _exit(1);
}

static void *
outlive_the_first(void *argument)
{
    char path[64], text[512];

    /* The first thread is a zombie when its state says so. */
    for (;;) {
        FILE *file;

        snprintf(path, sizeof path, "/proc/%d/task/%d/stat", getpid(), getpid());
        file = fopen(path, "r");
        if (file == NULL || fgets(text, sizeof text, file) == NULL)
            _exit(1);
        fclose(file);
        if (strstr(text, ") Z ") != NULL)
            break;
        usleep(1000);
    }
    be_ready(*(int *)argument);
    for (;;)
        pause();
}

static void
end_the_first_thread(int ready)
{
    static int the_end;
    pthread_t other;

    the_end = ready;
    if (pthread_create(&other, NULL, outlive_the_first, &the_end) != 0)
        _exit(1);
    syscall(SYS_exit, 0);
}

/* Dead, but its parent has not asked yet. */
static void
kill_child(pid_t child)
{
    siginfo_t info;

    kill(child, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
}

/* Where a sandbox keeps processes from reading each other's memory, the end is noticed with the
 * socket's. */
static bool
may_read_memory(void)
{
    char byte = 'r', copy = 0;
    struct iovec here = { &copy, 1 }, there = { &byte, 1 };

    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

static void
a_living_process_is_not_ending(void **state)
{
    pid_t child = start_child(be_ready);

    (void)state;
    assert_false(ending_has_begun(getpid()));
    assert_false(ending_has_begun(child));
    kill(child, SIGSTOP);
    waitpid(child, NULL, WUNTRACED);
    assert_false(ending_has_begun(child));
    kill_child(child);
    waitpid(child, NULL, 0);
}

static void
a_killed_one_is_ending_before_it_is_gone(void **state)
{
    pid_t child;

    (void)state;
    if (!may_read_memory())
        skip();
    child = start_child(be_ready);
    kill_child(child);
    assert_true(ending_has_begun(child));
    waitpid(child, NULL, 0);
}

static void
one_whose_first_thread_has_ended_is_not_ending(void **state)
{
    pid_t child = start_child(end_the_first_thread);

    (void)state;
    assert_false(ending_has_begun(child));
    kill_child(child);
    if (may_read_memory())
        assert_true(ending_has_begun(child));
    waitpid(child, NULL, 0);
}

TEST_FILE(test_ending)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_living_process_is_not_ending),
        cmocka_unit_test(a_killed_one_is_ending_before_it_is_gone),
        cmocka_unit_test(one_whose_first_thread_has_ended_is_not_ending),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
