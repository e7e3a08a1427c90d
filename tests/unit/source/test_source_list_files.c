/* test_source_list_files.c - which paths match. */
#include "source_fixture.h"

#include <fnmatch.h>

#include "core/clock.h"
#include "session/checkpoint/place_files.h"
#include "source/files/listed.h"
#include "source/files/matching_files.h"
#include "unit/source/file_clock.h"
#include "unit/test_file.h"

static void
make_files(struct folder *folder)
{
    const char *const names[] = { "b.txt",     "a.txt",     ".dot.txt",  "a[1].txt",
                                  "sub/c.txt", "sub/d.bin", "sub2/c.txt" };
    char path[128];

    folder_open(folder);
    snprintf(path, sizeof path, "%s/sub", folder->path);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/sub2", folder->path);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        put_text(folder, names[i], "x\n");
}

#define LIST(patterns) "[list_files: {file_pattern: " patterns ", shuffle: false}]"

static void
patterns_match_within_components_and_all_matches_are_sorted(void **state)
{
    struct folder folder;

    (void)state;
    make_files(&folder);
    assert_texts(&folder, LIST("'*.txt'"), ".dot.txt|a.txt|a[1].txt|b.txt|");
    assert_texts(&folder, LIST("'sub*/?.txt'"), "sub/c.txt|sub2/c.txt|");
    assert_texts(&folder, LIST("'[!a].txt'"), "b.txt|");
    assert_texts(&folder, LIST("'[ab].txt'"), "a.txt|b.txt|");
    assert_texts(&folder, LIST("'sub/*'"), "sub/c.txt|sub/d.bin|");
    assert_texts(&folder, LIST("'a\\[1].txt'"), "a[1].txt|");
    assert_texts(&folder, LIST("sub/c.txt"), "sub/c.txt|");
    folder_close(&folder);
}

static void
doubles_stay_and_a_pattern_may_match_nothing_beside_others(void **state)
{
    struct folder folder;

    (void)state;
    make_files(&folder);
    assert_texts(&folder, LIST("['sub/*.txt', 'none*', 'a.txt', 'sub*/c.txt']"),
                 "a.txt|sub/c.txt|sub/c.txt|sub2/c.txt|");
    folder_close(&folder);
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
names_match_and_are_sorted_as_the_c_library_does_it(void **state)
{
    const char *const patterns[] = { "l*",           "a*",     "*a",   "a*a",   "aa*a",
                                     "long-name-1*", "long*2", "*-*",  "l*g*1", "[al]*",
                                     "?a",           "a**",    "*[a]", "\\a*",  "*\\a" };
    const char *names[] = {
        "ba", "a",   "aa",          "aba",          "ab",          "long-name-1\xff",
        "*",  "a*a", "long-name-1", "long-name-10", "long-name-2", "[al]"
    };
    enum { COUNT = sizeof names / sizeof *names };
    struct folder folder;

    (void)state;
    folder_open(&folder);
    for (int i = 0; i < COUNT; i++)
        put_text(&folder, names[i], "x");
    qsort(names, COUNT, sizeof *names, compare_names);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        const struct path_base base = { .root = folder.path };
        struct matching_files found;
        size_t at = 0;

        assert_int_equal(matching_files_find(&base, &patterns[i], 1, &found), TUNDISH_OK);
        for (int k = 0; k < COUNT; k++)
            if (fnmatch(patterns[i], names[k], 0) == 0) {
                assert_true(at < found.count);
                assert_string_equal(found.paths[at++], names[k]);
            }
        assert_int_equal(found.count, at);
        matching_files_close(&found);
    }
    folder_close(&folder);
}

/* Names that are alike for longer than a key of theirs, that end within it, that begin with others,
 * and of all bytes. */
