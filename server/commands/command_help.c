/* command_help.c - `tundish help`: the commands, and every stage there is. */
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/stage_help.h"

static void
print_overview(void)
{
    puts("usage: tundish COMMAND [OPTION ...]\n"
         "\n"
         "Feeds training jobs: reads files, preprocesses rows and writes batches to shared "
         "memory.\n");
    for (size_t i = 0; commands[i] != NULL; i++)
        printf("  %-8s %s\n", commands[i]->name, commands[i]->help);
    puts("\n'tundish COMMAND --help' lists a command's options, 'tundish help STAGE' a stage's\n"
         "parameters, 'tundish help stages' every stage.");
}

/* Escape text for roff: a dot or an apostrophe at the beginning of a line is a request, a backslash
 * is an escape, and a plain - is a hyphen. */
static void
print_roff(const char *text)
{
    for (bool line_start = true; *text != '\0'; line_start = *text++ == '\n') {
        if (line_start && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '\\' || *text == '-')
            putchar('\\');
        putchar(*text);
    }
}

/* Print tundish(1) from the same texts as --help, so that they cannot disagree. */
static void
print_man_commands(void)
{
    puts(
        ".TH TUNDISH 1 \"\" \"tundish " TUNDISH_VERSION_TEXT "\" \"Tundish\"\n"
        ".SH NAME\n"
        "tundish \\- feed training jobs from files through shared memory\n"
        ".SH SYNOPSIS\n"
        ".B tundish\n"
        ".I COMMAND\n"
        "[\\fIOPTION\\fR ...]\n"
        ".SH DESCRIPTION\n"
        "One server per node reads the files of a pipeline, see tundish\\-pipeline(5), and writes\n"
        "finished batches to shared memory, which trainers map.\n"
        ".SH COMMANDS");
    for (size_t i = 0; commands[i] != NULL; i++) {
        printf(".SS ");
        print_roff(commands[i]->name);
        putchar(' ');
        print_roff(commands[i]->arguments);
        putchar('\n');
        print_roff(commands[i]->help);
        puts("\n.PP\n.nf");
        print_roff(commands[i]->details);
        puts(".fi");
    }
    puts(".SH EXIT STATUS\n"
         "0 success; 1 the pipeline file or the data is bad, or (tundish stop) the server has not\n"
         "stopped yet; 2 wrong usage; 3 a system error: a missing file, no memory, no server, a\n"
         "port or socket in use; 4 a stream is stuck or has failed (tundish status), or something\n"
         "is to be changed (tundish doctor).\n"
         ".SH ENVIRONMENT\n"
         ".TP\n"
         "TUNDISH_SERVER\n"
         "the server's socket\n"
         ".TP\n"
         "TUNDISH_SERVER_UID\n"
         "the user id of another user, besides this one and root, whose server is trusted\n"
         ".TP\n"
         "TUNDISH_CACHE\n"
         "the folder of indexes and vocabulary tables\n"
         ".TP\n"
         "TUNDISH_PYTHON\n"
         "the Python that tundish port runs, which has TensorFlow and the package\n"
         ".SH SEE ALSO\n"
         "tundish\\-pipeline(5), tundish\\-launch(1), tundish\\-admin(1)");
}

static int
command_help_run(int argc, char **argv)
{
    const struct stage_info *stage;

    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        print_overview();
        return EXIT_OK;
    }
    if (strcmp(argv[1], "stages") == 0) {
        stage_print_list(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--list") == 0) {
        stage_print_names(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--commands") == 0) {
        for (size_t i = 0; commands[i] != NULL; i++)
            /* --list and --commands are for shell completion. */
            puts(commands[i]->name);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--man-commands") == 0) {
        print_man_commands();
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--man") == 0) {
        stage_print_man(stdout);
        return EXIT_OK;
    }
    for (size_t i = 0; commands[i] != NULL; i++)
        if (strcmp(commands[i]->name, argv[1]) == 0) {
            command_print_help(commands[i]);
            return EXIT_OK;
        }
    if (stage_help_for(argv[1], &stage) != TUNDISH_OK)
        return command_misused(&command_help, "%s", tnd_error_text());
    stage_print_help(stage, stdout);
    return EXIT_OK;
}

const struct command command_help = {
    .name = "help",
    .arguments = "[COMMAND | STAGE | stages]",
    .help = "Explain a command, or a stage of the pipeline file.",
    .details = "  --list              the names of all stages, one per line\n"
               "  --commands          the names of all commands, one per line\n"
               "  --man               the manual page tundish-pipeline(5), as roff\n"
               "  --man-commands      the manual page tundish(1), as roff\n",
    .run = command_help_run,
};
