/* command_serve.c - `tundish serve`: feed this node's trainers until told to stop. */
#include "commands/serve.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/options.h"
#include "commands/serve_crew.h"
#include "commands/serve_notify.h"
#include "commands/serve_owner.h"
#include "commands/serve_signals.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/plural.h"
#include "core/read_write.h"
#include "deliver/wakeup.h"
#include "helpers/helpers.h"
#include "remote/seen.h"
#include "session/checkpoint/session_state.h"
#include "shm/channel.h"
#include "shm/segment.h"

/* serve --state: how often changed places are written. */
enum { KEEP_NS = 100000000, LAST_PLACE_LOOK_NS = 10000000 };

/* ... and how long a server that stops waits for the next step of its trainers. */
enum { DRAIN_LIMIT_S = 10, DRAIN_LIMIT_OF_STATE_S = 30 };

/* How long a server that cannot start keeps the link open, so that other nodes hear the reason. */
static const int64_t REFUSED_LINGER_NS = 2000000000;

static tundish_status
start_all(struct serve *serve)
{
    tundish_status status = TUNDISH_OK;

    /* A session takes its kept place before it starts, and trainers come only after all have
     * started. */
    for (uint32_t i = 0; status == TUNDISH_OK && i < serve->session_count; i++) {
        status = session_state_restore(serve->sessions[i]);
        if (status == TUNDISH_OK)
            status = session_start(serve->sessions[i]);
    }
    if (status == TUNDISH_OK)
        link_subscribe(serve->link, serve_hear_others, serve);
    return status == TUNDISH_OK ? hub_start(serve->hub) : status;
}

static tundish_status
take_control_request(void *user, enum tnd_control what, char *text, size_t text_bytes)
{
    struct serve *serve = user;

    return serve_control(serve->sessions, serve->session_count, what, text, text_bytes);
}

/* Free the shared memory that killed servers have left, before this one takes its own. */
static void
sweep(void)
{
    unsigned removed = tnd_segment_sweep();

    if (removed > 0)
        tnd_log(TND_LOG_NOTICE, "sweep", "removed %u shared memory segment%s of dead servers",
                removed, TND_PLURAL(removed));
}

/* Other nodes may have the same folder, on a file system that they share. */
static tundish_status
claim_state(struct serve *serve)
{
    tundish_status status = session_state_folder(serve->state, link_rank(serve->link),
                                                 link_size(serve->link), &serve->state_folder);

    return status == TUNDISH_OK ? session_state_claim(serve->state_folder, &serve->state_claim)
                                : status;
}

/* Open everything, in the order in which parts need each other. Nodes agree before the hub opens
 * its socket, so no trainer attaches to a server of another job. */
static tundish_status
open_all(struct serve *serve)
{
    struct hub_config config = { .socket_path = serve->socket,
                                 .group = serve->group_name != NULL ? &serve->group : NULL,
                                 .make = serve_make_session,
                                 .control = take_control_request,
                                 .user = serve };
    tundish_status status = serve_hear_signals();

    serve->seen = remote_seen_open();
    tnd_log_start();
    serve_notify("", "opening %s", serve->pipeline_options.path);
    /* As early as possible: a launcher that dies from here on takes the server with it. */
    if (status == TUNDISH_OK && serve->owner != 0)
        status = serve_end_with(serve->owner);
    if (status == TUNDISH_OK && serve->group_name != NULL)
        status = group_find(serve->group_name, &serve->group);
    if (status == TUNDISH_OK && serve->state != NULL)
        status = session_state_check(serve->state);
    if (status == TUNDISH_OK)
        status = serve_open_link(serve);
    if (status == TUNDISH_OK)
        status = spec_open(serve->pipeline_options.path, serve->pipeline_options.root,
                           &serve->errors, &serve->file);
    if (status == TUNDISH_OK && serve->group_name != NULL && !serve->allows_python)
        status = serve_check_python(serve->file, serve->group_name, &serve->errors);
    if (status == TUNDISH_OK)
        status = serve_expect_trainers(serve);
    if (status == TUNDISH_OK)
        status = pipeline_open_learned(&serve->pipeline_options, serve->file, &serve->errors,
                                       &serve->learned);
    if (status == TUNDISH_OK)
        status = serve_agree(serve);
    if (status == TUNDISH_OK)
        status = hub_open(&config, &serve->hub);
    /* After the hub has its socket: a second server at the same path has been refused by then. */
    if (status == TUNDISH_OK)
        sweep();
    if (status == TUNDISH_OK && serve->state != NULL)
        status = claim_state(serve);
    if (status == TUNDISH_OK)
        status = serve_open_stats(serve);
    if (status == TUNDISH_OK)
        status = serve_open_sessions(serve);
    if (status == TUNDISH_OK)
        status = serve_show_regularly(serve);
    if (status == TUNDISH_OK)
        status = start_all(serve);
    return status == TUNDISH_OK ? serve_crew_open(serve) : status;
}

