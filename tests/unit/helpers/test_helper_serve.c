/* test_helper_serve.c - callers of a helper that say half of something, or nothing that they
 * should. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/log.h"
#include "rig/helper_pair.h"
#include "session/served.h"
#include "unit/test_file.h"

/* Time that stands still, or passes as it is looked at: nothing here hangs on how fast a machine
 * is. */
static _Atomic int64_t now_ns, step_ns;

static int64_t
look(void *context)
{
    (void)context;
    return atomic_fetch_add(&now_ns, atomic_load(&step_ns));
}

static const struct tnd_clock clock_of_test = { .now_ns = look };

static int
take_clock(void **state)
{
    (void)state;
    atomic_store(&now_ns, 1);
    atomic_store(&step_ns, 0);
    tnd_clock_install(&clock_of_test);
    return 0;
}

static int
give_clock_back(void **state)
{
    (void)state;
    tnd_clock_install(NULL);
    return 0;
}

/* A helper by itself, whose streams nobody asks for. */
struct alone {
    _Atomic int stop;
    struct spec_file *file;
    struct helper_server *server;
};

static void
open_alone(struct alone *alone)
{
    static const char text[] = "streams: {s: {dataset: [{range: 8}, {batch: 2}]}}";
    struct helper_server_options options = { .listen = "127.0.0.1:0", .thread_count = 1 };
    struct spec_errors errors = { 0 };

    atomic_store(&alone->stop, 0);
    assert_int_equal(setenv("TUNDISH_HELPER_KEY", "a key that is long enough", 1), 0);
    assert_int_equal(
        spec_open_text(text, sizeof text - 1, "alone.yaml", served_folder, &errors, &alone->file),
        TUNDISH_OK);
    options.file = alone->file;
    options.cache_folder = served_folder;
    options.stop = &alone->stop;
    assert_int_equal(helper_server_open(&options, &alone->server), TUNDISH_OK);
}

static void
close_alone(struct alone *alone)
{
    atomic_store(&alone->stop, 1);
    helper_server_close(alone->server);
    spec_close(alone->file);
}

/* Call it, and wait until it has greeted. False: it has hung up. */
static bool
call(const struct alone *alone, int *ret_socket)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)helper_server_port(alone->server)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    uint8_t greeting[HELPER_GREETING_BYTES + HELPER_NONCE_BYTES];

    *ret_socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(*ret_socket >= 0);
    assert_int_equal(connect(*ret_socket, (struct sockaddr *)&address, sizeof address), 0);
    return recv(*ret_socket, greeting, sizeof greeting, MSG_WAITALL) == sizeof greeting;
}

static void
strangers_that_say_nothing_are_few(void **state)
{
    enum { CALLS = 260, FEW = 256 };
    struct alone alone;
    int sockets[CALLS], greeted = 0;

    (void)state;
    open_alone(&alone);
    for (int i = 0; i < CALLS; i++)
        greeted += call(&alone, &sockets[i]);
    assert_int_equal(greeted, FEW);
    for (int i = 0; i < CALLS; i++)
        close(sockets[i]);
    close_alone(&alone);
}

/* It does not wait for the codecs of someone who does not know the key. */
static void
a_proof_is_looked_at_first(void **state)
{
    struct {
        uint8_t nonce[HELPER_NONCE_BYTES], proof[HELPER_PROOF_BYTES];
        struct helper_hello hello;
    } said = { .hello = { .worker_count = 1, .columns = HELPER_COLUMNS_MAX, .stream = "s" } };
    struct alone alone;
    uint8_t byte;
    int caller;

    (void)state;
    open_alone(&alone);
    assert_true(call(&alone, &caller));
    assert_int_equal(send(caller, &said, sizeof said, 0), sizeof said);
    assert_int_equal(recv(caller, &byte, 1, 0), 0);
    close(caller);
    close_alone(&alone);
}

