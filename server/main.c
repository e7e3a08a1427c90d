/* main.c - argv to command, nothing else. */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int
main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";

    /* A reader that goes away is seen where we write. */
    signal(SIGPIPE, SIG_IGN);
    if (!process_limits_suffice())
        return EXIT_SYSTEM;
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
