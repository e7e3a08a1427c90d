/* test_log.c - a standard error that nobody reads, and a starter that is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "unit/test_file.h"

enum { LINES = 5000, ROOM = 1 << 20 };

/* A pipe as standard error, and full. Returns its other end. */
static int
fill_standard_error(int *ret_before)
{
    char bytes[4096];
    int pipes[2];

    assert_int_equal(pipe(pipes), 0);
    memset(bytes, '.', sizeof bytes);
    fcntl(pipes[1], F_SETFL, O_NONBLOCK);
    while (write(pipes[1], bytes, sizeof bytes) > 0)
        ;
    fcntl(pipes[1], F_SETFL, 0);
    *ret_before = dup(STDERR_FILENO);
    assert_int_equal(dup2(pipes[1], STDERR_FILENO), STDERR_FILENO);
    close(pipes[1]);
    return pipes[0];
}

/* Read on until the text is there. */
static void
read_up_to(int from, char *text, size_t *used, const char *end)
{
    while (strstr(text, end) == NULL) {
        ssize_t got = read(from, text + *used, ROOM - 1 - *used);

        assert_true(got > 0);
        *used += (size_t)got;
        text[*used] = '\0';
    }
}

static void
keeps_nobody_and_is_told_what_it_missed(void **state)
{
    char *text = calloc(ROOM, 1);
    const char *notice, *at = text;
    unsigned long missing = 0, seen = 0;
    size_t used = 0;
    int before, from = fill_standard_error(&before);

    (void)state;
    tnd_log_start();
    for (int i = 0; i < LINES; i++)
        tnd_log(TND_LOG_NOTICE, "test", "line %d.", i);
    tnd_log_flush();
    read_up_to(from, text, &used, "was not read\n");
    tnd_log(TND_LOG_NOTICE, "test", "the last line");
    read_up_to(from, text, &used, "the last line\n");
    assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
    close(before);
    close(from);

    notice = strstr(text, "warning log: ");
    assert_non_null(notice);
    assert_int_equal(sscanf(notice, "warning log: %lu lines are missing here", &missing), 1);
    for (char line[32]; seen < LINES; seen++) { /* those before it, in order */
        snprintf(line, sizeof line, "line %lu.\n", seen);
        at = strstr(at, line);
        if (at == NULL)
            break;
        assert_true(at < notice);
    }
    assert_true(seen > 0);
    assert_int_equal(seen + missing, LINES);
    assert_true(strstr(text, "the last line") > notice);
    free(text);
}

static void
tells_its_starter_what_matters(void **state)
{
    char *text = calloc(ROOM, 1);
    size_t used = 0;
    int pipes[2];

    (void)state;
    assert_int_equal(pipe(pipes), 0);
    tnd_log(TND_LOG_WARNING, "test", "nobody is told yet");
    tnd_log_tell(pipes[1]);
    tnd_log(TND_LOG_NOTICE, "test", "a notice");
    tnd_log(TND_LOG_WARNING, "test", "a %s", "warning");
    tnd_log_output("source", "a\033b\nc", 3);
    tnd_log(TND_LOG_ERROR, "test", "an error");
    tnd_log(TND_LOG_WARNING, TND_LOG_TRAINER, "a trainer has died");
    tnd_log(TND_LOG_WARNING, "test", "the end");
    read_up_to(pipes[0], text, &used, "the end\n");
    assert_string_equal(text, "tundish: warning: a warning\n"
                              "a\\x1bb\n"
                              "tundish: warning: the end\n");
    close(pipes[0]);
    free(text);
}

TEST_FILE(test_log)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_nobody_and_is_told_what_it_missed),
        cmocka_unit_test(tells_its_starter_what_matters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