static void
keep_places(struct serve *serve)
{
    for (uint32_t i = 0; i < serve->session_count; i++)
        session_state_keep(serve->sessions[i]);
}

/* Trainers take what is made until they come to STOPPED, and those that are started at the next
 * server must not get it again. A trainer that stands still does not hold up the end for ever. */
static void
keep_last_place(struct session *session, struct patience *patience)
{
    patience_begin(patience);
    while (session_state_changes(session) && patience_lasts(patience)) {
        nanosleep(&(struct timespec){ .tv_nsec = LAST_PLACE_LOOK_NS }, NULL);
        if (session_state_keep(session))
            patience_renew(patience);
    }
    session_state_keep(session);
    if (!patience_lasts(patience) && session_state_changes(session))
        session_tell_unfinished(session);
}

/* Close everything, so that no part uses one that has been closed: first the sessions stop, then
 * the hub, then the memory that both use is freed. linger_ns is how long to wait for nodes that
 * continue; negative: until they end. */
static void
close_all(struct serve *serve, int64_t linger_ns)
{
    serve_crew_close(serve);
    if (serve->link != NULL)
        link_subscribe(serve->link, NULL, NULL);
    named_sessions_stop(serve->named_sessions);
    for (uint32_t i = 0; i < serve->session_count; i++)
        session_stop(serve->sessions[i]);
    for (uint32_t i = 0; i < serve->session_count; i++)
        keep_last_place(serve->sessions[i], serve->patience);
    if (serve->hub != NULL)
        hub_shut(serve->hub);
    for (uint32_t i = 0; i < serve->session_count; i++)
        hub_remove(serve->hub, session_feed(serve->sessions[i]));
    if (serve->hub != NULL)
        hub_stop(serve->hub); /* no connection uses the sessions any more */
    for (uint32_t i = 0; i < serve->session_count; i++)
        session_close(serve->sessions[i]);
    named_sessions_close(serve->named_sessions);
    hub_close(serve->hub);
    serve_forget_stores(&serve->stores);
    serve_forget_python(&serve->pythons);
    stats_close(serve->stats);
    if (serve->ticker >= 0)
        close(serve->ticker);
    for (uint32_t i = 0; serve->wakeups != NULL && i < serve->file->stream_count; i++)
        wakeup_close(serve->wakeups[i]);
    free(serve->wakeups);
    free(serve->sessions);
    pipeline_close_learned(serve->learned);
    spec_close(serve->file);
    serve_log_link(serve);
    link_leave(serve->link, linger_ns);
    shard_trackers_close(serve->trackers);
    peers_close(serve->peers);
    catalogue_close(&serve->catalogue);
    remote_seen_close(serve->seen);
    link_close(serve->link);
    if (serve->state_claim >= 0)
        close(serve->state_claim);
    free(serve->state_folder);
}

/* Log that trainers may attach, and tell the process that gave --ready-fd. */
static void
say_ready(const struct serve *serve)
{
    const char *line = serve_ready_line(serve);
    int error = 0;

    tnd_log(TND_LOG_NOTICE, "ready", "serving %u stream%s at %s", serve->stream_count,
            TND_PLURAL(serve->stream_count), serve->socket);
    serve_notify("READY=1", "serving %u stream%s at %s", serve->stream_count,
                 TND_PLURAL(serve->stream_count), serve->socket);
    if (serve->ready_descriptor < 0)
        return;
    /* Never block: a launcher that does not read must not hold up the server. */
    if (!tnd_write_allowed(serve->ready_descriptor))
        tnd_log(TND_LOG_WARNING, "ready", "--ready-fd %d: no process reads it",
                serve->ready_descriptor);
    else
        error = tnd_write(serve->ready_descriptor, line, strlen(line));
    if (error != 0)
        tnd_log(TND_LOG_WARNING, "ready", "--ready-fd %d: %s", serve->ready_descriptor,
                strerror(error));
    close(serve->ready_descriptor);
}

/* A filter of system calls is part of a service or of a container, where none expects it to be the
 * reason. */
static void
say_that_calls_are_filtered(void)
{
    char line[160];
    unsigned mode = 0;
    FILE *file = fopen("/proc/self/status", "re");

    while (file != NULL && mode == 0 && fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "Seccomp: %u", &mode);
    if (file != NULL)
        fclose(file);
    if (mode != 0)
        tnd_log(TND_LOG_NOTICE, "start",
                "a filter refuses some system calls to this process (seccomp): where an error "
                "cannot be explained, look at SystemCallFilter= of the unit, or at the container's "
                "profile");
}

