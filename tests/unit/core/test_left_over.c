/* test_left_over.c - a program of tests that is killed leaves nothing in /tmp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../left_over.h"
#include "core/clock.h"
#include "unit/test_file.h"

#define PATIENCE_NS INT64_C(300000000000)

struct made {
    char folder[32], inner[48], file[32];
};

static void
make_all(struct made *made)
{
    strcpy(made->folder, "/tmp/tundish-test-XXXXXX");
    assert_non_null(mkdtemp(made->folder));
    snprintf(made->inner, sizeof made->inner, "%s/XXXXXX", made->folder);
    assert_non_null(mkdtemp(made->inner));
    strcpy(made->file, "/tmp/tundish-test-XXXXXX");
    assert_true(mkstemp(made->file) >= 0);
}

static void
what_a_killed_program_made_is_removed(void **state)
{
    int64_t until_ns = tnd_clock_deadline_ns(PATIENCE_NS);
    struct made made;
    int ends[2];
    pid_t child;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        left_over_remove_at_end();
        make_all(&made);
        if (write(ends[1], &made, sizeof made) != sizeof made)
            _exit(1);
        raise(SIGKILL);
    }
    assert_int_equal(read(ends[0], &made, sizeof made), sizeof made);
    assert_int_equal(waitpid(child, NULL, 0), child);
    while ((access(made.folder, F_OK) == 0 || access(made.file, F_OK) == 0) &&
           tnd_clock_left_ns(until_ns) > 0)
        usleep(1000);
    assert_int_not_equal(access(made.folder, F_OK), 0);
    assert_int_not_equal(access(made.file, F_OK), 0);
    close(ends[0]);
    close(ends[1]);
}

TEST_FILE(test_left_over)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_killed_program_made_is_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
