/* test_disk.c - small objects in the cache on disk, what damages them, and what time does. */
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "remote/disk.h"
#include "unit/test_file.h"

enum { PART_BYTES = 4096, OBJECT_BYTES = 100, FILE_ROOM = 2 * PART_BYTES };

#define SECOND_NS INT64_C(1000000000)
#define ADDRESS "http://store/bucket/a"

static int64_t wall_ns;

static int64_t
machine_ns(void *context)
{
    (void)context;
    return 0;
}

static int64_t
read_wall(void *context)
{
    (void)context;
    return wall_ns;
}

struct world {
    char folder[64];
    struct disk *disk;
    uint8_t object[OBJECT_BYTES], room[FILE_ROOM];
    size_t asked; /* for room, most recently */
};

static void
open_again(struct world *world)
{
    disk_close(world->disk);
    assert_int_equal(disk_open(world->folder, PART_BYTES, 1 << 20, &world->disk), TUNDISH_OK);
}

/* The clock starts a little before the machine's, whose times files get that somebody changes. */
static void
open_world(struct world *world)
{
    static const struct tnd_clock clock = { .now_ns = machine_ns, .wall_ns = read_wall };

    *world = (struct world){ .folder = "/tmp/tundish-test-XXXXXX" };
    assert_non_null(mkdtemp(world->folder));
    wall_ns = tnd_clock_wall_ns() - 10 * SECOND_NS;
    tnd_clock_install(&clock);
    open_again(world);
    for (size_t i = 0; i < OBJECT_BYTES; i++)
        world->object[i] = (uint8_t)(37 * i);
}

static void
close_world(struct world *world)
{
    glob_t found;
    char pattern[80];

    disk_close(world->disk);
    snprintf(pattern, sizeof pattern, "%s/*/*", world->folder);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            unlink(found.gl_pathv[i]);
    globfree(&found);
    snprintf(pattern, sizeof pattern, "%s/*", world->folder);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            remove(found.gl_pathv[i]);
    globfree(&found);
    assert_int_equal(rmdir(world->folder), 0);
    tnd_clock_install(NULL);
}

static void
put(struct world *world, const char *address, size_t bytes)
{
    const struct disk_kept kept = {
        .address = address,
        .identity = { .is_known = true, .bytes = bytes, .tag = "\"t\"" },
        .bytes = bytes,
    };

    disk_put(world->disk, &kept, world->object);
}

static void *
take_room(void *context, size_t bytes)
{
    struct world *world = context;

    assert_in_range(bytes, 1, FILE_ROOM);
    world->asked = bytes;
    memset(world->room, 0xA5, FILE_ROOM);
    return world->room;
}

static bool
is_read(struct world *world, const char *address, size_t bytes)
{
    const struct disk_room room = { take_room, world };
    struct disk_small found;

    world->asked = 0;
    if (!disk_read_small(world->disk, address, &room, &found))
        return false;
    assert_int_equal(found.bytes.size, bytes);
    assert_memory_equal(found.bytes.data, world->object, bytes);
    return true;
}