static void
many_names_are_sorted_as_the_c_library_does_it(void **state)
{
    enum { COUNT = 4000 };
    const char *const ways[] = { "%05u",        "%u",     "alike-for-long-%u",
                                 "%u-and-more", "\xff%u", "\x01%u" };
    const char *pattern = "n*";
    char *names[COUNT], name[40];
    struct folder folder;
    struct matching_files found;

    (void)state;
    folder_open(&folder);
    for (unsigned i = 0; i < COUNT; i++) {
        int bytes = snprintf(name, sizeof name, "n");

        /* No two are the same: each way has numbers of its own. */
        snprintf(name + bytes, sizeof name - (size_t)bytes, ways[i % 6], i * 2654435761U);
        if (i % 97 == 0)
            name[1] = (char)(1 + i / 97);
        names[i] = tnd_strdup(name);
        put_text(&folder, name, "");
    }
    qsort(names, COUNT, sizeof *names, compare_names);
    assert_int_equal(
        matching_files_find(&(struct path_base){ .root = folder.path }, &pattern, 1, &found),
        TUNDISH_OK);
    assert_int_equal(found.count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_string_equal(found.paths[i], names[i]);
        free(names[i]);
    }
    matching_files_close(&found);
    folder_close(&folder);
}

static void
put_link(const struct folder *folder, const char *name, const char *target)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    assert_int_equal(symlink(target, path), 0);
}

static void
links_match_if_something_is_there(void **state)
{
    struct folder folder;

    (void)state;
    make_files(&folder);
    put_link(&folder, "sub/e.txt", "../a.txt");
    put_link(&folder, "sub/f.txt", "nowhere");
    put_link(&folder, "sub3", "sub2");
    assert_texts(&folder, LIST("'sub/*.txt'"), "sub/c.txt|sub/e.txt|");
    assert_texts(&folder, LIST("'sub*/c.txt'"), "sub/c.txt|sub2/c.txt|sub3/c.txt|");
    assert_texts(&folder, LIST("'sub*'"), "sub|sub2|sub3|");
    folder_close(&folder);
}

static void
no_match_at_all_fails_naming_the_patterns(void **state)
{
    struct folder folder;

    (void)state;
    make_files(&folder);
    assert_refused(&folder, LIST("['none*', 'sub/x?', 'nodir/*']"), "none* sub/x? nodir/*");
    folder_close(&folder);
}

static void
an_absolute_pattern_gives_absolute_paths(void **state)
{
    struct folder folder;
    char *stages, *expected;

    (void)state;
    make_files(&folder);
    stages =
        tnd_sprintf("[list_files: {file_pattern: '%s/sub/*.txt', shuffle: false}]", folder.path);
    expected = tnd_sprintf("%s/sub/c.txt|", folder.path);
    assert_texts(&folder, stages, expected);
    free(stages);
    free(expected);
    folder_close(&folder);
}

static void
listed_files_can_be_read(void **state)
{
    struct folder folder;

    (void)state;
    make_files(&folder);
    assert_texts(&folder,
                 "[list_files: {file_pattern: 'sub*/c.txt', shuffle: false}, "
                 "interleave: {dataset: [text_line], cycle_length: 2}]",
                 "x|x|");
    folder_close(&folder);
}

/* Which folder, what is there, and which stage: what an error of a missing file says. */
static void
what_is_not_there_is_told_with_its_folder_and_stage(void **state)
{
    static const struct {
        const char *stages, *words[3];
    } cases[] = {
        { "[text_line: peple.csv]",
          { "peple.csv: cannot be opened: No such file or directory (in /",
            "; the nearest name there is 'people.csv')", " (text_line, line 3 of case.yaml)" } },
        { "[text_line: dta/a.csv]",
          { "(there is no folder 'dta' in /", "the nearest name there is 'data')",
            "(text_line, line 3 of case.yaml)" } },
        { "[list_files: 'dta/*.csv']",
          { "no file matches dta/*.csv (there is no folder 'dta' in /", "is 'data')",
            "(list_files, line 3 of case.yaml)" } },
        { "[list_files: 'data/*.csv']",
          { "no file matches data/*.csv (in /", "/data)", "(list_files, line 3 of case.yaml)" } },
    };
    struct folder folder;
    char data[128];

    (void)state;
    folder_open(&folder);
    put_text(&folder, "people.csv", "a\n");
    snprintf(data, sizeof data, "%s/data", folder.path);
    assert_int_equal(mkdir(data, 0700), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pipeline pipeline;
        uint64_t words[PLAN_WIDTH_MAX];
        size_t count;
        tundish_status status = pipeline_open(&pipeline, &folder, 0, cases[i].stages);

        if (status == TUNDISH_OK)
            assert_int_equal(order_next(pipeline.iterator, words, 1, &count), ORDER_FAILED);
        for (int k = 0; k < 3; k++)
            if (strstr(tnd_error_text(), cases[i].words[k]) == NULL)
                fail_msg("'%s' is not in: %s", cases[i].words[k], tnd_error_text());
        pipeline_close(&pipeline);
    }
    folder_close(&folder);
}

