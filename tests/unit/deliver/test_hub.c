/* test_hub.c - the socket, and visitors of all sorts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/status.h"
#include "deliver/socket/hub.h"
#include "rig/numbers.h"
#include "shm/channel.h"
#include "shm/layout.h"
#include "unit/test_file.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

static void
a_second_server_on_a_live_socket_is_refused(void **state)
{
    struct numbers_options options = { .idle = true };
    struct hub_config config = { 0 };
    struct numbers *numbers;
    struct hub *hub = NULL;
    char expected[64];

    (void)state;
    numbers_open(&options, &numbers);
    config.socket_path = numbers_path(numbers);
    assert_int_equal(hub_open(&config, &hub), TUNDISH_E_ARGUMENT);
    snprintf(expected, sizeof expected, "process %d", (int)getpid());
    assert_non_null(strstr(tnd_error_text(), expected));
    assert_null(hub);
    numbers_close(numbers);
}

static void
the_socket_of_a_dead_server_is_replaced_and_the_folder_is_private(void **state)
{
    char folder[] = "/tmp/tundish-test-XXXXXX", inner[48], path[64];
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct hub_config config = { .socket_path = path };
    struct hub *hub = NULL;
    struct stat status;
    int dead;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(inner, sizeof inner, "%s/run", folder);
    snprintf(path, sizeof path, "%s/server", inner);
    assert_int_equal(hub_open(&config, &hub), TUNDISH_OK);
    hub_close(hub);
    assert_int_equal(stat(inner, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    dead = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    memcpy(address.sun_path, path, strlen(path));
    assert_int_equal(bind(dead, (const struct sockaddr *)&address, sizeof address), 0);
    close(dead);
    assert_int_equal(hub_open(&config, &hub), TUNDISH_OK);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    hub_close(hub);
    /* Neither the socket nor the lock is left. */
    assert_int_equal(rmdir(inner), 0);
    rmdir(folder);
}

static void
the_default_folder_must_be_ours_alone(void **state)
{
    char runtime[] = "/tmp/tundish-test-XXXXXX", folder[48];
    char path[TND_SOCKET_PATH_BYTES];
    struct hub_config config = { .socket_path = path };
    struct hub *hub = NULL;

    (void)state;
    assert_non_null(mkdtemp(runtime));
    setenv("XDG_RUNTIME_DIR", runtime, 1);
    assert_int_equal(tnd_channel_path(NULL, path), TUNDISH_OK);
    snprintf(folder, sizeof folder, "%s/tundish", runtime);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chmod(folder, 0770), 0);
    assert_int_equal(hub_open(&config, &hub), TUNDISH_E_SYSTEM);
    assert_non_null(strstr(tnd_error_text(), "mode 0770"));
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(hub_open(&config, &hub), TUNDISH_OK);
    hub_close(hub);
    unsetenv("XDG_RUNTIME_DIR");
    rmdir(folder);
    rmdir(runtime);
}

static void
a_path_whose_lock_is_kept_is_refused(void **state)
{
    char folder[] = "/tmp/tundish-test-XXXXXX", path[48], name[64];
    struct hub_config config = { .socket_path = path };
    struct hub *hub = NULL;
    int lock;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/server", folder);
    snprintf(name, sizeof name, "%s.lock", path);
    lock = open(name, O_RDWR | O_CREAT, 0600);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    assert_int_equal(hub_open(&config, &hub), TUNDISH_E_SYSTEM);
    assert_non_null(strstr(tnd_error_text(), "server.lock has been locked by another process"));
    close(lock);
    assert_int_equal(hub_open(&config, &hub), TUNDISH_OK);
    hub_close(hub);
    rmdir(folder);
}

static void
a_path_that_is_too_long_or_no_socket_is_refused(void **state)
{
    struct hub_config config = {
        .socket_path = "/tmp/"
                       "0123456789012345678901234567890123456789012345678901234567890123456789"
                       "0123456789012345678901234567890123456789"
    };
    struct hub *hub = NULL;
    char file[] = "/tmp/tundish-test-XXXXXX";
    int descriptor = mkstemp(file);

    (void)state;
    assert_int_equal(hub_open(&config, &hub), TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tnd_error_text(), "107"));
    config.socket_path = file;
    assert_int_equal(hub_open(&config, &hub), TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tnd_error_text(), "not a socket"));
    assert_null(hub);
    close(descriptor);
    unlink(file);
}

enum { PATIENCE_MS = 300000, HELLO_MS = 200 };

