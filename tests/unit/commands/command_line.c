/* command_line.c - the command's own function, with its descriptors put into files. */
#include "command_line.h"

#include <fcntl.h>
#include <getopt.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../remove_tree.h"
#include "core/memory.h"

enum { WORDS = 24, OUTPUT_BYTES = 1 << 16, CHILDREN = 8 };

static char home[64], before[1024];
static pid_t children[CHILDREN]; /* 0: none */

void
put_text(const char *name, const char *text)
{
    FILE *file = fopen(name, "wb");

    assert_non_null(file);
    assert_int_equal(fputs(text, file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
}

int
open_home(void **state)
{
    (void)state;
    strcpy(home, "/tmp/tundish-commands-XXXXXX");
    return getcwd(before, sizeof before) == NULL || mkdtemp(home) == NULL || chdir(home) != 0;
}

int
close_home(void **state)
{
    (void)state;
    return chdir(before) != 0 || remove_tree(home) != 0;
}

static int
redirect(int descriptor, int to)
{
    int kept = dup(descriptor);

    assert_true(kept >= 0);
    assert_int_equal(dup2(to, descriptor), descriptor);
    return kept;
}

static void
restore(int descriptor, int kept)
{
    assert_int_equal(dup2(kept, descriptor), descriptor);
    close(kept);
}

static const struct command *
find(const char *name)
{
    size_t i = 0;

    while (commands[i] != NULL && strcmp(commands[i]->name, name) != 0)
        i++;
    assert_non_null(commands[i]);
    return commands[i];
}

/* Run the words of a line. */
static int
run_words(const char *line)
{
    char *copy = tnd_strdup(line);
    char *argv[WORDS + 1] = { NULL };
    int argc = 0, result;

    for (char *word = strtok(copy, " "); word != NULL && argc < WORDS; word = strtok(NULL, " "))
        argv[argc++] = word;
    optind = 0; /* glibc: begin anew */
    result = find(argv[0])->run(argc, argv);
    fflush(stdout);
    fflush(stderr);
    free(copy);
    return result;
}

const char *
run_command(const char *line, const char *input, int *ret_status)
{
    put_text("input", input);
    return run_command_on(line, "input", ret_status);
}

const char *
run_command_on(const char *line, const char *file, int *ret_status)
{
    static char output[OUTPUT_BYTES];
    int kept_in, kept_out, kept_error, out;
    ssize_t bytes;

    out = open("output", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(out >= 0);
    fflush(stdout);
    kept_in = dup(STDIN_FILENO);
    assert_ptr_equal(freopen(file, "re", stdin), stdin); /* and what it read of another is gone */
    assert_int_equal(fileno(stdin), STDIN_FILENO);
    kept_out = redirect(STDOUT_FILENO, out);
    kept_error = redirect(STDERR_FILENO, out);
    *ret_status = run_words(line);
    restore(STDIN_FILENO, kept_in);
    restore(STDOUT_FILENO, kept_out);
    restore(STDERR_FILENO, kept_error);
    bytes = pread(out, output, sizeof output - 1, 0);
    assert_true(bytes >= 0);
    output[bytes] = '\0';
    close(out);
    return output;
}

void
assert_says(const char *line, const char *input, int status, const char *words)
{
    int result;
    const char *output = run_command(line, input, &result);

    if (result != status || strstr(output, words) == NULL)
        fail_msg("%s: status %d instead of %d, or '%s' is not in: %s", line, result, status, words,
                 output);
}

void
assert_prints(const char *line, const char *input, const char *expected)
{
    int result;
    const char *output = run_command(line, input, &result);

    assert_string_equal(output, expected);
    assert_int_equal(result, EXIT_OK);
}

void
assert_all_say(const struct saying *sayings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_says(sayings[i].line, "", sayings[i].status, sayings[i].words);
}

/* Replace one of the children; false: it is none of them. */
static bool
replace_child(pid_t old, pid_t now)
{
    for (int i = 0; i < CHILDREN; i++)
        if (children[i] == old) {
            children[i] = now;
            return true;
        }
    return false;
}

pid_t
start_command(const char *line, const char *output)
{
    pid_t child;

    fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int out;

        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves no server */
        out = open(output, O_RDWR | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, 0600);

        if (dup2(out, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
            dup2(out, STDERR_FILENO) < 0)
            _exit(99);
        close(out);
        exit(run_words(line)); /* not _exit: sanitizers and line counts have their last word */
    }
    assert_true(replace_child(0, child));
    return child;
}

int
wait_for_command(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    replace_child(child, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool
command_runs(pid_t child)
{
    if (waitpid(child, NULL, WNOHANG) == 0)
        return true;
    replace_child(child, 0);
    return false;
}

int
end_commands(void **state)
{
    (void)state;
    for (int i = 0; i < CHILDREN; i++)
        if (children[i] != 0) {
            kill(children[i], SIGKILL);
            waitpid(children[i], NULL, 0);
            children[i] = 0;
        }
    return 0;
}
