/* command_line.h - a command run in this process, or in a child of it: its exit status, and what it
 * prints. */
#ifndef TEST_COMMAND_LINE_H
#define TEST_COMMAND_LINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "commands/commands.h"

/* A folder of its own to stand in, which lasts as long as a group of tests. */
int open_home(void **state);
int close_home(void **state);
void put_text(const char *name, const char *text);

/* Run words separated by blanks, `input` on standard input; *ret_status is the exit status. Returns
 * what was written to standard output and standard error, until the next call. */
const char *run_command(const char *line, const char *input, int *ret_status);

/* The same with a file on standard input. What is written is left in the file `output`. */
const char *run_command_on(const char *line, const char *file, int *ret_status);

void assert_says(const char *line, const char *input, int status, const char *words);
void assert_prints(const char *line, const char *input, const char *expected);

/* The same for each line, with nothing on standard input. */
struct saying {
    const char *line;
    int status;
    const char *words;
};
void assert_all_say(const struct saying *sayings, size_t count);

/* Run words in a child, whose standard descriptors are all the file `output`, or a terminal. */
pid_t start_command(const char *line, const char *output);

/* Its exit status, when it has ended; 128 and more: the signal that ended it. */
int wait_for_command(pid_t child);
bool command_runs(pid_t child); /* false, once: it has ended, and is not waited for */

/* A test's teardown: kills the children for which it has not waited, since it failed before. */
int end_commands(void **state);

#endif
