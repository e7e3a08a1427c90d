/* test_group.c - trainers of other users, in the server's group and out of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/status.h"
#include "deliver/socket/group.h"
#include "deliver/socket/hub.h"
#include "remove_tree.h"
#include "shm/channel.h"
#include "unit/test_file.h"

enum { STRANGER = 4711, GROUP = 4712, OTHER = 4713, PATH_ROOM = 64 };
static const int64_t PATIENCE_NS = INT64_C(300000000000);

/* What a trainer finds. */
enum welcome { KEPT_OUT, CUT_OFF, MAY_NOT_CONTROL, LET_IN };

struct place {
    char folder[32], path[PATH_ROOM];
    gid_t group;
    struct hub *hub;
};

static tundish_status
obey(void *user, enum tnd_control what, char *text, size_t text_bytes)
{
    (void)user;
    (void)what;
    snprintf(text, text_bytes, "obeyed");
    return TUNDISH_OK;
}

static void
open_place(struct place *place, bool shared)
{
    struct hub_config config = { .socket_path = place->path,
                                 .group = shared ? &place->group : NULL,
                                 .control = obey };

    place->group = GROUP;
    strcpy(place->folder, "/tmp/tundish-test-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    assert_int_equal(chmod(place->folder, 0755), 0);
    snprintf(place->path, sizeof place->path, "%s/server", place->folder);
    assert_int_equal(hub_open(&config, &place->hub), TUNDISH_OK);
    assert_int_equal(hub_start(place->hub), TUNDISH_OK);
}

static void
close_place(struct place *place)
{
    hub_close(place->hub);
    remove_tree(place->folder);
}

/* Asks for control, which is answered at once. */
static enum welcome
ask(const char *path)
{
    const struct tnd_message_head head = { .type = TND_CONTROL, .id = TND_CONTROL_PAUSE };
    struct tnd_message answer;
    int socket;

    setenv("TUNDISH_SERVER_UID", "0", 1);
    if (tnd_channel_connect(path, &socket) != TUNDISH_OK)
        return KEPT_OUT;
    if (tnd_channel_send(socket, head, NULL, NULL, 0) != TUNDISH_OK ||
        tnd_channel_wait(socket, PATIENCE_NS) != TUNDISH_OK ||
        tnd_channel_receive(socket, &answer, NULL) != TUNDISH_OK)
        return CUT_OFF;
    return answer.head.status == TUNDISH_OK ? LET_IN : MAY_NOT_CONTROL;
}

/* In a process of this user, whose groups these are. */
static enum welcome
ask_as(const char *path, uid_t user, gid_t own, gid_t more)
{
    int result;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        if (setgroups(1, &more) != 0 || setgid(own) != 0 || setuid(user) != 0)
            _exit(99);
        _exit((int)ask(path));
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    return (enum welcome)WEXITSTATUS(result);
}

static void
members_of_the_group_come_in_and_do_not_control(void **state)
{
    struct place place;
    struct stat about;

    (void)state;
    if (geteuid() != 0)
        skip();
    open_place(&place, true);
    assert_int_equal(stat(place.path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0660);
    assert_int_equal(about.st_gid, GROUP);
    assert_int_equal(ask_as(place.path, STRANGER, GROUP, OTHER), MAY_NOT_CONTROL);
    assert_int_equal(ask_as(place.path, STRANGER, OTHER, GROUP), MAY_NOT_CONTROL);
    assert_int_equal(ask_as(place.path, STRANGER, OTHER, OTHER), KEPT_OUT);
    assert_int_equal(ask_as(place.path, 0, OTHER, OTHER), LET_IN);
    /* However the socket came to be open to all. */
    assert_int_equal(chmod(place.path, 0666), 0);
    assert_int_equal(ask_as(place.path, STRANGER, OTHER, OTHER), CUT_OFF);
    assert_int_equal(ask_as(place.path, STRANGER, OTHER, GROUP), MAY_NOT_CONTROL);
    close_place(&place);
}

static void
without_a_group_other_users_stay_out(void **state)
{
    struct place place;

    (void)state;
    if (geteuid() != 0)
        skip();
    open_place(&place, false);
    assert_int_equal(ask_as(place.path, STRANGER, GROUP, GROUP), KEPT_OUT);
    assert_int_equal(chmod(place.path, 0666), 0);
    assert_int_equal(ask_as(place.path, STRANGER, GROUP, GROUP), CUT_OFF);
    close_place(&place);
}

static void
a_group_that_is_not_there_is_named(void **state)
{
    gid_t group = GROUP;

    (void)state;
    assert_int_equal(group_find("no-such-group", &group), TUNDISH_E_ARGUMENT);
    assert_string_equal(tnd_error_text(), "--group no-such-group: there is no such group");
    assert_int_equal(group, GROUP);
    assert_int_equal(group_find("root", &group), TUNDISH_OK);
    assert_int_equal(group, 0);
}

TEST_FILE(test_group)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_the_group_come_in_and_do_not_control),
        cmocka_unit_test(without_a_group_other_users_stay_out),
        cmocka_unit_test(a_group_that_is_not_there_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
