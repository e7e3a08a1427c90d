/* commands.c - the list of commands, and their messages about usage and failure. */
#include "commands/commands.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const struct command *const commands[] = {
    &command_serve,     &command_plan,  &command_peek,   &command_explain, &command_analyze,
    &command_transform, &command_index, &command_vocab,  &command_top,     &command_status,
    &command_trace,     &command_stop,  &command_doctor, &command_port,    &command_helper,
    &command_help,      NULL,
};

int
command_misused(const struct command *command, const char *format, ...)
{
    va_list arguments;

    if (format != NULL) {
        fprintf(stderr, "tundish %s: ", command->name);
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fputc('\n', stderr);
    }
    fprintf(stderr, "usage: tundish %s [OPTION ...] %s; see 'tundish %s --help'\n", command->name,
            command->arguments, command->name);
    return EXIT_USAGE;
}

int
command_failed(const struct command *command, tundish_status status,
               const struct spec_errors *errors)
{
    /* Errors of the file name their positions; an error of the thread has none. */
    if (errors->count > 0) {
        char *text = spec_errors_text(errors);

        fputs(text, stderr);
        free(text);
    } else {
        fprintf(stderr, "tundish %s: %s\n", command->name, tnd_error_text());
    }
    return status == TUNDISH_E_SYSTEM ? EXIT_SYSTEM : EXIT_REFUSED;
}

void
command_print_help(const struct command *command)
{
    printf("usage: tundish %s [OPTION ...] %s\n\n%s\n\n%s", command->name, command->arguments,
           command->help, command->details);
}