static int
refuse(const struct serve *serve)
{
    bool refused = serve->errors.count > 0;

    if (refused)
        serve_notify("", "%s is refused: the log says why", serve->pipeline_options.path);
    else
        serve_notify("", "%s", tnd_error_text());

    /* Errors of the pipeline file have lines and columns; others are logged. */
    if (refused) {
        char *text = spec_errors_text(&serve->errors);

        tnd_log_lines(TND_LOG_ERROR, text);
        free(text);
    } else {
        tnd_log(TND_LOG_ERROR, "start", "%s", tnd_error_text());
        say_that_calls_are_filtered();
    }
    return refused ? EXIT_REFUSED : EXIT_SYSTEM;
}

/* Tell the service manager that the server is alive: this thread, which hears signals and keeps
 * places, and the hub's, on which all trainers depend, and which looks at every session. */
static void
tell_alive(struct serve *serve, int64_t interval_ns)
{
    uint64_t beats = atomic_load_explicit(&serve->beats, memory_order_relaxed);
    int64_t now_ns = tnd_clock_ns();

    if (interval_ns == 0 || beats == serve->beats_told || now_ns - serve->told_ns < interval_ns)
        return;
    serve->beats_told = beats;
    serve->told_ns = now_ns;
    serve_notify_alive();
}

/* Run until a signal stops the server. */
static void
keep_sessions(struct serve *serve)
{
    int64_t alive_ns = serve_notify_interval_ns();
    int64_t turn_ns = serve->state != NULL ? KEEP_NS : -1;

    if (alive_ns > 0 && (turn_ns < 0 || alive_ns < turn_ns))
        turn_ns = alive_ns;
    while (atomic_load(&serve_stop_signal) == 0) {
        if (atomic_exchange(&serve_job_failed, false))
            link_fail(
                serve->link,
                "the job is stopping because it failed on another node: that node's log says why");
        tell_alive(serve, alive_ns);
        if (serve_wait(turn_ns) && atomic_load(&serve_stop_signal) == 0)
            named_sessions_reap(serve->named_sessions);
        keep_places(serve);
    }
}

static int
run_serve(struct serve *serve)
{
    int result = EXIT_OK;

    if (open_all(serve) != TUNDISH_OK) {
        result = refuse(serve);
    } else {
        stats_show_state(serve->stats, TND_STATS_SERVING);
        say_ready(serve);
        keep_sessions(serve);
        serve_notify("STOPPING=1", "delivering what is made, before it stops");
        tnd_log(TND_LOG_NOTICE, "stop",
                "signal %d: stopping; another SIGTERM or SIGINT stops at once",
                atomic_load(&serve_stop_signal));
        stats_show_state(serve->stats, TND_STATS_DRAINING);
    }
    /* After a normal end the others may still need this node's rows, for as long as they run. */
    close_all(serve, result == EXIT_OK ? -1 : REFUSED_LINGER_NS);
    spec_errors_close(&serve->errors);
    if (result == EXIT_OK)
        tnd_log(TND_LOG_NOTICE, "stop", "stopped");
    tnd_log_flush();
    return result;
}

static int
command_serve_run(int argc, char **argv)
{
    struct serve serve = {
        .state_claim = -1,
        .ready_descriptor = -1,
        .crew_descriptor = -1,
        .ticker = -1,
        .drain_limit_s = UINT32_MAX,
    };
    struct patience patience = { 0 };
    const char *format = NULL;
    uint32_t ready = 0, crew = 0;
    bool says_ready = false, has_crew = false;
    const struct option_row rows[] = {
        PIPELINE_OPTIONS(serve.pipeline_options),
        { "socket", .text = &serve.socket },
        { "group", .text = &serve.group_name },
        { "allow-python", .flag = &serve.allows_python },
        { "replicas", .count = &serve.pipeline_options.replicas, .minimum = 1, .maximum = 4096 },
        { "threads", .count = &serve.thread_count, .minimum = 1, .maximum = 256 },
        { "pin", .flag = &serve.pin },
        { "state", .text = &serve.state },
        { "drain-limit", .count = &serve.drain_limit_s, .maximum = 86400 },
        { "helpers", .text = &serve.helpers },
        { "expect-nodes", .count = &serve.expected_nodes, .minimum = 1, .maximum = 65536 },
        { "expect-trainers", .text = &serve.trainers_text },
        { "end-with", .count = &serve.owner, .minimum = 1, .maximum = INT32_MAX },
        { "ready-fd", .count = &ready, .maximum = INT32_MAX, .flag = &says_ready },
        { "crew-fd", .count = &crew, .maximum = INT32_MAX, .flag = &has_crew },
        { "log-format", .text = &format },
        { 0 },
    };
    char socket_path[TND_SOCKET_PATH_BYTES];
    int result = options_read_file(&command_serve, argc, argv, rows, &serve.pipeline_options.path);

    if (result != EXIT_OK)
        return result;
    if (format != NULL && !tnd_log_set_format(format))
        return command_misused(&command_serve, "--log-format is text, json or journal, not '%s'",
                               format);
    if (tnd_channel_path(serve.socket, socket_path) != TUNDISH_OK)
        return command_misused(&command_serve, "%s", tnd_error_text());
    if (serve.helpers == NULL)
        serve.helpers = getenv("TUNDISH_HELPERS");
    if (serve.helpers != NULL && helpers_check(serve.helpers) != TUNDISH_OK)
        return command_misused(&command_serve, "%s", tnd_error_text());
    if (says_ready)
        serve.ready_descriptor = (int)ready;
    if (has_crew)
        serve.crew_descriptor = (int)crew;
    /* Drawn before the nodes agree: rank 0's seed is used by all. */
    if (!serve.pipeline_options.has_seed)
        serve.pipeline_options.seed = pipeline_draw_seed();
    if (serve.drain_limit_s == UINT32_MAX)
        serve.drain_limit_s = serve.state != NULL ? DRAIN_LIMIT_OF_STATE_S : DRAIN_LIMIT_S;
    patience.limit_ns = (int64_t)serve.drain_limit_s * INT64_C(1000000000);
    serve.patience = &patience;
    serve.socket = socket_path;
    return run_serve(&serve);
}