static void
expect_found(const struct folder *folder, struct listed *listed, const char *expected)
{
    const char *const patterns[] = { "sub/*", "?.txt" };
    const struct path_base base = { .root = folder->path, .listed = listed };
    struct matching_files found;
    char text[128] = "";

    assert_int_equal(matching_files_find(&base, patterns, 2, &found), TUNDISH_OK);
    for (size_t i = 0; i < found.count; i++)
        strcat(strcat(text, found.paths[i]), "|");
    assert_string_equal(text, expected);
    matching_files_close(&found);
}

static void
a_folder_is_listed_once_until_the_stream_has_started(void **state)
{
    struct listed *listed = listed_open();
    struct folder folder;

    (void)state;
    make_files(&folder);
    for (int i = 0; i < 2; i++) {
        expect_found(&folder, listed, "a.txt|b.txt|sub/c.txt|sub/d.bin|");
        put_text(&folder, "c.txt", "x\n");
    }
    expect_found(&folder, NULL, "a.txt|b.txt|c.txt|sub/c.txt|sub/d.bin|");
    listed_end(listed);
    for (int i = 0; i < 2; i++) {
        expect_found(&folder, listed, "a.txt|b.txt|c.txt|sub/c.txt|sub/d.bin|");
        listed_end(listed);
    }
    listed_close(listed);
    folder_close(&folder);
}

static uint32_t
count_listed(struct pipeline *pipeline, const struct folder *folder, struct listed *listed)
{
    const struct source_files_options options = { .root = folder->path,
                                                  .cache_folder = folder->cache,
                                                  .listed = listed };
    uint64_t words[PLAN_WIDTH_MAX];
    size_t got;
    uint32_t count = 0;

    order_close(pipeline->iterator);
    order_instance_close(pipeline->instance);
    source_files_close(pipeline->files);
    assert_int_equal(source_files_open(&options, &pipeline->files), TUNDISH_OK);
    pipeline->services.files = pipeline->files;
    pipeline->instance = order_instance_open(pipeline->plan->graph, NULL, &pipeline->services);
    assert_int_equal(order_open(pipeline->node, pipeline->instance, &pipeline->iterator), 0);
    while (order_next(pipeline->iterator, words, 1, &got) == ORDER_OK)
        count++;
    return count;
}

static uint32_t
count_in_place(const struct plan *plan)
{
    struct place_files place;
    uint32_t count;

    assert_int_equal(place_files_open(plan, &place), TUNDISH_OK);
    count = place.count;
    place_files_close(&place);
    return count;
}

static void
a_place_names_the_files_that_the_first_step_reads(void **state)
{
    struct listed *listed = listed_open();
    struct pipeline pipeline;
    struct folder folder;

    (void)state;
    make_files(&folder);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, LIST("'sub/*'")), TUNDISH_OK);
    pipeline.plan->options.listed = listed;
    assert_int_equal(count_in_place(pipeline.plan), 2);
    put_text(&folder, "sub/e.txt", "x\n"); /* while the server starts */
    assert_int_equal(count_listed(&pipeline, &folder, listed), 2);
    assert_int_equal(count_in_place(pipeline.plan), 2);
    listed_end(listed);
    assert_int_equal(count_listed(&pipeline, &folder, listed), 3);
    assert_int_equal(count_in_place(pipeline.plan), 3);
    pipeline_close(&pipeline);
    listed_close(listed);
    folder_close(&folder);
}

static int64_t
each_reading_is_later(void *context)
{
    static _Atomic int64_t readings;

    (void)context;
    return ++readings * 10000000;
}

static int64_t
same_wall(void *context)
{
    (void)context;
    return 1;
}

