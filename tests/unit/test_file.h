/* test_file.h - the tests of one file, as a function that the program of its folder calls.
 *
 * Each test_NAME.c ends with
 *
 *     TEST_FILE(test_NAME)
 *     {
 *         const struct CMUnitTest tests[] = { ... };
 *
 *         return cmocka_run_group_tests(tests, NULL, NULL);
 *     }
 *
 * and its name stands in meson.build, in the list of its folder. */
#ifndef UNIT_TEST_FILE_H
#define UNIT_TEST_FILE_H

#define TEST_FILE(name)                                                                            \
    int name(void);                                                                                \
    int name(void)

#endif