/* The only entry's file. */
static int
open_entry(const struct world *world)
{
    char pattern[80];
    glob_t found;
    int descriptor;

    snprintf(pattern, sizeof pattern, "%s/*/*", world->folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    descriptor = open(found.gl_pathv[0], O_RDWR | O_CLOEXEC);
    assert_true(descriptor >= 0);
    globfree(&found);
    return descriptor;
}

static int64_t
time_of_entry(const struct world *world)
{
    struct stat about;
    int descriptor = open_entry(world);

    assert_int_equal(fstat(descriptor, &about), 0);
    close(descriptor);
    return about.st_mtim.tv_sec * SECOND_NS + about.st_mtim.tv_nsec;
}

/* As a broken disk does (`is_silent`), or a program. */
static void
flip(const struct world *world, off_t at, bool is_silent)
{
    int descriptor = open_entry(world);
    struct stat about;
    uint8_t byte;

    assert_int_equal(fstat(descriptor, &about), 0);
    assert_int_equal(pread(descriptor, &byte, 1, at), 1);
    byte ^= 4;
    assert_int_equal(pwrite(descriptor, &byte, 1, at), 1);
    if (is_silent) {
        struct timespec times[2] = { about.st_atim, about.st_mtim };

        assert_int_equal(futimens(descriptor, times), 0);
    }
    close(descriptor);
}

static void
small_objects_are_found_by_their_address(void **state)
{
    struct world world;

    (void)state;
    open_world(&world);
    assert_false(is_read(&world, ADDRESS, OBJECT_BYTES));
    put(&world, ADDRESS, OBJECT_BYTES);
    put(&world, ADDRESS "b", 0);
    assert_true(is_read(&world, ADDRESS, OBJECT_BYTES));
    assert_true(is_read(&world, ADDRESS "b", 0));
    assert_false(is_read(&world, ADDRESS "c", OBJECT_BYTES));
    close_world(&world);
}

static void
another_run_s_are_asked_for_again(void **state)
{
    struct world world;

    (void)state;
    open_world(&world);
    put(&world, ADDRESS, OBJECT_BYTES);
    open_again(&world);
    assert_true(is_read(&world, ADDRESS, OBJECT_BYTES)); /* of a server that began with it */
    wall_ns += SECOND_NS;
    open_again(&world);
    assert_false(is_read(&world, ADDRESS, OBJECT_BYTES));
    put(&world, ADDRESS, OBJECT_BYTES);
    assert_true(is_read(&world, ADDRESS, OBJECT_BYTES));
    close_world(&world);
}

static void
any_byte_that_is_changed_is_noticed(void **state)
{
    struct world world;
    size_t file_bytes;

    (void)state;
    open_world(&world);
    put(&world, ADDRESS, OBJECT_BYTES);
    assert_true(is_read(&world, ADDRESS, OBJECT_BYTES));
    file_bytes = world.asked;
    wall_ns += 20 * SECOND_NS;
    for (size_t i = 0; i < file_bytes; i++) {
        flip(&world, (off_t)i, false);
        assert_false(is_read(&world, ADDRESS, OBJECT_BYTES));
        put(&world, ADDRESS, OBJECT_BYTES);
        assert_true(is_read(&world, ADDRESS, OBJECT_BYTES));
    }
    close_world(&world);
}

static void
a_change_that_left_it_right_is_taken(void **state)
{
    struct world world;

    (void)state;
    open_world(&world);
    put(&world, ADDRESS, OBJECT_BYTES);
    flip(&world, 5, false);
    flip(&world, 5, false);
    wall_ns += 20 * SECOND_NS;
    assert_true(is_read(&world, ADDRESS, OBJECT_BYTES));
    assert_int_equal(time_of_entry(&world), wall_ns / 1000000 * 1000000);
    close_world(&world);
}

static void
files_of_another_length_are_none(void **state)
{
    static const off_t lengths[] = { 0, 1, OBJECT_BYTES, 400, PART_BYTES, (off_t)1 << 40 };
    struct world world;

    (void)state;
    open_world(&world);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int descriptor;

        put(&world, ADDRESS, OBJECT_BYTES);
        descriptor = open_entry(&world);
        assert_int_equal(ftruncate(descriptor, lengths[i]), 0);
        close(descriptor);
        assert_false(is_read(&world, ADDRESS, OBJECT_BYTES));
    }
    assert_int_equal(world.asked, 0); /* no room is taken for so much */
    close_world(&world);
}

static void
what_no_time_tells_is_noticed_in_an_hour(void **state)
{
    struct world world;

    (void)state;
    open_world(&world);
    put(&world, ADDRESS, OBJECT_BYTES);
    flip(&world, 5, true);
    wall_ns += 3600 * SECOND_NS;
    assert_false(is_read(&world, ADDRESS, OBJECT_BYTES));
    close_world(&world);
}

static void
its_use_is_noted_once_an_hour(void **state)
{
    struct world world;
    int64_t first_ns;

    (void)state;
    open_world(&world);
    put(&world, ADDRESS, OBJECT_BYTES);
    first_ns = time_of_entry(&world);
    wall_ns += 3599 * SECOND_NS;
    assert_true(is_read(&world, ADDRESS, OBJECT_BYTES));
    assert_int_equal(time_of_entry(&world), first_ns);
    wall_ns += SECOND_NS;
    assert_true(is_read(&world, ADDRESS, OBJECT_BYTES));
    assert_int_equal(time_of_entry(&world), first_ns + 3600 * SECOND_NS);
    close_world(&world);
}

static void
a_folder_that_others_may_write_to_is_refused(void **state)
{
    static const mode_t modes[] = { 0777, 01777, 0775, 0757 };
    struct world world;
    struct disk *disk = NULL;

    (void)state;
    open_world(&world);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(world.folder, modes[i]), 0);
        assert_int_equal(disk_open(world.folder, PART_BYTES, 1 << 20, &disk), TUNDISH_E_SYSTEM);
        assert_non_null(strstr(tnd_error_text(), "remote.cache"));
        assert_non_null(strstr(tnd_error_text(), "go-w"));
    }
    assert_int_equal(chmod(world.folder, 0755), 0);
    open_again(&world);
    if (chown(world.folder, 12345, 12345) == 0) { /* only root may */
        assert_int_equal(disk_open(world.folder, PART_BYTES, 1 << 20, &disk), TUNDISH_E_SYSTEM);
        assert_non_null(strstr(tnd_error_text(), "12345"));
    }
    close_world(&world);
}

