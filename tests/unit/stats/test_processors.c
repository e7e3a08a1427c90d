/* test_processors.c - a process that lacks a processor says so, and who has it. */
#include "stats/processors.h"
#include "unit/test_file.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static int64_t
now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void
spin(int64_t processor_ns)
{
    int64_t end_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) + processor_ns;

    while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < end_ns)
        ;
}

/* This process and its child on one processor. */
static pid_t
share_a_processor(cpu_set_t *ret_before)
{
    cpu_set_t one;
    pid_t child;

    assert_int_equal(sched_getaffinity(0, sizeof *ret_before, ret_before), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, ret_before))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    child = fork();
    if (child == 0)
        alarm(120);
    if (child == 0)
        for (;;)
            spin(INT64_C(1000000000));
    return child;
}

static void
a_shared_processor_is_seen_and_who_shares_it(void **state)
{
    struct processors *processors = processors_open();
    struct processors_use use;
    cpu_set_t before;
    pid_t child;

    (void)state;
    if (access("/proc/self/schedstat", R_OK) != 0) {
        print_message("skipped: this kernel does not count run-queue delay\n");
        processors_close(processors);
        skip();
    }
    child = share_a_processor(&before);
    assert_true(child > 0);
    do {
        spin(100000000);
        processors_look(processors, &use);
    } while (use.run_delay_ns < 500000000 || use.rival_ns == 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_not_equal(use.rival, getpid());
    assert_true(use.rival_command[0] != '\0');
    processors_close(processors);
}

static void
counters_never_fall(void **state)
{
    struct processors *processors = processors_open();
    struct processors_use first, second;

    (void)state;
    processors_look(processors, &first);
    spin(1000000);
    processors_look(processors, &second);
    assert_true(second.run_delay_ns >= first.run_delay_ns);
    assert_true(second.throttled_ns >= first.throttled_ns);
    processors_close(processors);
}

static void
many_processes_are_looked_at_seldom(void **state)
{
    (void)state;
    assert_int_equal(processors_pause_ns(0), 1000000000);
    assert_int_equal(processors_pause_ns(500000), 1000000000);
    assert_int_equal(processors_pause_ns(12000000), INT64_C(12000000000));
}

TEST_FILE(test_processors)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shared_processor_is_seen_and_who_shares_it),
        cmocka_unit_test(counters_never_fall),
        cmocka_unit_test(many_processes_are_looked_at_seldom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