const struct command command_serve = {
    .name = "serve",
    .arguments = "FILE",
    .help = "Serve this node's trainers. SIGTERM drains and stops; a second SIGTERM stops at once.",
    .details =
        "  --stream NAME       serve only this stream (default: all in the file)\n"
        "  --socket PATH       socket for trainers (default: $TUNDISH_SERVER, else\n"
        "                      $XDG_RUNTIME_DIR/tundish/server, else /tmp/tundish-UID/server)\n"
        "  --group NAME        trainers of this group may attach too; the folder of the socket "
        "must\n"
        "                      let them in, and they set TUNDISH_SERVER_UID to the server's user.\n"
        "                      Only the server's user and root may control it\n"
        "  --allow-python      run Python of the pipeline file's own (python, python_dataset) in\n"
        "                      spite of --group: it runs as the server's user\n"
        "  --replicas R        replicas on this node, for streams that use lanes (default:\n"
        "                      replicas in the file); not for queues, broadcasts, evaluations\n"
        "  --threads N         threads that make batches (default: one per processor\n"
        "                      that the server may use)\n"
        "  --pin               bind each of these threads to one memory node's processors, spread\n"
        "                      over the nodes (default: the kernel moves them). Nothing changes\n"
        "                      on a machine with one node\n" PIPELINE_OPTIONS_HELP
        "  --seed N            seed of stages without one (default: random, logged)\n"
        "  --state DIR         save positions in the existing folder DIR and resume there after\n"
        "                      a restart; of several nodes each has DIR/node-RANK. Trainers\n"
        "                      killed together with the server get the batches of the last\n"
        "                      0.1 s again, unless they open at a saved place. A drain waits\n"
        "                      for trainers to take what is made\n"
        "  --drain-limit S     stop although trainers hold up the drain, once none has taken or\n"
        "                      returned a batch for S seconds; the log names them (default: 10,\n"
        "                      with --state 30)\n"
        "  --helpers LIST      HOST:PORT,... of helpers (`tundish helper`), which make parts of\n"
        "                      batches when trainers wait and all threads are busy (default:\n"
        "                      $TUNDISH_HELPERS)\n"
        "  --expect-nodes N    exit with an error if the MPI job does not have N nodes (default:\n"
        "                      $SLURM_NTASKS, if set); a node is one MPI rank\n"
        "  --expect-trainers [STREAM=]N\n"
        "                      exit with an error if N trainers do not match the replicas. The\n"
        "                      line of --ready-fd then says how trainers share streams: ready\n"
        "                      alone, together (one group), mixed (one group and a queue),\n"
        "                      sessions or groups (one for each trainer)\n"
        "  --end-with PID      stop when process PID has ended, however it ended\n"
        "  --ready-fd N        write a line to this descriptor when trainers can attach\n"
        "  --crew-fd N         for tundish-launch only: socket over which the launchers of\n"
        "                      several nodes agree where they restart their trainers\n"
        "  --log-format F      text, json, or journal (the default where journald reads standard\n"
        "                      error): levels as <N>\n"
        "\n"
        "SIGINT (Ctrl-C) does what SIGTERM does. SIGHUP (a terminal that closes) drains, too, but\n"
        "never stops at once; after nohup it does nothing.\n"
        "\n"
        "SIGUSR1 from the parent process reports that the job has failed on another node:\n"
        "trainers get the error at once instead of after five seconds of silence.\n"
        "tundish-launch sends it.\n",
    .run = command_serve_run,
};
