/* test_serve.c - `tundish serve` in a child of this process, and the commands that look at a
 * running server. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "command_line.h"
#include "core/clock.h"
#include "shm/channel.h"
#include "tundish/tundish.h"
#include "unit/test_file.h"

#define PATIENCE_NS INT64_C(300000000000)

enum { LINE_BYTES = 1024 };

static int
write_home(void **state)
{
    if (open_home(state) != 0)
        return 1;
    put_text("rows.yaml", "streams: {rows: {dataset: [{range: 60}, {shuffle: {buffer_size: 9}}, "
                          "{map: {x: 'value * 2'}}, {batch: 2}], deliver: {slots: 4}}}\n");
    put_text("many.yaml",
             "streams:\n"
             "  lanes: {dataset: [{range: 9}, {batch: 4}], distribute: {replicas: 2}}\n"
             "  each: {dataset: [{range: 9}, {batch: 4}], distribute: {from_function: true}}\n"
             "  queue: {dataset: [{range: 9}, {batch: 4}], distribute: {delivery: queue}}\n"
             "  all: {dataset: [{range: 9}, {batch: 4}], distribute: {delivery: broadcast}}\n"
             "  shards: {dataset: [{range: 9}, {batch: 4}], distribute: {evaluation_shards: 2}}\n");
    put_text("bad.yaml", "streams: {rows: {dataset: [{rnage: 3}]}}\n");
    put_text("terms", "0\n2\n4\n");
    put_text("terms.yaml",
             "streams: {rows: {dataset: [{from_tensor_slices: {w: ['0', '2', '7', '4']}}, "
             "{string_lookup: {columns: w, vocabulary: terms}}, {batch: 2}], "
             "deliver: {epochs: 1}}}\n");
    return 0;
}

/* A server in a child, and the line that it says when it is ready ("" if it ends before). */
struct server {
    pid_t process;
    char ready[LINE_BYTES];
};

static void
start_server(const char *words, struct server *ret_server)
{
    char line[LINE_BYTES];
    size_t bytes = 0;
    int pipe_ends[2];
    ssize_t got;

    assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
    snprintf(line, sizeof line, "serve --cache c --socket sock --threads 2 --ready-fd %d %s",
             pipe_ends[1], words);
    ret_server->process = start_command(line, "log");
    close(pipe_ends[1]);
    while ((got = read(pipe_ends[0], ret_server->ready + bytes, LINE_BYTES - 1 - bytes)) > 0)
        bytes += (size_t)got;
    ret_server->ready[bytes] = '\0';
    close(pipe_ends[0]);
}

/* Drain it, and assert that it ended well. */
static void
stop_server(const struct server *server)
{
    assert_says("stop --socket sock", "", EXIT_OK, "");
    assert_int_equal(wait_for_command(server->process), EXIT_OK);
}

/* Has the file these words? Not if there is none. */
static bool
holds(const char *name, const char *words)
{
    static char text[1 << 20];
    int file = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file >= 0 ? read(file, text, sizeof text - 1) : 0;

    assert_true(bytes >= 0);
    text[bytes] = '\0';
    if (file >= 0)
        close(file);
    return strstr(text, words) != NULL;
}

static void
assert_logged(const char *words)
{
    if (!holds("log", words))
        fail_msg("'%s' is not in the log", words);
}

/* A child writes this while the test waits. */
static void
await_words(const char *name, const char *words)
{
    int64_t until_ns = tnd_clock_deadline_ns(PATIENCE_NS);

    while (!holds(name, words)) {
        if (tnd_clock_left_ns(until_ns) <= 0)
            fail_msg("'%s' does not come to %s", words, name);
        usleep(10000);
    }
}

/* A server brings its figures up to date some times a second. */
static void
assert_comes_to_show(const char *words)
{
    int64_t until_ns = tnd_clock_deadline_ns(PATIENCE_NS);
    const char *output;
    int status;

    do
        output = run_command("status --socket sock --interval 10", "", &status);
    while (strstr(output, words) == NULL && tnd_clock_left_ns(until_ns) > 0);
    if (status != EXIT_OK || strstr(output, words) == NULL)
        fail_msg("status %d, or '%s' is not in: %s", status, words, output);
}

static tundish_reader *
open_reader(const char *stream, const char *group)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    tundish_reader *reader = NULL;

    options.server = "sock";
    options.stream = stream;
    options.group = group;
    options.server_timeout_ns = PATIENCE_NS;
    if (tundish_open(&options, &reader) != TUNDISH_OK)
        fail_msg("%s", tundish_last_error());
    return reader;
}

