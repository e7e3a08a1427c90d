/* command_help.c - `tundish help`: the commands, and every stage there is. */
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

#include "spec/expression_help.h"
#include "spec/help_text.h"
#include "spec/stage_help.h"

static void
print_overview(FILE *out)
{
    fputs("usage: tundish COMMAND [OPTION ...]\n"
          "\n"
          "Feeds training jobs: reads files, preprocesses rows and writes batches to shared "
          "memory.\n\n",
          out);
    for (size_t i = 0; commands[i] != NULL; i++)
        fprintf(out, "  %-9s %s\n", commands[i]->name, commands[i]->help);
    fputs("\n'tundish COMMAND --help' lists a command's options, 'tundish help STAGE' a stage's\n"
          "parameters, 'tundish help stages' every stage, and 'tundish help expressions' the\n"
          "language of map and filter.\n",
          out);
}

/* Print tundish(1) from the same texts as --help, so that they cannot disagree. */
static void
print_man_commands(FILE *out)
{
    fputs(
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
        ".SH COMMANDS\n",
        out);
    for (size_t i = 0; commands[i] != NULL; i++) {
        fputs(".SS ", out);
        help_print_roff(commands[i]->name, out);
        fputc(' ', out);
        help_print_roff(commands[i]->arguments, out);
        fputc('\n', out);
        help_print_roff(commands[i]->help, out);
        fputs("\n.PP\n.nf\n", out);
        help_print_roff(commands[i]->details, out);
        fputs(".fi\n", out);
    }
    fputs(
        ".SH EXIT STATUS\n"
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
        "tundish\\-pipeline(5), tundish\\-launch(1), tundish\\-admin(1)\n",
        out);
}

/* For the manual in a browser, and for editors. */
static void
print_json(FILE *out)
{
    struct json json;

    json_start(&json, out);
    json_object(&json);
    json_key_text(&json, "version", TUNDISH_VERSION_TEXT);
    json_key(&json, "commands");
    json_array(&json);
    for (size_t i = 0; commands[i] != NULL; i++) {
        json_object(&json);
        json_key_text(&json, "name", commands[i]->name);
        json_key_text(&json, "arguments", commands[i]->arguments);
        json_key_text(&json, "help", commands[i]->help);
        json_key_text(&json, "details", commands[i]->details);
        json_object_end(&json);
    }
    json_array_end(&json);
    help_json(&json);
    json_object_end(&json);
    fputc('\n', out);
}

/* For completion. */
static void
print_commands(FILE *out)
{
    for (size_t i = 0; commands[i] != NULL; i++)
        fprintf(out, "%s\n", commands[i]->name);
}

static void
print_names(FILE *out)
{
    fputs("stages\nexpressions\npipeline\nstreams\ncolumns\nfeatures\n", out);
    stage_print_names(out);
}

/* A word after `tundish help` that is neither a command, a stage nor a function. */
static const struct topic {
    const char *word;
    void (*print)(FILE *out);
} topics[] = {
    { "--help", print_overview },
    { "stages", stage_print_list },
    { "expressions", expression_print_help },
    { "pipeline", help_print_pipeline },
    { "streams", help_print_streams },
    { "columns", help_print_columns },
    { "features", help_print_features },
    { "--list", print_names },
    { "--commands", print_commands },
    { "--json", print_json },
    { "--man", stage_print_man },
    { "--man-commands", print_man_commands },
    { NULL, NULL },
};

static int
command_help_run(int argc, char **argv)
{
    const char *word = argc < 2 ? "--help" : argv[1];
    const struct stage_info *stage;
    bool is_stage;

    for (size_t i = 0; topics[i].word != NULL; i++)
        if (strcmp(topics[i].word, word) == 0) {
            topics[i].print(stdout);
            return EXIT_OK;
        }
    for (size_t i = 0; commands[i] != NULL; i++)
        if (strcmp(commands[i]->name, word) == 0) {
            command_print_help(commands[i]);
            return EXIT_OK;
        }
    is_stage = stage_help_for(word, &stage) == TUNDISH_OK;
    if (is_stage)
        stage_print_help(stage, stdout);
    /* A name may be both: cast. */
    if (expression_print_function(word, stdout) || is_stage)
        return EXIT_OK;
    return command_misused(&command_help, "%s", tnd_error_text());
}

const struct command command_help = {
    .name = "help",
    .arguments = "[COMMAND | STAGE | FUNCTION | TOPIC]",
    .help = "Explain a command, a stage of the pipeline file, or the expressions of map.",
    .details = "  stages              all stages\n"
               "  pipeline            the pipeline file\n"
               "  streams             the mappings of a stream\n"
               "  columns             names, lists and dtypes of columns\n"
               "  features            the entries of parse_example and decode_json\n"
               "  expressions         the language of map and filter: operators, functions\n"
               "  --list              all words that help explains, one per line\n"
               "  --commands          the names of all commands, one per line\n"
               "  --json              all tables, for programs\n"
               "  --man               the manual page tundish-pipeline(5), as roff\n"
               "  --man-commands      the manual page tundish(1), as roff\n",
    .run = command_help_run,
};