static bool
is_cut_off(int socket, int timeout_ms)
{
    struct pollfd polled = { .fd = socket, .events = POLLIN };
    char byte[8];

    return poll(&polled, 1, timeout_ms) == 1 && recv(socket, byte, sizeof byte, 0) <= 0;
}

static int
visit(const struct numbers *numbers)
{
    int socket = -1;

    assert_int_equal(tnd_channel_connect(numbers_path(numbers), &socket), TUNDISH_OK);
    return socket;
}

static void
rubbish_is_cut_off(void **state)
{
    struct numbers_options options = { .idle = true };
    struct tnd_message_head heads[] = {
        { .type = TND_HELLO },   { .type = TND_PLACE }, { .type = TND_RESTART, .id = UINT64_MAX },
        { .type = TND_WELCOME }, { .type = 4711 },
    };
    struct numbers *numbers;
    char noise[20000];
    int socket;

    (void)state;
    numbers_open(&options, &numbers);
    memset(noise, 'x', sizeof noise);
    for (size_t bytes = 1; bytes <= sizeof noise; bytes *= 3) {
        socket = visit(numbers);
        assert_int_equal(send(socket, noise, bytes, MSG_NOSIGNAL), bytes);
        assert_true(is_cut_off(socket, PATIENCE_MS));
        close(socket);
    }
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        socket = visit(numbers);
        assert_int_equal(tnd_channel_send(socket, heads[i], NULL, NULL, 0), TUNDISH_OK);
        assert_true(is_cut_off(socket, PATIENCE_MS));
        close(socket);
    }
    numbers_close(numbers);
}

static void
whoever_says_nothing_is_cut_off_in_time(void **state)
{
    struct numbers_options options = { .idle = true, .hello_ns = HELLO_MS * INT64_C(1000000) };
    struct numbers *numbers;
    int64_t began_ns;
    int socket;

    (void)state;
    numbers_open(&options, &numbers);
    began_ns = tnd_clock_ns();
    socket = visit(numbers);
    assert_true(is_cut_off(socket, PATIENCE_MS));
    assert_true(tnd_clock_ns() - began_ns >= options.hello_ns);
    close(socket);
    numbers_close(numbers);
}

static tundish_status
say_hello_of(const struct numbers *numbers, const void *hello, uint32_t bytes)
{
    struct tnd_message_head head = { .type = TND_HELLO, .bytes = bytes };
    struct tnd_message answer;
    int socket = visit(numbers);
    tundish_status status = TUNDISH_OK;

    assert_int_equal(tnd_channel_send(socket, head, hello, NULL, 0), TUNDISH_OK);
    assert_int_equal(tnd_channel_wait(socket, PATIENCE_MS * INT64_C(1000000)), TUNDISH_OK);
    status = tnd_channel_receive(socket, &answer, NULL);
    if (status == TUNDISH_OK && answer.head.type == TND_REFUSED)
        status = (tundish_status)answer.head.status;
    close(socket);
    return status;
}

static tundish_status
say_hello(const struct numbers *numbers, const struct tnd_hello *hello)
{
    return say_hello_of(numbers, hello, sizeof *hello);
}

/* The server has not had a turn between the first's hello, its death, and the second's hello. */
static void
a_successor_finds_the_member_slot_free_however_soon_it_comes(void **state)
{
    struct numbers_options options = { .idle = true, .rejoin_ns = PATIENCE_MS * INT64_C(1000000) };
    struct tnd_hello hello = { .protocol_min = TND_PROTOCOL_MIN,
                               .protocol_max = TND_PROTOCOL_MAX,
                               .layout_major = TND_LAYOUT_MAJOR };
    struct tnd_message_head head = { .type = TND_HELLO, .bytes = sizeof hello };
    struct tnd_message answer;
    struct numbers *numbers;
    int first, second;

    (void)state;
    numbers_open(&options, &numbers);
    hub_stop(numbers_hub(numbers));
    first = visit(numbers);
    assert_int_equal(tnd_channel_send(first, head, &hello, NULL, 0), TUNDISH_OK);
    close(first);
    second = visit(numbers);
    assert_int_equal(tnd_channel_send(second, head, &hello, NULL, 0), TUNDISH_OK);
    assert_int_equal(hub_start(numbers_hub(numbers)), TUNDISH_OK);
    assert_int_equal(tnd_channel_wait(second, PATIENCE_MS * INT64_C(1000000)), TUNDISH_OK);
    assert_int_equal(tnd_channel_receive(second, &answer, NULL), TUNDISH_OK);
    assert_int_equal(answer.head.type, TND_WELCOME);
    close(second);
    numbers_close(numbers);
}

