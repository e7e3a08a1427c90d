/* test_vocab.c - which texts and lists are vocabularies, and when a table is built again. */
#include "unit/test_file.h"
#include "vocab_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <time.h>

static void
refuses(const char *bytes, size_t count, enum vocab_keys keys, const char *const *said)
{
    struct path path = write_text("refused.txt", bytes, count);
    struct vocab *vocab = NULL;

    assert_int_equal(vocab_open_file(cache, path.text, keys, &vocab), TUNDISH_E_PIPELINE);
    assert_null(vocab);
    assert_non_null(strstr(tnd_error_text(), path.text));
    for (; *said != NULL; said++)
        if (strstr(tnd_error_text(), *said) == NULL)
            fail_msg("\"%s\" is not in: %s", *said, tnd_error_text());
}

#define REFUSES(text, keys, ...)                                                                   \
    refuses(text, sizeof text - 1, keys, (const char *const[]){ __VA_ARGS__, NULL })

static void
lines_end_at_newlines_and_lose_one_carriage_return(void **state)
{
    struct vocab *vocab = open_text("cr.txt", "a\r\nb\r\r\nc\rd\r");

    (void)state;
    assert_int_equal(vocab_count(vocab), 3);
    assert_int_equal(line_of(vocab, "a"), 0);
    assert_int_equal(line_of(vocab, "b\r"), 1);
    assert_int_equal(line_of(vocab, "c\rd"), 2);
    assert_int_equal(line_of(vocab, "b"), -1);
    assert_int_equal(line_of(vocab, "a\r"), -1);
    assert_int_equal(line_of(vocab, "cd"), -1);
    vocab_close(vocab);
}

static void
blanks_quotes_and_any_bytes_belong_to_the_term(void **state)
{
    const char bytes[] = "\xff\xfe\na\0b\n x\ny \n\"q\"\n\0\n[UNK]";
    struct path path = write_text("bytes.txt", bytes, sizeof bytes - 1);
    struct vocab *vocab;
    struct byte_view terms[] = { { (const uint8_t *)"a\0b", 3 }, { (const uint8_t *)"a", 1 },
                                 { (const uint8_t *)"\0", 1 },   { (const uint8_t *)"\0\0", 2 },
                                 { (const uint8_t *)"", 0 },     { NULL, 0 } };
    int64_t lines[6];

    (void)state;
    assert_int_equal(vocab_open_file(cache, path.text, VOCAB_STRINGS, &vocab), TUNDISH_OK);
    vocab_lookup(vocab, terms, 6, lines);
    assert_int_equal(lines[0], 1);
    assert_int_equal(lines[1], -1);
    assert_int_equal(lines[2], 5);
    assert_int_equal(lines[3], -1);
    assert_int_equal(lines[4], -1);
    assert_int_equal(lines[5], -1);
    assert_int_equal(line_of(vocab, "\xff\xfe"), 0);
    assert_int_equal(line_of(vocab, " x"), 2);
    assert_int_equal(line_of(vocab, "y "), 3);
    assert_int_equal(line_of(vocab, "\"q\""), 4);
    assert_int_equal(line_of(vocab, "[UNK]"), 6);
    vocab_close(vocab);
}

static void
texts_that_are_no_vocabulary_are_refused(void **state)
{
    (void)state;
    REFUSES("", VOCAB_STRINGS, "empty");
    REFUSES("a\n\nb\n", VOCAB_STRINGS, "empty line", "position 2", "line 2");
    REFUSES("a\n\r\nb\n", VOCAB_STRINGS, "empty line", "position 2");
    REFUSES("\n", VOCAB_STRINGS, "empty line", "position 0");
    REFUSES("a\nb\na\n", VOCAB_STRINGS, "key \"a\"", "value 0", "value 2");
    REFUSES("a\nlonger than sixteen bytes\nb\nlonger than sixteen bytes", VOCAB_STRINGS,
            "longer than sixteen", "value 1", "value 3");
    REFUSES("\xff\nx\n\xff", VOCAB_STRINGS, "key \"\\xff\"");
    REFUSES("1\ntwo\n", VOCAB_INTEGERS, "two", "line 2");
    REFUSES("1\n2.5\n", VOCAB_INTEGERS, "2.5");
    REFUSES("9223372036854775808\n", VOCAB_INTEGERS, "9223372036854775808");
    REFUSES("-9223372036854775809\n", VOCAB_INTEGERS, "-9223372036854775809");
    REFUSES("1\n-\n", VOCAB_INTEGERS, "\"-\"");
    REFUSES("7\n07\n", VOCAB_INTEGERS, "key 7", "value 0", "value 1");
}

