/* test_must.c - a process that has met a bug ends. */
#include "core/must.h"
#include "unit/test_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* What ends a child that meets a bug while `descriptor` is its standard error. */
static int
signal_of_a_bug(int descriptor)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        alarm(60); /* it would hang */
        dup2(descriptor, STDERR_FILENO);
        must(descriptor == -2);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void
a_bug_says_where_it_is(void **state)
{
    char text[512] = "";
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(signal_of_a_bug(ends[1]), SIGABRT);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    assert_non_null(strstr(text, "test_must.c:"));
    assert_non_null(strstr(text, "bug: descriptor == -2"));
    close(ends[0]);
    close(ends[1]);
}

static void
a_bug_ends_the_process_though_nobody_reads(void **state)
{
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    while (write(ends[1], "x", 1) == 1)
        ;
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
    assert_int_equal(signal_of_a_bug(ends[1]), SIGABRT);
    close(ends[0]);
    close(ends[1]);
}

TEST_FILE(test_must)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bug_says_where_it_is),
        cmocka_unit_test(a_bug_ends_the_process_though_nobody_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