static void
versions_that_do_not_meet_are_refused_with_a_reason(void **state)
{
    struct numbers_options options = { .idle = true };
    struct tnd_hello hello = { .protocol_min = TND_PROTOCOL_MIN,
                               .protocol_max = TND_PROTOCOL_MAX,
                               .layout_major = TND_LAYOUT_MAJOR };
    struct numbers *numbers;

    (void)state;
    numbers_open(&options, &numbers);
    assert_int_equal(say_hello(numbers, &hello), TUNDISH_OK);
    hello.layout_major++;
    assert_int_equal(say_hello(numbers, &hello), TUNDISH_E_LAYOUT);
    hello.layout_major--;
    hello.protocol_min = hello.protocol_max = TND_PROTOCOL_MAX + 1;
    assert_int_equal(say_hello(numbers, &hello), TUNDISH_E_LAYOUT);
    hello.protocol_min = TND_PROTOCOL_MIN;
    assert_int_equal(say_hello(numbers, &hello), TUNDISH_OK);
    memset(hello.group, 'g', sizeof hello.group);
    assert_int_equal(say_hello(numbers, &hello), TUNDISH_E_SERVER_GONE);
    memset(hello.group, 0, sizeof hello.group);
    hello.flags = TND_HELLO_PLACE;
    hello.place_bytes = UINT64_MAX;
    assert_int_equal(say_hello(numbers, &hello), TUNDISH_E_PLACE);
    numbers_close(numbers);
}

static void
libraries_older_and_newer_than_the_server_are_let_in(void **state)
{
    struct numbers_options options = { .idle = true };
    struct {
        struct tnd_hello known;
        uint64_t newer;
    } hello = { .known = { .protocol_min = TND_PROTOCOL_MIN,
                           .protocol_max = TND_PROTOCOL_MAX,
                           .layout_major = TND_LAYOUT_MAJOR },
                .newer = UINT64_MAX };
    const uint32_t first = offsetof(struct tnd_hello, groups_present);
    struct numbers *numbers;

    (void)state;
    numbers_open(&options, &numbers);
    for (uint32_t bytes = first; bytes <= sizeof hello; bytes += 8)
        assert_int_equal(say_hello_of(numbers, &hello, bytes), TUNDISH_OK);
    assert_int_equal(say_hello_of(numbers, &hello, first - 8), TUNDISH_E_SERVER_GONE);
    numbers_close(numbers);
}

static void
descriptors_from_a_visitor_are_not_taken(void **state)
{
    struct numbers_options options = { .idle = true };
    struct tnd_message_head head = { .type = TND_HELLO };
    struct numbers *numbers;
    int pipes[2], socket, passed;
    socklen_t bytes = sizeof passed;
    tundish_status status;

    (void)state;
    numbers_open(&options, &numbers);
    assert_int_equal(pipe(pipes), 0);
    socket = visit(numbers);
    status = tnd_channel_send(socket, head, NULL, &pipes[1], 1);
    if (getsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &passed, &bytes) == 0)
        assert_int_equal(status, TUNDISH_E_SYSTEM);
    else /* a kernel that cannot refuse them */
        assert_true(status == TUNDISH_OK && is_cut_off(socket, PATIENCE_MS));
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &head, 1), 0);
    close(pipes[0]);
    close(socket);
    numbers_close(numbers);
}

TEST_FILE(test_hub)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_server_on_a_live_socket_is_refused),
        cmocka_unit_test(the_socket_of_a_dead_server_is_replaced_and_the_folder_is_private),
        cmocka_unit_test(the_default_folder_must_be_ours_alone),
        cmocka_unit_test(a_path_whose_lock_is_kept_is_refused),
        cmocka_unit_test(a_path_that_is_too_long_or_no_socket_is_refused),
        cmocka_unit_test(rubbish_is_cut_off),
        cmocka_unit_test(whoever_says_nothing_is_cut_off_in_time),
        cmocka_unit_test(a_successor_finds_the_member_slot_free_however_soon_it_comes),
        cmocka_unit_test(versions_that_do_not_meet_are_refused_with_a_reason),
        cmocka_unit_test(libraries_older_and_newer_than_the_server_are_let_in),
        cmocka_unit_test(descriptors_from_a_visitor_are_not_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
