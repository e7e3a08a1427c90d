/* test_read_write.c - bytes of a file, into one buffer and into two, and out of many. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/read_write.h"
#include "unit/test_file.h"

static const char TEXT[] = "0123456789";

static int
open_text(void **state)
{
    static int file;

    file = memfd_create("text", MFD_CLOEXEC);
    *state = &file;
    return write(file, TEXT, 10) == 10 ? 0 : -1;
}

static int
close_text(void **state)
{
    return close(*(int *)*state);
}

/* What comes into buffers of these sizes, one after the other; the rest stays `-`. */
static size_t
read_both(int file, size_t first, size_t second, uint64_t offset, char ret_text[16])
{
    char a[16] = "---------------", b[16] = "---------------";
    size_t got = 99;

    assert_int_equal(
        tnd_read_both_at(file, (struct iovec[2]){ { a, first }, { b, second } }, offset, &got), 0);
    assert_int_equal(a[first], '-');
    assert_int_equal(b[second], '-');
    memcpy(ret_text, a, first);
    memcpy(ret_text + first, b, second);
    ret_text[first + second] = '\0';
    return got;
}

static void
what_does_not_fit_the_first_goes_to_the_second(void **state)
{
    int file = *(int *)*state;
    char text[16];

    assert_int_equal(read_both(file, 4, 3, 2, text), 7);
    assert_string_equal(text, "2345678");
    assert_int_equal(read_both(file, 4, 0, 2, text), 4);
    assert_string_equal(text, "2345");
    assert_int_equal(read_both(file, 0, 4, 6, text), 4);
    assert_string_equal(text, "6789");
}

static void
at_the_end_of_the_file_it_is_less(void **state)
{
    int file = *(int *)*state;
    char text[16];

    assert_int_equal(read_both(file, 4, 4, 4, text), 6);
    assert_string_equal(text, "456789--");
    assert_int_equal(read_both(file, 6, 2, 7, text), 3);
    assert_string_equal(text, "789-----");
    assert_int_equal(read_both(file, 3, 2, 10, text), 0);
    assert_string_equal(text, "-----");
}

static void
an_error_is_the_kernel_s(void **state)
{
    char byte;
    size_t got = 99;

    (void)state;
    assert_int_equal(tnd_read_both_at(-1, (struct iovec[2]){ { &byte, 1 }, { &byte, 1 } }, 0, &got),
                     EBADF);
    assert_int_equal(got, 0);
    assert_int_equal(tnd_write_parts_at(-1, &(struct iovec){ &byte, 1 }, 1, 0), EBADF);
}

/* More than a system call takes; every third one has none. */
static void
parts_are_written_one_after_another(void **state)
{
    enum { PARTS = 3 * IOV_MAX };
    static struct iovec parts[PARTS];
    static char written[PARTS], expected[PARTS];
    int file = *(int *)*state;
    size_t count = 0, got = 0;

    for (size_t i = 0; i < PARTS; i++) {
        parts[i] = (struct iovec){ (char *)(uintptr_t)&TEXT[i % 10], i % 3 };
        for (size_t k = 0; k < i % 3 && i % 10 + k < 10; k++)
            expected[count++] = TEXT[i % 10 + k];
        if (i % 10 == 9 && i % 3 == 2)
            parts[i].iov_len = 1;
    }
    assert_int_equal(tnd_write_parts_at(file, parts, PARTS, 5), 0);
    assert_int_equal(tnd_read_at(file, written, PARTS, 5, &got), 0);
    assert_int_equal(got, count);
    assert_memory_equal(written, expected, count);
    assert_int_equal(tnd_write_parts_at(file, parts, 0, 0), 0);
}

TEST_FILE(test_read_write)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_does_not_fit_the_first_goes_to_the_second, open_text,
                                        close_text),
        cmocka_unit_test_setup_teardown(at_the_end_of_the_file_it_is_less, open_text, close_text),
        cmocka_unit_test(an_error_is_the_kernel_s),
        cmocka_unit_test_setup_teardown(parts_are_written_one_after_another, open_text, close_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