static void
read_batches(tundish_reader *reader, unsigned count)
{
    for (; count > 0; count--) {
        const tundish_batch *batch = NULL; /* an epoch's end sets none */

        if (tundish_next(reader, PATIENCE_NS, &batch) < 0)
            fail_msg("%s", tundish_last_error());
        tundish_release(reader, batch);
    }
}

/* It has been asked to end. */
static void
assert_drains(const struct server *server, tundish_reader *reader)
{
    const tundish_batch *batch;
    tundish_status status;

    while ((status = tundish_next(reader, PATIENCE_NS, &batch)) >= 0 && status != TUNDISH_STOPPED)
        if (status == TUNDISH_OK)
            tundish_release(reader, batch);
    assert_int_equal(status, TUNDISH_STOPPED);
    assert_int_equal(wait_for_command(server->process), EXIT_OK);
    tundish_close(reader);
}

static void
a_server_serves_until_it_is_stopped(void **state)
{
    struct server server;
    tundish_reader *reader;

    (void)state;
    start_server("--seed 5 rows.yaml", &server);
    assert_string_equal(server.ready, "ready\n");
    assert_int_equal(wait_for_command(start_command("serve --socket sock rows.yaml", "second")),
                     EXIT_SYSTEM);
    reader = open_reader("rows", NULL);
    read_batches(reader, 40);
    assert_int_equal(kill(server.process, SIGUSR1), 0); /* of no meaning on a single node */
    assert_int_equal(kill(server.process, SIGTERM), 0);
    assert_drains(&server, reader);
    assert_logged("stopped");
    assert_says("stop --socket sock", "", EXIT_SYSTEM, "sock");
    assert_says("status --socket sock", "", EXIT_SYSTEM, "no server is at sock");
}

/* The kernel and the shell may both send the signal. */
static void
a_closed_terminal_drains_a_server(void **state)
{
    struct server server;
    tundish_reader *reader;

    (void)state;
    signal(SIGHUP, SIG_DFL); /* also where the tests are run by nohup */
    start_server("rows.yaml", &server);
    reader = open_reader("rows", NULL);
    read_batches(reader, 1);
    assert_int_equal(kill(server.process, SIGHUP), 0);
    await_words("log", "signal 1: stopping");
    assert_int_equal(kill(server.process, SIGHUP), 0);
    assert_drains(&server, reader);
}

static void
a_server_after_nohup_outlives_its_terminal(void **state)
{
    struct server server;
    tundish_reader *reader;

    (void)state;
    signal(SIGHUP, SIG_IGN);
    start_server("rows.yaml", &server);
    signal(SIGHUP, SIG_DFL);
    reader = open_reader("rows", NULL);
    assert_int_equal(kill(server.process, SIGHUP), 0);
    assert_int_equal(kill(server.process, SIGTERM), 0); /* would be taken after SIGHUP */
    assert_drains(&server, reader);
    assert_logged("signal 15: stopping");
}

