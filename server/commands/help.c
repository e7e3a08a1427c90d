/* help.c - `tundish help`: the commands, and every stage there is. */
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

#include "spec/help.h"

static void
print_overview(void)
{
    puts("usage: tundish COMMAND [OPTION ...]\n\n"
         "Feeds training jobs: reads files, preprocesses rows, leaves finished batches in shared "
         "memory.\n");
    for (size_t i = 0; commands[i] != NULL; i++)
        printf("  %-8s %s\n", commands[i]->name, commands[i]->help);
    puts("\n'tundish COMMAND --help' lists a command's options, 'tundish help STAGE' a stage's\n"
         "parameters, 'tundish help stages' every stage.");
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
        for (uint32_t i = 0; i < stage_count; i++)
            puts(stage_table[i].name);
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
    stage = stage_find(argv[1]);
    if (stage == NULL)
        return command_misused(&command_help, "there is no command or stage '%s'", argv[1]);
    stage_print_help(stage, stdout);
    return EXIT_OK;
}

const struct command command_help = {
    .name = "help",
    .arguments = "[COMMAND | STAGE | stages]",
    .help = "Explain a command, or a stage of the pipeline file.",
    .details = "  --list              the names of all stages, one a line\n"
               "  --man               the manual page tundish-pipeline(5), as roff\n",
    .run = command_help_run,
};