static void
a_part_that_another_could_have_written_is_not_read(void **state)
{
    struct world world;
    int descriptor;

    (void)state;
    open_world(&world);
    put(&world, ADDRESS, OBJECT_BYTES);
    descriptor = open_entry(&world);
    assert_int_equal(fchmod(descriptor, 0602), 0);
    assert_false(is_read(&world, ADDRESS, OBJECT_BYTES));
    assert_int_equal(fchmod(descriptor, 0600), 0);
    assert_true(is_read(&world, ADDRESS, OBJECT_BYTES));
    if (fchown(descriptor, 12345, 12345) == 0) /* only root may */
        assert_false(is_read(&world, ADDRESS, OBJECT_BYTES));
    close(descriptor);
    close_world(&world);
}

/* Its maker has it open, and could go on writing after it is kept. */
static void
a_new_file_of_another_is_not_written_into(void **state)
{
    struct world world;
    struct disk_claim claim;
    struct stat about;
    char path[128];

    (void)state;
    open_world(&world);
    assert_int_equal(disk_claim(world.disk, ADDRESS, 0, &claim), DISK_YOURS);
    snprintf(path, sizeof path, "%s/%s", world.folder, claim.name);
    close(claim.descriptor);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(disk_claim(world.disk, ADDRESS, 0, &claim), DISK_BUSY);
    assert_int_equal(disk_claim(world.disk, ADDRESS, 0, &claim), DISK_YOURS);
    assert_int_equal(fstat(claim.descriptor, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0600);
    close(claim.descriptor);
    close_world(&world);
}

/* As it is opened for a slot, whose reads need no more of the disk than its descriptor. */
static bool
is_taken(const struct world *world, const char *tag)
{
    struct object_identity identity = { .is_known = true, .bytes = OBJECT_BYTES };
    const struct disk_wanted wanted = { .address = ADDRESS, .identity = &identity };
    uint8_t found[OBJECT_BYTES];
    int descriptor;

    strcpy(identity.tag, tag);
    if (!disk_take(world->disk, &wanted, &descriptor))
        return false;
    assert_int_equal(pread(descriptor, found, sizeof found, 0), sizeof found);
    assert_memory_equal(found, world->object, sizeof found);
    close(descriptor);
    return true;
}

static void
parts_are_taken_of_their_version_alone(void **state)
{
    struct object_identity identity;
    struct world world;
    int64_t first_ns;

    (void)state;
    open_world(&world);
    put(&world, ADDRESS, OBJECT_BYTES);
    assert_true(disk_identity(world.disk, ADDRESS, &identity));
    assert_string_equal(identity.tag, "\"t\"");
    assert_int_equal(identity.bytes, OBJECT_BYTES);
    assert_true(is_taken(&world, "\"t\""));
    assert_false(is_taken(&world, "\"u\""));
    first_ns = time_of_entry(&world);
    wall_ns += 3599 * SECOND_NS;
    assert_true(is_taken(&world, "\"t\""));
    assert_int_equal(time_of_entry(&world), first_ns);
    wall_ns += SECOND_NS;
    assert_true(is_taken(&world, "\"t\""));
    assert_int_not_equal(time_of_entry(&world), first_ns);
    flip(&world, 5, false);
    assert_false(is_taken(&world, "\"t\""));
    close_world(&world);
}

TEST_FILE(test_disk)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_objects_are_found_by_their_address),
        cmocka_unit_test(another_run_s_are_asked_for_again),
        cmocka_unit_test(any_byte_that_is_changed_is_noticed),
        cmocka_unit_test(a_change_that_left_it_right_is_taken),
        cmocka_unit_test(files_of_another_length_are_none),
        cmocka_unit_test(what_no_time_tells_is_noticed_in_an_hour),
        cmocka_unit_test(a_folder_that_others_may_write_to_is_refused),
        cmocka_unit_test(a_part_that_another_could_have_written_is_not_read),
        cmocka_unit_test(a_new_file_of_another_is_not_written_into),
        cmocka_unit_test(its_use_is_noted_once_an_hour),
        cmocka_unit_test(parts_are_taken_of_their_version_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