static void
what_cannot_be_served_is_refused(void **state)
{
    static const struct {
        const char *words;
        int status;
        const char *log;
    } cases[] = {
        { "bad.yaml", EXIT_REFUSED, "rnage" },
        { "none.yaml", EXIT_SYSTEM, "none.yaml" },
        { "--stream other rows.yaml", EXIT_REFUSED, "there is no stream 'other'" },
        { "--state none rows.yaml", EXIT_SYSTEM, "none" },
        { "--expect-nodes 2 rows.yaml", EXIT_SYSTEM, "--expect-nodes 2" },
        { "--expect-trainers two rows.yaml", EXIT_SYSTEM, "not 'two'" },
        { "--expect-trainers 3 rows.yaml", EXIT_REFUSED, "3 trainers" },
        { "--expect-trainers other=1 rows.yaml", EXIT_REFUSED, "'other' for the trainers" },
        { "--log-format loud rows.yaml", EXIT_USAGE, "text, json or journal" },
        { "--replicas 0 rows.yaml", EXIT_USAGE, "usage" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct server server;

        start_server(cases[i].words, &server);
        assert_string_equal(server.ready, "");
        assert_int_equal(wait_for_command(server.process), cases[i].status);
        assert_logged(cases[i].log);
    }
}

static void
the_launcher_is_told_how_trainers_share_streams(void **state)
{
    static const char *const cases[][2] = {
        { "--expect-trainers 2 --stream lanes many.yaml", "ready together\n" },
        { "--expect-trainers lanes=2 many.yaml", "ready together\n" },
        { "--expect-trainers 3 --stream each many.yaml", "ready sessions\n" },
        { "--expect-trainers queue=3 many.yaml", "ready alone\n" },
        { "--expect-trainers all=3 many.yaml", "ready groups\n" },
        { "--expect-trainers shards=3 many.yaml", "ready alone\n" },
        { "--expect-trainers 2 many.yaml", "ready mixed\n" },
        { "--expect-trainers 1 rows.yaml", "ready together\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct server server;

        start_server(cases[i][0], &server);
        assert_string_equal(server.ready, cases[i][1]);
        stop_server(&server);
    }
}

static void
a_server_with_a_state_goes_on_where_it_stopped(void **state)
{
    struct server server;
    tundish_reader *reader;
    const tundish_batch *batch;

    (void)state;
    start_server("--state . rows.yaml", &server);
    reader = open_reader("rows", NULL);
    read_batches(reader, 3);
    tundish_close(reader);
    stop_server(&server);
    start_server("--state . rows.yaml", &server);
    reader = open_reader("rows", NULL);
    assert_int_equal(tundish_next(reader, PATIENCE_NS, &batch), TUNDISH_OK);
    assert_int_equal(batch->step, 3);
    tundish_release(reader, batch);
    tundish_close(reader);
    stop_server(&server);
    assert_int_equal(unlink("rows.place"), 0);
}

static void
status_shows_streams_and_trainers(void **state)
{
    struct server server;
    tundish_reader *reader;
    const tundish_batch *held;

    (void)state;
    start_server("rows.yaml", &server);
    assert_says("status --socket sock --interval 1", "", EXIT_OK, "idle");
    reader = open_reader("rows", "night");
    read_batches(reader, 5);
    assert_int_equal(tundish_next(reader, PATIENCE_NS, &held), TUNDISH_OK);
    assert_comes_to_show("0 of night");
    assert_comes_to_show("#"); /* the batch that it holds */
    assert_says("status --socket sock --interval 1", "", EXIT_OK, "stream rows: epoch 0 step");
    assert_says("status --socket sock --interval 1", "", EXIT_OK, "job night");
    assert_says("status --socket sock --interval 1", "", EXIT_OK, "content stage:line");
    assert_says("status --socket sock --interval 1", "", EXIT_OK, "order stage:line");
    assert_says("status --socket sock --interval 1", "", EXIT_OK, "columns as they are");
    assert_says("status --socket sock --interval 1 --json", "", EXIT_OK, "\"group\": \"night\"");
    assert_says("status --socket sock --interval 0", "", EXIT_USAGE, "usage");
    tundish_release(reader, held);
    tundish_close(reader);
    stop_server(&server);
}

static void
vocabularies_are_shown_with_what_they_lack(void **state)
{
    struct server server;
    tundish_reader *reader;

    (void)state;
    start_server("terms.yaml", &server);
    reader = open_reader("rows", NULL);
    read_batches(reader, 2);
    assert_comes_to_show("25.0%");
    assert_says("status --socket sock --interval 1", "", EXIT_OK, "lookups/s");
    tundish_close(reader);
    stop_server(&server);
}

static void
top_prints_pages_until_the_server_has_ended(void **state)
{
    struct server server;
    pid_t top;

    (void)state;
    assert_says("top --socket sock", "", EXIT_SYSTEM, "no server is at sock");
    start_server("rows.yaml", &server);
    top = start_command("top --socket sock", "pages");
    await_words("pages", "stream rows: epoch");
    stop_server(&server);
    assert_int_equal(wait_for_command(top), EXIT_OK);
}

/* What a terminal was sent until these words come. False: the other end was closed first. */
static bool
shows(int terminal, const char *words)
{
    static char text[1 << 16];
    size_t used = 0;
    ssize_t got;

    while (used < sizeof text - 1 &&
           (got = read(terminal, text + used, sizeof text - 1 - used)) > 0) {
        used += (size_t)got;
        text[used] = '\0';
        if (strstr(text, words) != NULL)
            return true;
    }
    return false;
}

static void
top_draws_on_a_terminal_until_q(void **state)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct server server;
    pid_t top;

    (void)state;
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    start_server("rows.yaml", &server);
    setenv("TERM", "xterm", 1);
    top = start_command("top --socket sock", ptsname(terminal));
    assert_true(shows(terminal, "quit"));
    assert_int_equal(write(terminal, "q", 1), 1);
    assert_int_equal(wait_for_command(top), EXIT_OK);
    close(terminal);
    stop_server(&server);
}

static void
a_trace_holds_what_threads_did(void **state)
{
    struct server server;
    tundish_reader *reader;
    pid_t trace;

    (void)state;
    assert_says("trace --socket sock", "", EXIT_SYSTEM, "no server is at sock");
    start_server("rows.yaml", &server);
    reader = open_reader("rows", NULL);
    assert_says("trace --socket sock --output none/trace.json", "", EXIT_SYSTEM, "none/trace.json");
    trace = start_command("trace --socket sock --seconds 1 --output trace.json", "log");
    while (command_runs(trace))
        read_batches(reader, 100);
    assert_logged("events of 3 threads in trace.json");
    assert_true(holds("trace.json", "\"name\": \"rows: order\""));
    assert_true(
        holds("trace.json", "\"name\": \"deal a step\", \"cat\": \"thread\", \"ph\": \"X\""));
    tundish_close(reader);
    stop_server(&server);
}

/* An operator's request, whose answer has these words. */
static void
assert_answers(uint64_t what, tundish_status status, const char *words)
{
    const struct tnd_message_head head = { .magic = TND_CHANNEL_MAGIC,
                                           .type = TND_CONTROL,
                                           .id = what };
    struct tnd_message answer;
    char text[LINE_BYTES];
    int socket;

    assert_int_equal(tnd_channel_connect("sock", &socket), TUNDISH_OK);
    assert_int_equal(tnd_channel_send(socket, head, NULL, NULL, 0), TUNDISH_OK);
    assert_int_equal(tnd_channel_wait(socket, PATIENCE_NS), TUNDISH_OK);
    assert_int_equal(tnd_channel_receive(socket, &answer, NULL), TUNDISH_OK);
    assert_int_equal(answer.head.type, TND_ANSWER);
    assert_int_equal(answer.head.status, status);
    snprintf(text, sizeof text, "%.*s", (int)answer.head.bytes, (const char *)answer.bytes);
    if (strstr(text, words) == NULL)
        fail_msg("'%s' is not in: %s", words, text);
    close(socket);
}

static void
an_operator_s_requests_are_obeyed(void **state)
{
    struct server server;
    tundish_reader *reader;

    (void)state;
    start_server("rows.yaml", &server);
    assert_answers(TND_CONTROL_PAUSE, TUNDISH_OK, "paused: trainers wait");
    assert_answers(TND_CONTROL_RESUME, TUNDISH_OK, "resumed");
    reader = open_reader("rows", NULL);
    read_batches(reader, 5);
    assert_answers(TND_CONTROL_CHECKPOINT, TUNDISH_OK, "tnd1.");
    assert_answers(TND_CONTROL_LOG_ERROR, TUNDISH_OK, "up to error");
    assert_answers(TND_CONTROL_LOG_WARNING, TUNDISH_OK, "up to warning");
    assert_answers(TND_CONTROL_LOG_DEBUG, TUNDISH_OK, "up to debug");
    assert_answers(TND_CONTROL_LOG_NOTICE, TUNDISH_OK, "up to notice");
    assert_answers(99, TUNDISH_E_ARGUMENT, "does not know this request");
    tundish_close(reader);
    assert_answers(TND_CONTROL_DRAIN, TUNDISH_OK, "draining");
    assert_int_equal(wait_for_command(server.process), EXIT_OK);
}

/* Lines between a launcher and its server. */
static void
a_launcher_s_trainers_begin_again(void **state)
{
    struct server server;
    char words[64], line[64] = "";
    int ends[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    snprintf(words, sizeof words, "--crew-fd %d rows.yaml", ends[1]);
    start_server(words, &server);
    assert_int_equal(write(ends[0], "what is this\nfailed 3\nended 7\n", 31), 31);
    assert_true(read(ends[0], line, sizeof line - 1) > 0);
    assert_string_equal(line, "begin 7\n");
    stop_server(&server);
    close(ends[0]);
    close(ends[1]);
}

#define SERVES(test) cmocka_unit_test_teardown(test, end_commands)

TEST_FILE(test_serve)
{
    const struct CMUnitTest tests[] = {
        SERVES(a_server_serves_until_it_is_stopped),
        SERVES(a_closed_terminal_drains_a_server),
        SERVES(a_server_after_nohup_outlives_its_terminal),
        SERVES(what_cannot_be_served_is_refused),
        SERVES(the_launcher_is_told_how_trainers_share_streams),
        SERVES(a_server_with_a_state_goes_on_where_it_stopped),
        SERVES(status_shows_streams_and_trainers),
        SERVES(vocabularies_are_shown_with_what_they_lack),
        SERVES(top_prints_pages_until_the_server_has_ended),
        SERVES(top_draws_on_a_terminal_until_q),
        SERVES(a_trace_holds_what_threads_did),
        SERVES(an_operator_s_requests_are_obeyed),
        SERVES(a_launcher_s_trainers_begin_again),
    };

    return cmocka_run_group_tests(tests, write_home, close_home);
}