static void
wait_until_alone(struct alone *alone)
{
    struct helper_server *server = alone->server;

    pthread_mutex_lock(&server->lock);
    while (server->connections > 0)
        pthread_cond_wait(&server->ended, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

static _Atomic unsigned lines_told;
static char last_line[256];

static void
count_lines(void *user, enum tnd_log_level level, const char *event, const char *sentence)
{
    (void)user;
    if (level != TND_LOG_WARNING || strcmp(event, "helper") != 0)
        return;
    snprintf(last_line, sizeof last_line, "%s", sentence);
    atomic_fetch_add(&lines_told, 1);
}

/* Anybody may call: the log is not theirs to fill. */
static void
strangers_are_told_of_seldom(void **state)
{
    enum { CALLS = 100 };
    struct alone alone;
    int caller;

    (void)state;
    atomic_store(&lines_told, 0);
    tnd_log_set_tap(count_lines, NULL);
    open_alone(&alone);
    for (int i = 0; i <= CALLS; i++) {
        if (i == CALLS)
            atomic_fetch_add(&now_ns, INT64_C(11000000000));
        (void)call(&alone, &caller);
        close(caller);
        wait_until_alone(&alone);
    }
    close_alone(&alone);
    tnd_log_set_tap(NULL, NULL);
    assert_int_equal(atomic_load(&lines_told), 2);
    assert_non_null(strstr(last_line, "99 more"));
}

static void
the_rest_of_a_request_is_not_waited_for_forever(void **state)
{
    static struct helper_pair pair;
    struct helper_ask head;
    int ends[2];

    (void)state;
    helper_pair_open(&pair, served_folder, "{range: 8}, {batch: 4}", "");
    assert_true(helper_pair_deal(&pair));
    head = helper_pair_head(&pair);
    head.bytes = 100;
    atomic_store(&step_ns, 1000000000);
    for (size_t said = 1; said <= sizeof head; said += sizeof head - 1) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
        assert_int_equal(send(ends[0], &head, said, 0), said);
        pair.connection.wire.socket = ends[1];
        assert_int_equal(helper_answer_one(&pair.connection), TUNDISH_E_TIMEOUT);
        close(ends[0]);
        close(ends[1]);
    }
    pair.connection.wire.socket = -1;
    helper_pair_close(&pair);
}

/* Others may wait for the memory that it lies in. */
static void
an_answer_that_is_not_taken_is_dropped(void **state)
{
    static struct helper_pair pair;
    struct portable_bytes ask = { 0 };
    int ends[2];

    (void)state;
    /* The socket holds the ask, but less than the answer: each number stands for a thousand. */
    helper_pair_open(&pair, served_folder,
                     "{from_tensor_slices: {x: [1, 2]}}, {repeat: 4000}, "
                     "{one_hot: {columns: [x], depth: 1000}}, {batch: 4000}",
                     "");
    assert_true(helper_pair_deal(&pair));
    helper_pair_ask(&pair, &ask);
    atomic_store(&step_ns, 1000000000);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    assert_int_equal(send(ends[0], ask.bytes, ask.used, 0), ask.used);
    pair.connection.wire.socket = ends[1];
    assert_int_equal(helper_answer_one(&pair.connection), TUNDISH_E_TIMEOUT);
    close(ends[0]);
    close(ends[1]);
    pair.connection.wire.socket = -1;
    free(ask.bytes);
    helper_pair_close(&pair);
}

#define WITH_CLOCK(test) cmocka_unit_test_setup_teardown(test, take_clock, give_clock_back)

TEST_FILE(test_helper_serve)
{
    const struct CMUnitTest tests[] = {
        WITH_CLOCK(strangers_that_say_nothing_are_few),
        WITH_CLOCK(a_proof_is_looked_at_first),
        WITH_CLOCK(strangers_are_told_of_seldom),
        WITH_CLOCK(the_rest_of_a_request_is_not_waited_for_forever),
        WITH_CLOCK(an_answer_that_is_not_taken_is_dropped),
    };

    return cmocka_run_group_tests(tests, served_make_folder, served_remove_folder);
}