static void
a_missing_file_or_a_folder_is_refused_by_name(void **state)
{
    struct vocab *vocab;

    (void)state;
    assert_int_equal(vocab_open_file(cache, "/nowhere/v.txt", VOCAB_STRINGS, &vocab),
                     TUNDISH_E_PIPELINE);
    assert_non_null(strstr(tnd_error_text(), "/nowhere/v.txt"));
    assert_int_equal(vocab_open_file(cache, top, VOCAB_STRINGS, &vocab), TUNDISH_E_PIPELINE);
    assert_non_null(strstr(tnd_error_text(), top));
}

static void
integers_are_read_with_blanks_and_signs(void **state)
{
    const char text[] = " 12\n+36\n-3\t\n9223372036854775807\n-9223372036854775808\n0\r\n";
    struct path path = write_text("integers.txt", text, sizeof text - 1);
    const int64_t terms[] = { 12, 36, -3, INT64_MAX, INT64_MIN, 0, 13, -1 };
    int64_t lines[8], term;
    struct vocab *vocab;

    (void)state;
    assert_int_equal(vocab_open_file(cache, path.text, VOCAB_INTEGERS, &vocab), TUNDISH_OK);
    vocab_lookup_integers(vocab, terms, 8, lines);
    for (int64_t i = 0; i < 6; i++) {
        assert_int_equal(lines[i], i);
        assert_true(vocab_integer(vocab, i, &term));
        assert_true(term == terms[i]);
    }
    assert_int_equal(lines[6], -1);
    assert_int_equal(lines[7], -1);
    assert_false(vocab_integer(vocab, 6, &term));
    assert_false(vocab_integer(vocab, -1, &term));
    vocab_close(vocab);
}

static void
a_list_is_a_vocabulary_too_and_may_hold_the_empty_term(void **state)
{
    const struct byte_view terms[] = { bytes_of_text("x"), { NULL, 0 }, bytes_of_text("y\n") };
    const struct byte_view twice[] = { terms[0], terms[1], terms[1] };
    const int64_t integers[] = { 5, -5 };
    const int64_t same[] = { 5, 5 };
    struct vocab *vocab;
    int64_t line;

    (void)state;
    assert_int_equal(vocab_open_terms(cache, "here", terms, 3, &vocab), TUNDISH_OK);
    assert_int_equal(line_of(vocab, ""), 1);
    assert_int_equal(line_of(vocab, "y\n"), 2);
    vocab_close(vocab);
    assert_int_equal(vocab_open_terms(cache, "here", twice, 3, &vocab), TUNDISH_E_PIPELINE);
    assert_non_null(strstr(tnd_error_text(), "here"));
    assert_int_equal(vocab_open_terms(cache, "here", terms, 0, &vocab), TUNDISH_OK);
    assert_int_equal(vocab_count(vocab), 0);
    assert_int_equal(line_of(vocab, "x"), -1);
    vocab_close(vocab);
    assert_int_equal(vocab_open_integers(cache, "there", integers, 0, &vocab), TUNDISH_OK);
    vocab_lookup_integers(vocab, integers, 1, &line);
    assert_int_equal(line, -1);
    vocab_close(vocab);
    assert_int_equal(vocab_open_integers(cache, "there", integers, 2, &vocab), TUNDISH_OK);
    vocab_lookup_integers(vocab, &integers[1], 1, &line);
    assert_int_equal(line, 1);
    vocab_close(vocab);
    assert_int_equal(vocab_open_integers(cache, "there", same, 2, &vocab), TUNDISH_E_PIPELINE);
    assert_non_null(strstr(tnd_error_text(), "there"));
}

