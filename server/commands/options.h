/* options.h - a command's options as a table: what each is called, takes and sets. */
#ifndef COMMANDS_OPTIONS_H
#define COMMANDS_OPTIONS_H

#include "commands/commands.h"

/* A row sets text, number or count, of which it has at most one, to what follows the option. A row
 * with flag alone takes nothing; beside another, flag tells that the option was given. */
struct option_row {
    const char *name; /* without the dashes; NULL ends the table */
    const char **text;
    uint64_t *number; /* a whole number from minimum to maximum */
    uint32_t *count;  /* one that fits there */
    uint64_t minimum, maximum;
    bool *flag;
};

/* The options about a pipeline file have the same names in all commands. */
#define PIPELINE_FOLDERS(options_)                                                                 \
    { "root", .text = &(options_).root }, { "cache", .text = &(options_).cache },                  \
    {                                                                                              \
        "analysis", .text = &(options_).analysis                                                   \
    }
#define PIPELINE_OPTIONS(options_)                                                                 \
    { "stream", .text = &(options_).stream }, PIPELINE_FOLDERS(options_),                          \
        { "analyze", .flag = &(options_).analyzes },                                               \
    {                                                                                              \
        "seed", .number = &(options_).seed, .maximum = UINT64_MAX, .flag = &(options_).has_seed    \
    }
#define PIPELINE_OPTIONS_HELP                                                                      \
    "  --root DIR          folder for relative paths (default: the file's folder)\n"               \
    "  --cache DIR         folder for indexes and vocabulary tables\n"                             \
    "  --analysis DIR      folder of learned statistics (default: analysis/FILE beside it)\n"      \
    "  --analyze           first learn statistics that are missing or out of date\n"

/* Read the options. Returns EXIT_OK, and getopt's optind is where the arguments begin; or
 * EXIT_USAGE, and the error was printed. */
int options_read(const struct command *command, int argc, char **argv,
                 const struct option_row *rows);

/* The same for a command with one argument, a pipeline file. */
int options_read_file(const struct command *command, int argc, char **argv,
                      const struct option_row *rows, const char **ret_path);

/* The same for a command without arguments. */
int options_read_alone(const struct command *command, int argc, char **argv,
                       const struct option_row *rows);

#endif
