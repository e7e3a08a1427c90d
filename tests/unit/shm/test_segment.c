/* test_segment.c - shared memory that leaves nothing behind and cannot be written by its readers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/status.h"
#include "shm/segment.h"
#include "unit/test_file.h"

static unsigned
count_names(void)
{
    DIR *folder = opendir("/dev/shm");
    struct dirent *entry;
    char own[32];
    unsigned count = 0;

    snprintf(own, sizeof own, "tundish-%ld-", (long)getpid());
    while ((entry = readdir(folder)) != NULL)
        count += strncmp(entry->d_name, own, strlen(own)) == 0;
    closedir(folder);
    return count;
}

static void
check_read_only(int descriptor, uint64_t bytes)
{
    assert_ptr_equal(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
                     MAP_FAILED);
    assert_int_equal(write(descriptor, "x", 1), -1);
    assert_int_not_equal(ftruncate(descriptor, 0), 0);
}

static void
try_segment(bool memfd)
{
    struct tnd_segment segment;
    void *seen;

    assert_int_equal(tnd_segment_create(1 << 20, memfd, true, &segment), TUNDISH_OK);
    assert_int_equal(segment.is_memfd, memfd);
    assert_int_equal(count_names(), 0);
    check_read_only(segment.read_descriptor, 1 << 20);
    assert_int_equal(tnd_segment_map(segment.read_descriptor, 1 << 20, false, &seen), TUNDISH_OK);
    segment.bytes[4711] = 42;
    assert_int_equal(((const uint8_t *)seen)[4711], 42);
    assert_int_equal(((const uint8_t *)seen)[(1 << 20) - 1], 0);
    assert_int_equal(mprotect(seen, 1 << 20, PROT_READ | PROT_WRITE), -1);
    tnd_segment_unmap(seen, 1 << 20);
    assert_int_equal(tnd_segment_map(segment.read_descriptor, 1 << 19, false, &seen),
                     TUNDISH_E_CORRUPT);
    tnd_segment_close(&segment);
    tnd_segment_close(&segment);
}

static void
shm_has_no_name_and_its_readers_cannot_write(void **state)
{
    (void)state;
    try_segment(false);
}

static void
memfd_is_sealed(void **state)
{
    (void)state;
    try_segment(true);
}

static void
what_dev_shm_cannot_hold_goes_to_memfd_or_says_what_is_there(void **state)
{
    struct tnd_segment segment;

    (void)state;
    assert_int_equal(tnd_segment_create(UINT64_C(1) << 46, false, false, &segment),
                     TUNDISH_E_MEMORY);
    assert_non_null(strstr(tnd_error_text(), "deliver.slots"));
    assert_int_equal(count_names(), 0);
}

static void
a_returns_page_may_be_written_but_not_resized(void **state)
{
    struct tnd_segment segment;
    void *seen;

    (void)state;
    assert_int_equal(tnd_segment_create_returns(4096, &segment), TUNDISH_OK);
    assert_int_equal(tnd_segment_map(segment.read_descriptor, 4096, true, &seen), TUNDISH_OK);
    ((uint8_t *)seen)[7] = 9;
    assert_int_equal(segment.bytes[7], 9);
    assert_int_not_equal(ftruncate(segment.read_descriptor, 0), 0);
    tnd_segment_unmap(seen, 4096);
    tnd_segment_close(&segment);
}

static void
names_of_the_dead_are_swept_and_those_of_the_living_are_not(void **state)
{
    char dead[64], living[64];
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    snprintf(dead, sizeof dead, "/tundish-%ld-0123", (long)child);
    snprintf(living, sizeof living, "/tundish-%ld-0123", (long)getpid());
    close(shm_open(dead, O_CREAT | O_RDWR, 0600));
    close(shm_open(living, O_CREAT | O_RDWR, 0600));
    tnd_segment_sweep(); /* how many is not known: a server that starts beside us sweeps, too */
    assert_int_equal(shm_open(dead, O_RDONLY, 0), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(shm_unlink(living), 0);
}

TEST_FILE(test_segment)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shm_has_no_name_and_its_readers_cannot_write),
        cmocka_unit_test(memfd_is_sealed),
        cmocka_unit_test(what_dev_shm_cannot_hold_goes_to_memfd_or_says_what_is_there),
        cmocka_unit_test(a_returns_page_may_be_written_but_not_resized),
        cmocka_unit_test(names_of_the_dead_are_swept_and_those_of_the_living_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
