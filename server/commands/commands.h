/* commands.h - what `tundish` can do, one short file each. */
#ifndef COMMANDS_COMMANDS_H
#define COMMANDS_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"

/* Exit statuses, as sysexits(3) would have them, but few. */
enum exit_status {
    EXIT_OK = 0,
    EXIT_REFUSED = 1, /* the pipeline file, or the data, is bad */
    EXIT_USAGE = 2,
    EXIT_SYSTEM = 3, /* the machine refused: no such file, no memory, socket in use, no server */
    EXIT_SICK = 4    /* status: a stream has failed or is stuck */
};

struct command {
    const char *name;
    const char *arguments;             /* as in a usage line */
    const char *help;                  /* one sentence */
    const char *details;               /* its options, a line each; ends with a newline */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
};

extern const struct command command_serve, command_plan, command_peek, command_explain,
    command_analyze, command_transform, command_index, command_vocab, command_top, command_status,
    command_trace, command_stop, command_doctor, command_port, command_helper, command_help;

extern const struct command *const commands[]; /* ends with NULL */

/* Print "tundish COMMAND: sentence" and how to get help; returns EXIT_USAGE. */
int command_misused(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Print the errors of the pipeline file, if there are any, else this thread's last error.
 * Returns the exit status for it. */
int command_failed(const struct command *command, tundish_status status,
                   const struct spec_errors *errors);

/* Print usage and options of a command. */
void command_print_help(const struct command *command);

struct pipeline_options {
    const char *path;
    const char *root;     /* NULL: the file's folder */
    const char *stream;   /* NULL: the only one */
    const char *cache;    /* NULL: the default folder */
    const char *analysis; /* NULL: the default folder */
    bool analyzes;        /* learn missing statistics, and those of other data */
    bool has_seed;
    uint64_t seed; /* the root seed, for what has none */
    uint32_t worker_count;
    uint32_t replicas; /* 0: as the file says */
};

struct pipeline {
    struct spec_errors errors;
    struct spec_file *file;
    const struct spec_stream *stream;
    struct learned *learned;
    struct plan **plans; /* one a worker */
    uint32_t worker_count;
};

/* Read the file and plan the stream for every worker. On failure the errors are in
 * ret_pipeline->errors, which is to be closed in either case. */
tundish_status pipeline_open(const struct pipeline_options *options, struct pipeline *ret_pipeline);
void pipeline_close(struct pipeline *pipeline);

/* The learned statistics for the streams of the file, learned now if options->analyzes and needed.
 * NULL where nothing is learned. The stages that need statistics report those that are out of date.
 */
tundish_status pipeline_open_learned(const struct pipeline_options *options,
                                     const struct spec_file *file, struct spec_errors *errors,
                                     struct learned **ret_learned);
void pipeline_close_learned(struct learned *learned); /* accepts NULL */

/* As many threads as this machine runs at once. */
uint32_t pipeline_threads(void);

/* A root seed, at random. */
uint64_t pipeline_draw_seed(void);

/* process_limits.c: Limits of this process (ulimit) under which it could only be killed. Is there
 * stack enough? If not, standard error has a sentence. Also lets a write above the limit for files
 * fail with an error, where the kernel would end the process without a word. */
bool process_limits_suffice(void);

#endif