/* More look at them then. */
static void
a_place_is_the_same_where_files_are_slow(void **state)
{
    static const struct tnd_clock slow = { each_reading_is_later, same_wall, NULL };
    struct place_files place[2];
    struct pipeline pipeline;
    struct folder folder;
    char name[16];

    (void)state;
    folder_open(&folder);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "%03d.txt", i);
        put_text(&folder, name, name);
    }
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, LIST("'*.txt'")), TUNDISH_OK);
    for (int i = 0; i < 2; i++) {
        tnd_clock_install(i > 0 ? &slow : NULL);
        assert_int_equal(place_files_open(pipeline.plan, &place[i]), TUNDISH_OK);
    }
    tnd_clock_install(NULL);
    assert_int_equal(place[1].count, 300);
    for (int i = 0; i < 300; i++) {
        assert_true(place[1].list[i].is_here);
        assert_int_equal(place[1].list[i].hash, place[0].list[i].hash);
    }
    assert_int_equal(place_files_check(&place[1], &place[0].groups), TUNDISH_OK);
    put_text(&folder, "299.txt", "000.txt");
    place_files_close(&place[1]);
    tnd_clock_install(&slow);
    assert_int_equal(place_files_open(pipeline.plan, &place[1]), TUNDISH_OK);
    tnd_clock_install(NULL);
    assert_int_equal(place_files_check(&place[1], &place[0].groups), TUNDISH_E_PLACE);
    for (int i = 0; i < 2; i++)
        place_files_close(&place[i]);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

static void
expect_hash(const struct folder *folder, const char *stages, const struct place_file *expected)
{
    struct place_files alone;
    struct pipeline pipeline;

    assert_int_equal(pipeline_open(&pipeline, folder, 0, stages), TUNDISH_OK);
    assert_int_equal(place_files_open(pipeline.plan, &alone), TUNDISH_OK);
    assert_int_equal(alone.count, 1);
    assert_string_equal(alone.list[0].name, expected->name);
    assert_string_equal(alone.list[0].path, expected->path);
    assert_int_equal(alone.list[0].hash, expected->hash);
    assert_int_equal(alone.list[0].is_here, expected->is_here);
    place_files_close(&alone);
    pipeline_close(&pipeline);
}

/* Their folder is opened then. */
static void
a_file_among_many_of_a_folder_is_the_same_as_alone(void **state)
{
    struct listed *listed = listed_open();
    struct place_files all;
    struct pipeline pipeline;
    struct folder folder;
    char name[16], path[128];

    (void)state;
    folder_open(&folder);
    for (int i = 0; i < 3 * 100; i++) {
        snprintf(path, sizeof path, "%s/%c", folder.path, "pqr"[i / 100]);
        if (i % 100 == 0)
            assert_int_equal(mkdir(path, 0700), 0);
        snprintf(name, sizeof name, "%c/%02d.txt", "pqr"[i / 100], i % 100);
        put_text(&folder, name, name);
    }
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, LIST("'[pqr]/*.txt'")), TUNDISH_OK);
    pipeline.plan->options.listed = listed;
    assert_int_equal(place_files_open(pipeline.plan, &all), TUNDISH_OK);
    assert_int_equal(all.count, 300);
    expect_hash(&folder, LIST("p/03.txt"), &all.list[3]);
    expect_hash(&folder, LIST("p/99.txt"), &all.list[99]);
    expect_hash(&folder, LIST("q/62.txt"), &all.list[162]);
    expect_hash(&folder, LIST("q/63.txt"), &all.list[163]);
    expect_hash(&folder, LIST("r/99.txt"), &all.list[299]);
    place_files_close(&all);
    snprintf(path, sizeof path, "%s/r/98.txt", folder.path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(place_files_open(pipeline.plan, &all), TUNDISH_OK);
    assert_int_equal(all.count, 300);
    for (int i = 0; i < 300; i++)
        assert_int_equal(all.list[i].is_here, i != 298);
    place_files_close(&all);
    pipeline_close(&pipeline);
    listed_close(listed);
    folder_close(&folder);
}