static void
fingerprints_follow_the_terms_alone(void **state)
{
    const struct byte_view terms[] = { bytes_of_text("a"), bytes_of_text("b") };
    struct vocab *lf = open_text("lf.txt", "a\nb\n");
    struct vocab *crlf = open_text("crlf.txt", "a\r\nb");
    struct vocab *turned = open_text("turned.txt", "b\na\n");
    struct vocab *joined = open_text("joined.txt", "ab\n");
    struct vocab *list;

    (void)state;
    assert_int_equal(vocab_open_terms(cache, "list", terms, 2, &list), TUNDISH_OK);
    assert_true(vocab_fingerprint(lf) == vocab_fingerprint(crlf));
    assert_true(vocab_fingerprint(lf) == vocab_fingerprint(list));
    assert_true(vocab_fingerprint(lf) != vocab_fingerprint(turned));
    assert_true(vocab_fingerprint(lf) != vocab_fingerprint(joined));
    vocab_close(lf);
    vocab_close(crlf);
    vocab_close(turned);
    vocab_close(joined);
    vocab_close(list);
}

static void
a_table_is_built_once_and_again_when_the_text_changes(void **state)
{
    struct vocab *first = open_text("v.txt", "a\nb\n");
    struct path table = only_table();
    struct stat before, after;
    struct vocab *second;

    (void)state;
    assert_int_equal(stat(table.text, &before), 0);
    second = open_text("v.txt", "a\nb\n"); /* written anew: other times, same bytes */
    assert_int_equal(stat(table.text, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    vocab_close(second);
    second = open_text("v.txt", "c\na\n");
    assert_int_equal(line_of(second, "a"), 1);
    assert_int_equal(line_of(first, "a"), 0);
    vocab_close(first);
    vocab_close(second);
}

static int64_t
in_an_hour(void *context)
{
    struct timespec now;

    (void)context;
    clock_gettime(CLOCK_REALTIME, &now);
    return ((int64_t)now.tv_sec + 3600) * 1000000000;
}

static int64_t
at_its_birth(void *context)
{
    const struct stat *about = context;

    return (int64_t)about->st_mtim.tv_sec * 1000000000 + about->st_mtim.tv_nsec;
}

static int64_t
standing(void *context)
{
    (void)context;
    return 0;
}

static int
note_count(void)
{
    DIR *folder = opendir(cache);
    struct dirent *entry;
    int count = 0;

    while ((entry = readdir(folder)) != NULL)
        count += strncmp(entry->d_name, "vocab-note", 10) == 0;
    closedir(folder);
    return count;
}

static void
only_an_old_file_is_known_by_its_times(void **state)
{
    const struct tnd_clock later = { standing, in_an_hour, NULL };
    struct path path = write_text("old.txt", "a\nb\n", 4);
    struct stat about;
    const struct tnd_clock early = { standing, at_its_birth, &about };
    struct vocab *vocab;

    (void)state;
    assert_int_equal(stat(path.text, &about), 0);
    tnd_clock_install(&early);
    assert_int_equal(vocab_open_file(cache, path.text, VOCAB_STRINGS, &vocab), TUNDISH_OK);
    vocab_close(vocab);
    assert_int_equal(note_count(), 0);
    tnd_clock_install(&later);
    assert_int_equal(vocab_open_file(cache, path.text, VOCAB_STRINGS, &vocab), TUNDISH_OK);
    vocab_close(vocab);
    tnd_clock_install(NULL);
    assert_int_equal(note_count(), 1);
    assert_int_equal(vocab_open_file(cache, path.text, VOCAB_STRINGS, &vocab), TUNDISH_OK);
    assert_int_equal(line_of(vocab, "b"), 1);
    vocab_close(vocab);
    /* The note exists, and the file is another one now. */
    path = write_text("old.txt", "b\na\n", 4);
    assert_int_equal(vocab_open_file(cache, path.text, VOCAB_STRINGS, &vocab), TUNDISH_OK);
    assert_int_equal(line_of(vocab, "b"), 0);
    vocab_close(vocab);
}

static void
one_text_may_be_both_strings_and_integers(void **state)
{
    struct path path = write_text("both.txt", "10\n020\n", 7);
    struct vocab *strings, *integers;
    int64_t term = 20, line;

    (void)state;
    assert_int_equal(vocab_open_file(cache, path.text, VOCAB_STRINGS, &strings), TUNDISH_OK);
    assert_int_equal(vocab_open_file(cache, path.text, VOCAB_INTEGERS, &integers), TUNDISH_OK);
    assert_int_equal(line_of(strings, "020"), 1);
    assert_int_equal(line_of(strings, "20"), -1);
    vocab_lookup_integers(integers, &term, 1, &line);
    assert_int_equal(line, 1);
    vocab_close(strings);
    vocab_close(integers);
}

static void
processes_that_build_at_once_end_with_one_table(void **state)
{
    enum { processes = 6, terms = 20000 };
    char *text = malloc(terms * 9 + 1);
    char *at = text;
    struct path path;

    (void)state;
    for (unsigned i = 0; i < terms; i++)
        at += sprintf(at, "%08x\n", i * 2654435761U);
    path = write_text("many.txt", text, (size_t)(at - text));
    free(text);
    for (int p = 0; p < processes; p++)
        if (fork() == 0) {
            struct vocab *vocab;
            char term[9];

            if (vocab_open_file(cache, path.text, VOCAB_STRINGS, &vocab) != TUNDISH_OK)
                _exit(1);
            for (unsigned i = 0; i < terms; i += 97) {
                sprintf(term, "%08x", i * 2654435761U);
                if (line_of(vocab, term) != (int64_t)i)
                    _exit(2);
            }
            vocab_close(vocab);
            _exit(0);
        }
    for (int p = 0; p < processes; p++) {
        int result;

        assert_true(wait(&result) > 0);
        assert_int_equal(result, 0);
    }
    only_table();
}

static void
a_cache_without_room_is_a_clean_error(void **state)
{
    struct path path = write_text("room.txt", "a\nb\n", 4);
    struct vocab *vocab = NULL;
    struct rlimit before, tight;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = before;
    tight.rlim_cur = 1024;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    assert_int_equal(vocab_open_file(cache, path.text, VOCAB_STRINGS, &vocab), TUNDISH_E_SYSTEM);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_null(vocab);
    assert_non_null(strstr(tnd_error_text(), path.text));
    assert_int_equal(vocab_open_file(cache, path.text, VOCAB_STRINGS, &vocab), TUNDISH_OK);
    vocab_close(vocab);
}

TEST_FILE(test_vocab)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lines_end_at_newlines_and_lose_one_carriage_return, empty_cache),
        cmocka_unit_test_setup(blanks_quotes_and_any_bytes_belong_to_the_term, empty_cache),
        cmocka_unit_test_setup(texts_that_are_no_vocabulary_are_refused, empty_cache),
        cmocka_unit_test_setup(a_missing_file_or_a_folder_is_refused_by_name, empty_cache),
        cmocka_unit_test_setup(integers_are_read_with_blanks_and_signs, empty_cache),
        cmocka_unit_test_setup(a_list_is_a_vocabulary_too_and_may_hold_the_empty_term, empty_cache),
        cmocka_unit_test_setup(fingerprints_follow_the_terms_alone, empty_cache),
        cmocka_unit_test_setup(a_table_is_built_once_and_again_when_the_text_changes, empty_cache),
        cmocka_unit_test_setup(only_an_old_file_is_known_by_its_times, empty_cache),
        cmocka_unit_test_setup(one_text_may_be_both_strings_and_integers, empty_cache),
        cmocka_unit_test_setup(processes_that_build_at_once_end_with_one_table, empty_cache),
        cmocka_unit_test_setup(a_cache_without_room_is_a_clean_error, empty_cache),
    };

    return cmocka_run_group_tests(tests, make_top, remove_top);
}
