/* test_trust.c - what another user has put where a server is looked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/status.h"
#include "remove_tree.h"
#include "shm/channel.h"
#include "shm/stats.h"
#include "unit/test_file.h"

enum { STRANGER = 65534, PATH_ROOM = 64 };

struct place {
    char runtime[32];
    char folder[PATH_ROOM];
    char path[TND_SOCKET_PATH_BYTES];
};

static void
open_place(struct place *place)
{
    strcpy(place->runtime, "/tmp/tundish-test-XXXXXX");
    assert_non_null(mkdtemp(place->runtime));
    setenv("XDG_RUNTIME_DIR", place->runtime, 1);
    unsetenv("TUNDISH_SERVER");
    unsetenv("TUNDISH_SERVER_UID");
    snprintf(place->folder, sizeof place->folder, "%s/tundish", place->runtime);
    assert_int_equal(tnd_channel_path(NULL, place->path), TUNDISH_OK);
}

static void
the_default_folder_must_be_ours_alone(void **state)
{
    struct tnd_stats_file file;
    struct place place;
    int socket;

    (void)state;
    open_place(&place);
    assert_int_equal(tnd_channel_connect(place.path, &socket), TUNDISH_E_SERVER_GONE);
    assert_int_equal(mkdir(place.folder, 0700), 0);
    assert_int_equal(tnd_channel_connect(place.path, &socket), TUNDISH_E_SERVER_GONE);
    assert_int_equal(chmod(place.folder, 0755), 0);
    assert_int_equal(tnd_channel_connect(place.path, &socket), TUNDISH_E_SYSTEM);
    assert_non_null(strstr(tnd_error_text(), "mode 0755"));
    assert_int_equal(tnd_stats_open_server(place.path, &file), TUNDISH_E_SYSTEM);
    assert_int_equal(rmdir(place.folder), 0);
    assert_int_equal(symlink(place.runtime, place.folder), 0);
    assert_int_equal(tnd_channel_connect(place.path, &socket), TUNDISH_E_SYSTEM);
    assert_int_equal(unlink(place.folder), 0);
    if (geteuid() == 0) {
        assert_int_equal(mkdir(place.folder, 0700), 0);
        assert_int_equal(chown(place.folder, STRANGER, STRANGER), 0);
        assert_int_equal(tnd_channel_connect(place.path, &socket), TUNDISH_E_SYSTEM);
        assert_non_null(strstr(tnd_error_text(), "owner 65534"));
    }
    remove_tree(place.runtime);
}

static void
a_folder_that_was_named_may_be_of_any_mode(void **state)
{
    struct place place;
    char named[PATH_ROOM + 8];
    int socket;

    (void)state;
    open_place(&place);
    assert_int_equal(chmod(place.runtime, 0755), 0);
    snprintf(named, sizeof named, "%s/server", place.runtime);
    assert_int_equal(tnd_channel_connect(named, &socket), TUNDISH_E_SERVER_GONE);
    remove_tree(place.runtime);
}

/* Listens until it is killed. */
static pid_t
start_stranger(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int ready[2];
    pid_t child;
    char byte;

    memcpy(address.sun_path, path, strlen(path) + 1);
    assert_int_equal(pipe(ready), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);

        if (setuid(STRANGER) != 0 ||
            bind(listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
            listen(listener, 8) != 0 || write(ready[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void
another_users_server_is_refused_unless_the_user_is_named(void **state)
{
    struct tnd_stats_file file;
    struct place place;
    char named[PATH_ROOM], figures[PATH_ROOM + 8];
    int socket, descriptor;
    pid_t stranger;

    (void)state;
    if (geteuid() != 0)
        skip();
    open_place(&place);
    assert_int_equal(chmod(place.runtime, 0777), 0);
    snprintf(named, sizeof named, "%s/server", place.runtime);
    snprintf(figures, sizeof figures, "%s.stats", named);
    stranger = start_stranger(named);
    descriptor = open(figures, O_WRONLY | O_CREAT, 0644);
    assert_int_equal(fchown(descriptor, STRANGER, STRANGER), 0);
    close(descriptor);
    assert_int_equal(tnd_channel_connect(named, &socket), TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tnd_error_text(), "TUNDISH_SERVER_UID=65534"));
    assert_int_equal(tnd_stats_open_server(named, &file), TUNDISH_E_SYSTEM);
    setenv("TUNDISH_SERVER_UID", "1", 1);
    assert_int_equal(tnd_channel_connect(named, &socket), TUNDISH_E_ARGUMENT);
    setenv("TUNDISH_SERVER_UID", "65534", 1);
    assert_int_equal(tnd_channel_connect(named, &socket), TUNDISH_OK);
    close(socket);
    assert_int_equal(tnd_stats_open_server(named, &file), TUNDISH_OK);
    tnd_stats_close(&file);
    kill(stranger, SIGKILL);
    waitpid(stranger, NULL, 0);
    remove_tree(place.runtime);
}

TEST_FILE(test_trust)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_folder_must_be_ours_alone),
        cmocka_unit_test(a_folder_that_was_named_may_be_of_any_mode),
        cmocka_unit_test(another_users_server_is_refused_unless_the_user_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
