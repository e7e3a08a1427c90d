/* test_helper_allowed.c - which files a server may have a helper open: those that the pipeline file
 * names, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "rig/helper_pair.h"
#include "session/served.h"
#include "source/source.h"
#include "unit/test_file.h"

static struct helper_pair pair;

static int
make_files(void **state)
{
    static const char *const folders[] = { "data", "data/cat", "other" };
    char path[128];
    int status = served_make_folder(state);

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", served_folder, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    served_write("data/a.txt", "a\n");
    served_write("data/b.txt", "b\n");
    served_write("data/cat/1.png", "png");
    served_write("data/list", "data/a.txt\n");
    served_write("other/secret", "s\n");
    served_write("secret", "s\n");
    return status;
}

static int
close_pair(void **state)
{
    (void)state;
    helper_pair_close(&pair);
    return 0;
}

/* The last source whose elements tell of files, in the order written: a reader comes after what
 * names its files. */
static const struct plan_node *
source_of_files(const struct plan_graph *graph)
{
    for (uint32_t i = graph->node_count; i-- > 0;) {
        const struct plan_node *node = graph->nodes[i], *inside;

        if (node->body != NULL && (inside = source_of_files(node->body)) != NULL)
            return inside;
        if (node->source != NULL &&
            (node->source->words == WORDS_HAVE_FILE || node->source->words == WORDS_HAVE_PATH))
            return node;
    }
    return NULL;
}

/* Ask for a part of a file of this name. Returns the sentence that the helper answers with. */
static const char *
answer_to(const char *name)
{
    static char sentence[HELPER_TEXT_BYTES];
    const struct helper_name head = {
        .node = source_of_files(pair.session.plan->graph)->index,
        .size = UINT64_MAX,
        .name_bytes = strlen(name),
    };
    struct helper_ask ask = helper_pair_head(&pair);
    struct portable_bytes bytes = { 0 }, answered = { 0 };
    struct helper_answer answer;

    ask.name_count = 1;
    ask.bytes = sizeof head + head.name_bytes;
    portable_add(&bytes, &ask, sizeof ask);
    portable_add(&bytes, &head, sizeof head);
    portable_add(&bytes, name, head.name_bytes);
    assert_int_equal(
        helper_pair_answer(&pair, (struct byte_view){ bytes.bytes, bytes.used }, &answered),
        TUNDISH_OK);
    assert_true(answered.used >= sizeof answer);
    memcpy(&answer, answered.bytes, sizeof answer);
    assert_int_not_equal(answer.status, TUNDISH_OK);
    snprintf(sentence, sizeof sentence, "%.*s", (int)(answered.used - sizeof answer),
             (const char *)answered.bytes + sizeof answer);
    free(bytes.bytes);
    free(answered.bytes);
    return sentence;
}

/* The name is taken; only elements are missing then. */
static void
assert_allowed(const char *name)
{
    assert_string_equal(answer_to(name), "malformed elements");
}

static void
assert_refused(const char *name)
{
    size_t known = pair.connection.files.count + pair.connection.paths.count;
    char expected[256];

    snprintf(expected, sizeof expected, "%s: the pipeline file names no such file", name);
    assert_string_equal(answer_to(name), expected);
    assert_int_equal(pair.connection.files.count + pair.connection.paths.count, known);
}

/* Of files that are there, and that are not: nobody has looked. */
static void
assert_strange_are_refused(void)
{
    char path[128];

    assert_refused("/etc/passwd");
    assert_refused("../../../../../../etc/passwd");
    assert_refused("secret");
    assert_refused("nothing");
    assert_refused("");
    assert_refused("data");
    assert_refused("data/../secret");
    assert_refused("http://127.0.0.1/secret");
    snprintf(path, sizeof path, "%s/secret", served_folder);
    assert_refused(path);
}

static void
a_reader_reads_the_files_that_are_listed(void **state)
{
    (void)state;
    helper_pair_open(&pair, served_folder,
                     "{text_line: [data/b.txt, data/a.txt, data/list]}, {batch: 1}", "");
    assert_strange_are_refused();
    assert_refused("data/cat/1.png");
    assert_refused("data/./a.txt");
    assert_allowed("data/a.txt");
    assert_allowed("data/list");
}