/* What is listed says only which files there are: what they hold is looked at afterwards. */
static void
a_file_that_changes_or_goes_after_the_listing_is_noticed(void **state)
{
    struct listed *listed = listed_open();
    struct place_files before, after;
    struct pipeline pipeline;
    struct folder folder;
    char path[128];

    (void)state;
    make_files(&folder);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, LIST("'sub/*'")), TUNDISH_OK);
    pipeline.plan->options.listed = listed;
    assert_int_equal(place_files_open(pipeline.plan, &before), TUNDISH_OK);
    put_text(&folder, "sub/d.bin", "y\n");
    assert_int_equal(place_files_open(pipeline.plan, &after), TUNDISH_OK);
    assert_int_equal(place_files_check(&after, &before.groups), TUNDISH_E_PLACE);
    assert_non_null(strstr(tnd_error_text(), "sub/d.bin changed"));
    place_files_close(&after);

    put_text(&folder, "sub/d.bin", "x\n");
    snprintf(path, sizeof path, "%s/sub/c.txt", folder.path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(place_files_open(pipeline.plan, &after), TUNDISH_OK);
    assert_int_equal(after.count, 2);
    assert_false(after.list[0].is_here);
    assert_int_equal(after.list[1].hash, before.list[1].hash);
    assert_int_equal(place_files_check(&after, &before.groups), TUNDISH_E_PLACE);
    place_files_close(&after);
    place_files_close(&before);
    pipeline_close(&pipeline);
    listed_close(listed);
    folder_close(&folder);
}

static bool
has_hashes(const struct folder *folder)
{
    const char *pattern = "files-*.hashes";
    struct matching_files found;
    bool has;

    assert_int_equal(
        matching_files_find(&(struct path_base){ .root = folder->cache }, &pattern, 1, &found),
        TUNDISH_OK);
    has = found.count > 0;
    matching_files_close(&found);
    return has;
}

/* The disk is not waited for before that: a start would take longer. */
static void
what_a_place_knows_of_files_is_kept_when_that_is_asked_for(void **state)
{
    struct place_files place;
    struct pipeline pipeline;
    struct folder folder;
    char name[16];

    (void)state;
    folder_open(&folder);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "%03d.txt", i);
        put_text(&folder, name, name);
    }
    assert_int_equal(stat(folder.path, &written), 0);
    age_ns = OLD_NS;
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, LIST("'*.txt'")), TUNDISH_OK);
    pipeline.plan->options.cache_folder = folder.cache;
    tnd_clock_install(&file_clock);
    assert_int_equal(place_files_open(pipeline.plan, &place), TUNDISH_OK);
    assert_false(has_hashes(&folder));
    place_files_keep(&place);
    assert_true(has_hashes(&folder));
    assert_int_equal(remove_tree(folder.cache), 0);
    assert_int_equal(mkdir(folder.cache, 0700), 0);
    place_files_close(&place);
    assert_false(has_hashes(&folder));
    assert_int_equal(place_files_open(pipeline.plan, &place), TUNDISH_OK);
    place_files_close(&place);
    assert_true(has_hashes(&folder));
    tnd_clock_install(NULL);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

TEST_FILE(test_source_list_files)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_there_is_told_with_its_folder_and_stage),
        cmocka_unit_test(patterns_match_within_components_and_all_matches_are_sorted),
        cmocka_unit_test(names_match_and_are_sorted_as_the_c_library_does_it),
        cmocka_unit_test(many_names_are_sorted_as_the_c_library_does_it),
        cmocka_unit_test(doubles_stay_and_a_pattern_may_match_nothing_beside_others),
        cmocka_unit_test(links_match_if_something_is_there),
        cmocka_unit_test(no_match_at_all_fails_naming_the_patterns),
        cmocka_unit_test(an_absolute_pattern_gives_absolute_paths),
        cmocka_unit_test(listed_files_can_be_read),
        cmocka_unit_test(a_place_names_the_files_that_the_first_step_reads),
        cmocka_unit_test(a_place_is_the_same_where_files_are_slow),
        cmocka_unit_test(a_file_among_many_of_a_folder_is_the_same_as_alone),
        cmocka_unit_test(a_file_that_changes_or_goes_after_the_listing_is_noticed),
        cmocka_unit_test(what_a_place_knows_of_files_is_kept_when_that_is_asked_for),
        cmocka_unit_test(a_folder_is_listed_once_until_the_stream_has_started),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
