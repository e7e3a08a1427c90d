/* options.c - read a command line by its table of options. */
#include "commands/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No command has more options. */
enum { ROWS_MAX = 24 };

static bool
parse_number(const char *text, uint64_t minimum, uint64_t maximum, uint64_t *ret_number)
{
    char *end;
    unsigned long long value;

    /* strtoull would take a sign and leading blanks. */
    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < minimum || value > maximum)
        return false;
    *ret_number = value;
    return true;
}

static bool
takes_text(const struct option_row *row)
{
    return row->text != NULL || row->number != NULL || row->count != NULL;
}

static int
read_row(const struct command *command, const struct option_row *row, const char *text)
{
    uint64_t number = 0;

    if ((row->number != NULL || row->count != NULL) &&
        !parse_number(text, row->minimum, row->maximum, &number))
        return command_misused(command, "--%s: '%s' is not a whole number from %llu to %llu",
                               row->name, text, (unsigned long long)row->minimum,
                               (unsigned long long)row->maximum);
    if (row->text != NULL)
        *row->text = text;
    if (row->number != NULL)
        *row->number = number;
    if (row->count != NULL)
        *row->count = (uint32_t)number;
    /* A row may have a number and a flag: the flag says that the number was given. */
    if (row->flag != NULL)
        *row->flag = true;
    return EXIT_OK;
}

/* getopt has said of the last argument that it is not an option. */
static void
say_nearest(const struct option *options, const char *argument)
{
    char word[64];
    const char *names[ROWS_MAX], *nearest;
    size_t count = 0;

    if (strncmp(argument, "--", 2) != 0)
        return;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
    for (; options[count].name != NULL; count++)
        names[count] = options[count].name;
    nearest = spec_nearest(word, names, count);
    if (nearest != NULL)
        fprintf(stderr, "did you mean --%s?\n", nearest);
}

int
options_read(const struct command *command, int argc, char **argv, const struct option_row *rows)
{
    enum { FIRST_ROW = 256 }; /* the value that getopt returns for rows[0] */
    struct option options[ROWS_MAX + 1] = { 0 };
    static char program[32];
    int result = EXIT_OK;

    /* The name in getopt's messages. */
    snprintf(program, sizeof program, "tundish %s", command->name);
    argv[0] = program;
    /* getopt_long also takes unique prefixes of the names, as users expect of GNU options. */
    for (int i = 0; i < ROWS_MAX && rows[i].name != NULL; i++)
        options[i] =
            (struct option){ rows[i].name, takes_text(&rows[i]) ? required_argument : no_argument,
                             NULL, FIRST_ROW + i };
    while (result == EXIT_OK) {
        int option = getopt_long(argc, argv, "", options, NULL);

        if (option == -1)
            break;
        /* getopt has printed the error; optopt is 0 for a name that it does not know. */
        if (option == '?' && optopt == 0)
            say_nearest(options, argv[optind - 1]);
        result = option < FIRST_ROW ? command_misused(command, NULL)
                                    : read_row(command, &rows[option - FIRST_ROW], optarg);
    }
    return result;
}

int
options_read_file(const struct command *command, int argc, char **argv,
                  const struct option_row *rows, const char **ret_path)
{
    int result = options_read(command, argc, argv, rows);

    if (result != EXIT_OK)
        return result;
    if (optind + 1 != argc)
        return command_misused(command, "expected one pipeline file");
    *ret_path = argv[optind];
    return EXIT_OK;
}

int
options_read_alone(const struct command *command, int argc, char **argv,
                   const struct option_row *rows)
{
    int result = options_read(command, argc, argv, rows);

    return result == EXIT_OK && optind != argc ? command_misused(command, "no arguments are taken")
                                               : result;
}