static void
a_reader_reads_what_a_pattern_matches(void **state)
{
    (void)state;
    helper_pair_open(&pair, served_folder,
                     "{list_files: {file_pattern: ['data/?.txt', '*/cat/*.png'], shuffle: false}}, "
                     "{flat_map: [text_line]}, {batch: 1}",
                     "");
    assert_strange_are_refused();
    assert_refused("data/list");
    assert_refused("../cat/1.png"); /* as * matches texts */
    assert_refused("data/cat/../a.txt");
    assert_allowed("data/a.txt");
    assert_allowed("data/cat/1.png");
}

static void
paths_are_those_that_a_pattern_matches(void **state)
{
    (void)state;
    helper_pair_open(&pair, served_folder,
                     "{list_files: {file_pattern: 'data/*.txt', shuffle: false}}, "
                     "{read_file: {columns: [value]}}, {batch: 1}",
                     "");
    assert_strange_are_refused();
    assert_refused("data/list");
    assert_allowed("data/a.txt");
}

static void
paths_lie_beneath_a_directory(void **state)
{
    (void)state;
    helper_pair_open(&pair, served_folder,
                     "{directory: {directory: data, extensions: [.png]}}, {batch: 1}", "");
    assert_strange_are_refused();
    assert_refused("database/cat/1.png");
    assert_refused("data/cat/../../other/secret");
    assert_allowed("data/cat/1.png");
}

static void
a_pattern_may_lead_up(void **state)
{
    char root[96];

    (void)state;
    snprintf(root, sizeof root, "%s/other", served_folder);
    helper_pair_open(&pair, root,
                     "{list_files: {file_pattern: '../*/a.txt', shuffle: false}}, "
                     "{read_file: {columns: [value]}}, {batch: 1}",
                     "");
    assert_allowed("../data/a.txt");
    assert_refused("../../a.txt");
}

/* Names in tensors are in the pipeline file. */
static void
a_reader_reads_what_tensors_name(void **state)
{
    (void)state;
    helper_pair_open(&pair, served_folder,
                     "{from_tensor_slices: {value: [data/a.txt, data/b.txt]}}, "
                     "{flat_map: [text_line]}, {batch: 1}",
                     "");
    assert_strange_are_refused();
    assert_refused("data/list");
    assert_allowed("data/a.txt");
}

/* Only a row of a file knows the name: no farther than where that file lies. */
static void
names_in_rows_lie_beneath_folders_that_are_named(void **state)
{
    (void)state;
    helper_pair_open(&pair, served_folder,
                     "{text_line: ./data/list}, {flat_map: [text_line]}, {batch: 1}", "");
    assert_strange_are_refused();
    assert_refused("other/secret");
    assert_allowed("data/a.txt");
    assert_allowed("data//./cat/1.png");
    assert_refused("data/cat/../../secret");
}

/* The pattern is an outer element's: what it matches is not known before. */
static void
what_patterns_of_rows_match_lies_beneath_folders_that_are_named(void **state)
{
    (void)state;
    helper_pair_open(&pair, served_folder,
                     "{from_tensor_slices: {value: ['data/*.txt']}}, "
                     "{flat_map: [{list_files: {file_pattern: $value, shuffle: false}}]}, "
                     "{read_file: {columns: [value]}}, {batch: 1}",
                     "");
    assert_strange_are_refused();
    assert_allowed("data/a.txt");
}

#define OF_PAIR(test) cmocka_unit_test_teardown(test, close_pair)

TEST_FILE(test_helper_allowed)
{
    const struct CMUnitTest tests[] = {
        OF_PAIR(a_reader_reads_the_files_that_are_listed),
        OF_PAIR(a_reader_reads_what_a_pattern_matches),
        OF_PAIR(paths_are_those_that_a_pattern_matches),
        OF_PAIR(paths_lie_beneath_a_directory),
        OF_PAIR(a_pattern_may_lead_up),
        OF_PAIR(a_reader_reads_what_tensors_name),
        OF_PAIR(names_in_rows_lie_beneath_folders_that_are_named),
        OF_PAIR(what_patterns_of_rows_match_lies_beneath_folders_that_are_named),
    };

    return cmocka_run_group_tests(tests, make_files, served_remove_folder);
}
