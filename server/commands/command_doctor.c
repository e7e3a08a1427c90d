/* command_doctor.c - `tundish doctor`: what would go wrong on this machine, and what to change. */
#include "commands/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "doctor/doctor.h"

static void
say_errors(struct doctor *doctor, const struct spec_errors *errors)
{
    char *text = spec_errors_text(errors);

    for (char *rest = text, *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n"))
        if (line[0] != '\0')
            doctor_say(doctor, DOCTOR_FAULT, "pipeline", NULL, "%s", line);
    free(text);
}

static void
check_stream(struct doctor *doctor, const struct pipeline_options *options)
{
    struct pipeline pipeline;

    if (pipeline_open(options, &pipeline) == TUNDISH_OK)
        doctor_check_plan(doctor, pipeline.plans[0]);
    else
        say_errors(doctor, &pipeline.errors);
    pipeline_close(&pipeline);
}

/* The streams that were asked for, each by itself: one that is wrong says nothing of the others. */
static void
check_file(struct doctor *doctor, const struct pipeline_options *options)
{
    struct pipeline_options one = *options;
    struct spec_errors errors = { 0 };
    struct spec_file *file = NULL;

    if (spec_open(options->path, options->root, &errors, &file) != TUNDISH_OK) {
        if (errors.count == 0)
            doctor_say(doctor, DOCTOR_FAULT, "pipeline", NULL, "%s", tnd_error_text());
        say_errors(doctor, &errors);
    } else if (options->stream != NULL) {
        check_stream(doctor, options);
    } else {
        for (uint32_t i = 0; i < file->stream_count; i++) {
            one.stream = file->streams[i].name;
            check_stream(doctor, &one);
        }
    }
    spec_close(file);
    spec_errors_close(&errors);
}

static void
check_machine(struct doctor *doctor)
{
    doctor_check_memory(doctor);
    doctor_check_shared_memory(doctor);
    doctor_check_huge_pages(doctor);
    doctor_check_processors(doctor);
    doctor_check_memory_nodes(doctor);
    doctor_check_limits(doctor);
    doctor_check_clock(doctor);
    doctor_check_calls(doctor);
    doctor_check_socket(doctor);
    doctor_check_cache(doctor);
    doctor_check_mpi(doctor);
    doctor_check_gpu(doctor);
}

static int
command_doctor_run(int argc, char **argv)
{
    struct pipeline_options wanted = { .worker_count = 1 };
    struct doctor doctor = { 0 };
    bool json = false;
    const struct option_row rows[] = {
        { "stream", .text = &wanted.stream },
        PIPELINE_FOLDERS(wanted),
        { "replicas", .count = &wanted.replicas, .minimum = 1, .maximum = 4096 },
        { "socket", .text = &doctor.socket },
        { "json", .flag = &json },
        { 0 },
    };
    int result = options_read(&command_doctor, argc, argv, rows);

    if (result != EXIT_OK)
        return result;
    if (argc - optind > 1)
        return command_misused(&command_doctor, "one pipeline file at most");
    wanted.path = argv[optind]; /* NULL: none was named */
    doctor.cache = wanted.cache;
    if (wanted.path != NULL)
        check_file(&doctor, &wanted);
    check_machine(&doctor);
    if (json)
        doctor_print_json(&doctor, stdout);
    else
        doctor_print_text(&doctor, stdout);
    result = doctor_worst(&doctor) >= DOCTOR_WARNING ? EXIT_SICK : EXIT_OK;
    doctor_close(&doctor);
    return result;
}

const struct command command_doctor = {
    .name = "doctor",
    .arguments = "[FILE]",
    .help = "Check this machine, and what a pipeline file needs of it; say what to change.",
    .details =
        "  --stream NAME       check only this stream (default: all in the file)\n"
        "  --root DIR          folder for relative paths (default: the file's folder)\n"
        "  --cache DIR         folder for indexes and vocabulary tables\n"
        "  --analysis DIR      folder of learned statistics (default: analysis/FILE beside it)\n"
        "  --replicas R        replicas on this node, if the stream uses lanes (default:\n"
        "                      replicas in the file)\n"
        "  --socket PATH       the socket that the server will have (default: as for serve)\n"
        "  --json              print one JSON object\n"
        "\n"
        "Run it as the user and in the place (container, unit, job) where the server will run.\n"
        "Each line is ok, a note (it works, and is worth knowing), a warning (it works, but worse\n"
        "than it could) or a fault (a server would not start). Exits with status 0 if there is\n"
        "nothing to change, else 4. Vocabulary tables that are not in the cache folder yet are\n"
        "made.\n",
    .run = command_doctor_run,
};
