/* command_status.c - `tundish status`: one look at the server of this node. */
#include "commands/options.h"
#include "commands/status_print.h"

#include <stdio.h>

#include "watch/report.h"

/* Scripts and probes read the level from the exit status. */
static int
result_of(const struct status_view *view)
{
    switch (view->diagnosis.level) {
    case WATCH_STUCK:
    case WATCH_FAILED:
        return EXIT_SICK;
    case WATCH_GONE:
        return EXIT_SYSTEM;
    default:
        return EXIT_OK;
    }
}

struct wanted {
    const char *socket;
    uint64_t interval_ms;
    bool json, only_sentence, again;
};

static void
print(const struct status_view *view, const struct wanted *wanted)
{
    struct json out;

    if (wanted->only_sentence) {
        printf("%s: %s\n", watch_level_name(view->diagnosis.level), view->diagnosis.sentence);
    } else if (wanted->json) {
        json_start(&out, stdout);
        watch_report(&view->before, &view->now, &view->diagnosis, &out);
        putchar('\n');
    } else {
        status_print(view, &status_page_plain);
        if (wanted->again)
            putchar('\n');
    }
}

static tundish_status
look(struct status_view *view, const struct wanted *wanted, int *ret_result)
{
    tundish_status status;
    bool again;

    do {
        /* Rates need two looks, an interval apart. */
        status = status_view_next(view, (int64_t)wanted->interval_ms * 1000000);
        if (status != TUNDISH_OK)
            return status;
        print(view, wanted);
        *ret_result = result_of(view);
        /* The reader of a pipe may have closed it, as `head` does. */
        again = wanted->again && fflush(stdout) == 0 && tnd_stats_is_alive(&view->now.copy);
    } while (again);
    return TUNDISH_OK;
}

static int
show(const struct wanted *wanted)
{
    struct status_view view;
    tundish_status status = status_view_open(wanted->socket, &view);
    int result = EXIT_SYSTEM;

    if (status == TUNDISH_OK) {
        status = look(&view, wanted, &result);
        status_view_close(&view);
    }
    if (status == TUNDISH_OK)
        return result;
    fprintf(stderr, "tundish status: %s\n", tnd_error_text());
    return EXIT_SYSTEM;
}

static int
command_status_run(int argc, char **argv)
{
    struct wanted wanted = { .interval_ms = 1000 };
    const struct option_row rows[] = {
        { "socket", .text = &wanted.socket },
        { "interval", .number = &wanted.interval_ms, .minimum = 1, .maximum = 3600000 },
        { "json", .flag = &wanted.json },
        { "short", .flag = &wanted.only_sentence },
        { "watch", .flag = &wanted.again },
        { 0 },
    };
    int result = options_read_alone(&command_status, argc, argv, rows);

    if (result != EXIT_OK)
        return result;
    if (wanted.json && wanted.only_sentence)
        return command_misused(&command_status, "--json or --short, not both");
    return show(&wanted);
}

const struct command command_status = {
    .name = "status",
    .arguments = "",
    .help = "Show the current bottleneck and the metrics of this node's server.",
    .details =
        "  --socket PATH       the server's socket (default: as for trainers)\n"
        "  --interval MS       measure rates over this time (default 1000)\n"
        "  --json              print all metrics as JSON\n"
        "  --short             print only the level and the sentence, on one line\n"
        "  --watch             print again after each interval, until the server has ended\n"
        "\n"
        "The first word is the level, the worst of all streams:\n"
        "  idle     no trainer reads, or the server was just stopped normally\n"
        "           (later there is no server: exit status 3)\n"
        "  fine     trainers are the bottleneck: none waits for 5% of its time. A trainer\n"
        "           that is silent for longer than its steps take is named\n"
        "  warning  trainers get batches, but many rows are bad, or a vocabulary lacks\n"
        "           far more values than before\n"
        "  stopping the server was asked to stop, and trainers have batches left, which\n"
        "           are counted\n"
        "  waiting  a trainer waits for a stage, the order, the files, a store, a program,\n"
        "           the processors, memory, or another trainer whose lane is full\n"
        "  stuck    a trainer blocks the others: it is silent for longer than three\n"
        "           of its steps (and 10 s; 60 s before its first), has not attached, or\n"
        "           returns no batch; or all have died, and batches wait for replacements;\n"
        "           or a trainer is silent for longer than four of its\n"
        "           steps (and 2 minutes) while none waits; or an operator has paused\n"
        "           the stream\n"
        "  failed   a stream ended with an error, which the notes name\n"
        "  gone     the server has died or hangs\n"
        "A replica's lane: # is a batch that the trainer holds, = a batch that is ready for\n"
        "it, . a free slot. All # or = : others wait for this trainer. All . : it waits.\n"
        "\n"
        "Exit status: 0 no problem, or trainers wait; 2 wrong usage; 3 no server, or the\n"
        "server has died or hangs; 4 a stream has failed or is stuck.\n",
    .run = command_status_run,
};
