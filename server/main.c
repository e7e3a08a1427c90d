/* main.c - argv to command, nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/commands.h"
#include "core/log.h"
#include "spec/errors.h"

static int
print_version(void)
{
    puts("tundish " TUNDISH_VERSION_TEXT);
    return EXIT_OK;
}

static bool
asks_for_help(int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0)
            return true;
    return false;
}

static int
say_unknown(const char *name)
{
    const char *names[64];
    const char *nearest;
    size_t count = 0;

    for (; commands[count] != NULL && count < sizeof names / sizeof *names; count++)
        names[count] = commands[count]->name;
    nearest = spec_nearest(name, names, count);
    fprintf(stderr, "tundish: unknown command '%s'", name);
    if (nearest != NULL)
        fprintf(stderr, "; did you mean %s?\n", nearest);
    else
        fputs("; see 'tundish help'\n", stderr);
    return EXIT_USAGE;
}

/* A variable, which an older server does not know of and need not. Our children do not have it. */
static void
tell_starter(void)
{
    const char *text = getenv("TUNDISH_TELL_FD");
    int descriptor = text != NULL ? atoi(text) : 0;

    if (descriptor > STDERR_FILENO && fcntl(descriptor, F_GETFD) >= 0)
        tnd_log_tell(descriptor);
    unsetenv("TUNDISH_TELL_FD");
}

static int
run(const struct command *command, int argc, char **argv)
{
    int result;

    tell_starter();
    result = command->run(argc, argv);
    tnd_log_flush();
    return result;
}

/* Our starter may have closed some of them, and a file or a socket that we open must not get what
 * we print. */
static void
open_standard_streams(void)
{
    int descriptor;

    do
        descriptor = open("/dev/null", O_RDWR);
    while (descriptor >= 0 && descriptor <= STDERR_FILENO);
    if (descriptor >= 0)
        close(descriptor);
}

/* Output that is cut short must not look like all of it. The reader of a pipe may have enough, as
 * `head` has. */
static int
end_output(int result)
{
    struct stat output;

    errno = 0;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || result != EXIT_OK ||
        (fstat(STDOUT_FILENO, &output) == 0 &&
         (S_ISFIFO(output.st_mode) || S_ISSOCK(output.st_mode))))
        return result;
    fprintf(stderr, "tundish: the output is cut short: %s\n",
            errno != 0 ? strerror(errno) : "it could not be written");
    return EXIT_SYSTEM;
}

static int
act(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";

    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        return print_version();
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    for (size_t i = 0; commands[i] != NULL; i++)
        if (strcmp(commands[i]->name, name) == 0) {
            if (asks_for_help(argc, argv)) {
                command_print_help(commands[i]);
                return EXIT_OK;
            }
            return run(commands[i], argc > 1 ? argc - 1 : argc, argc > 1 ? argv + 1 : argv);
        }
    return say_unknown(name);
}

int
main(int argc, char **argv)
{
    open_standard_streams();
    /* A reader that goes away is seen where we write. */
    signal(SIGPIPE, SIG_IGN);
    return process_limits_suffice() ? end_output(act(argc, argv)) : EXIT_SYSTEM;
}
