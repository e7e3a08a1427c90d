/* run_files.c - the tests of one folder: PROGRAM [--test PATTERN] [FILE ...]
 *
 * Runs the files named (test_order_take), by default all, and of these the tests that match the
 * pattern, which may hold * and ?. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "left_over.h"

/* UNIT_TESTS is FILE_OF(test_a) FILE_OF(test_b) ..., as meson.build lists them. */
#define FILE_OF(name) int name(void);
UNIT_TESTS
#undef FILE_OF

#define FILE_OF(name) { #name, name },
static const struct {
    const char *name;
    int (*run)(void);
} files[] = { UNIT_TESTS };

enum { FILES = sizeof files / sizeof *files };

/* Run the file of that name. False: there is none. */
static bool
run_named(const char *name, int *failed)
{
    for (int i = 0; i < FILES; i++)
        if (strcmp(files[i].name, name) == 0) {
            *failed += files[i].run();
            return true;
        }
    return false;
}

int
main(int argc, char **argv)
{
    int failed = 0, at = 1;

    left_over_remove_at_end();
    if (argc > 2 && strcmp(argv[1], "--test") == 0) {
        cmocka_set_test_filter(argv[2]);
        at = 3;
    }
    for (int i = at; i < argc; i++)
        if (!run_named(argv[i], &failed)) {
            fprintf(stderr, "%s: no file %s here; there are:\n", argv[0], argv[i]);
            for (int k = 0; k < FILES; k++)
                fprintf(stderr, "  %s\n", files[k].name);
            return 2;
        }
    for (int i = 0; at == argc && i < FILES; i++)
        failed += files[i].run();
    return failed != 0;
}
