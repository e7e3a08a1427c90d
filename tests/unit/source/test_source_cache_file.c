/* test_source_cache_file.c - caches in files: made once, then read, and refused when they are not
 * of this pipeline any more. */
#include "source_fixture.h"

#include <glob.h>

#include "order/digest.h"
#include "source/rows/row_codec.h"
#include "unit/test_file.h"

static char *
run(const struct folder *folder, const char *stages, size_t max)
{
    struct pipeline pipeline;
    char *texts;

    if (pipeline_open(&pipeline, folder, 0, stages) != TUNDISH_OK)
        texts = tnd_sprintf("%s", tnd_error_text());
    else
        texts = pipeline_texts(&pipeline, max);
    pipeline_close(&pipeline);
    return texts;
}

static void
assert_run(const struct folder *folder, const char *stages, size_t max, const char *expected)
{
    char *texts = run(folder, stages, max);

    assert_string_equal(texts, expected);
    free(texts);
}

/* All of the words, in the only text. */
static void
assert_says(const struct folder *folder, const char *stages, const char *words)
{
    char *texts = run(folder, stages, 64);

    if (strstr(texts, words) == NULL)
        fail_msg("'%s' is not in: %s", words, texts);
    free(texts);
}

static bool
is_there(const struct folder *folder, const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    return access(path, F_OK) == 0;
}

static void
cut_file(const struct folder *folder, const char *name, off_t bytes)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    assert_int_equal(truncate(path, bytes), 0);
}

static void
the_first_whole_pass_is_what_later_ones_and_later_jobs_give(void **state)
{
    struct folder folder;

    (void)state;
    for (size_t max = 1; max <= 64; max += 63) {
        char *first;

        folder_open(&folder);
        put_text(&folder, "a", "1\n22\n\n4\n");
        first = run(&folder,
                    "[text_line: a, shuffle: {buffer_size: 4, seed: 1}, cache: {filename: "
                    "c}, repeat: 2]",
                    max);
        assert_int_equal(strlen(first), 16); /* eight texts, four of one letter or none */
        assert_true(is_there(&folder, "c"));
        assert_run(&folder,
                   "[text_line: a, shuffle: {buffer_size: 4, seed: 1}, cache: {filename: "
                   "c}, repeat: 2]",
                   max, first);
        assert_memory_equal(first, first + 8, 8);
        free(first);
        folder_close(&folder);
    }
}

static void
a_pass_that_is_not_read_to_its_end_leaves_nothing(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "1\n2\n3\n");
    assert_run(&folder, "[text_line: a, cache: {filename: c}, take: 2]", 1, "1|2|");
    assert_false(is_there(&folder, "c"));
    assert_run(&folder, "[text_line: a, cache: {filename: c}, take: 3, repeat: 2]", 1,
               "1|2|3|1|2|3|");
    assert_false(is_there(&folder, "c")); /* take does not look for the end */
    folder_close(&folder);
}

static void
a_failed_row_is_told_and_the_pass_not_kept(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "b\nnone\nb\n");
    put_text(&folder, "b", "B");
    assert_run(&folder, "[text_line: a, read_file, cache: {filename: c}]", 64,
               "B|!a, line 2: none: cannot be opened: No such file or directory|B|");
    assert_false(is_there(&folder, "c"));
    folder_close(&folder);
}

static void
another_pipelines_cache_is_refused(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "1\n2\n");
    put_text(&folder, "b", "1\n2\n");
    assert_run(&folder, "[text_line: a, cache: {filename: c}]", 64, "1|2|");
    assert_says(&folder, "[text_line: b, cache: {filename: c}]",
                "c: this cache file belongs to another");
    assert_says(&folder, "[text_line: a, string_upper, cache: {filename: c}]", "another pipeline");
    assert_says(&folder, "[text_line: a, rename: {value: v}, cache: {filename: c}]",
                "another pipeline");
    assert_run(&folder, "[text_line: a, cache: {filename: c}, string_upper]", 64, "1|2|");
    folder_close(&folder);
}

static void
changed_files_are_noticed(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a1", "1\n2\n");
    assert_run(&folder,
               "[list_files: {file_pattern: a*, shuffle: false}, flat_map: {dataset: [text_line]}, "
               "cache: {filename: c}]",
               64, "1|2|");
    put_text(&folder, "a2", "3\n");
    assert_says(&folder,
                "[list_files: {file_pattern: a*, shuffle: false}, flat_map: {dataset: "
                "[text_line]}, cache: {filename: c}]",
                "the patterns before it matched other files");
    assert_run(&folder, "[text_line: a1, cache: {filename: d}]", 64, "1|2|");
    put_text(&folder, "a1", "1\n2\n3\n");
    assert_says(&folder, "[text_line: a1, cache: {filename: d}]",
                "d: a1 has changed since this cache file was made from it; remove the file");
    folder_close(&folder);
}

static void
damage_is_noticed(void **state)
{
    struct folder folder;
    const char *stages = "[text_line: a, cache: {filename: c}]";

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "1\n2\n");
    put_text(&folder, "c", "no cache at all, but some text");
    assert_says(&folder, stages, "c: this is not a cache file of Tundish, or it is damaged");
    put_text(&folder, "c", "");
    assert_says(&folder, stages, "c: this is not a cache file of Tundish");
    {
        char path[256];
        struct stat about;

        snprintf(path, sizeof path, "%s/c", folder.path);
        assert_int_equal(unlink(path), 0);
        assert_run(&folder, stages, 64, "1|2|");
        assert_int_equal(stat(path, &about), 0);
        for (off_t cut = 1; cut < about.st_size; cut += 13) {
            assert_int_equal(unlink(path), 0);
            assert_run(&folder, stages, 64, "1|2|");
            cut_file(&folder, "c", about.st_size - cut);
            assert_says(&folder, stages, "c: this");
        }
    }
    folder_close(&folder);
}

static void
a_folder_that_is_not_there_is_told_when_it_is_begun(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    assert_refused(&folder, "[range: 3, cache: {filename: no/where/c}]", "its folder must exist");
    folder_close(&folder);
}

/* Each element as bytes, all its columns. */
static char *
contents(const struct folder *folder, const char *stages)
{
    struct pipeline pipeline;
    struct row_bytes bytes = { 0 };
    uint64_t words[PLAN_WIDTH_MAX];
    size_t count;

    if (pipeline_open(&pipeline, folder, 0, stages) != TUNDISH_OK)
        fail_msg("%s: %s", stages, tnd_error_text());
    while (order_next(pipeline.iterator, words, 1, &count) == ORDER_OK) {
        struct row_bytes row = { 0 };

        assert_int_equal(pipeline_content(&pipeline, words, 1), TUNDISH_OK);
        row_codec_encode(&pipeline.frame, 0, &row);
        for (size_t i = 0; i < row.used; i++) {
            char digits[3];

            snprintf(digits, sizeof digits, "%02x", row.data[i]);
            row_bytes_add(&bytes, digits, 2);
        }
        row_bytes_add(&bytes, "|", 1);
        free(row.data);
        run_words_release(words, 1, pipeline.node->width, pipeline.node->run_words);
    }
    pipeline_close(&pipeline);
    row_bytes_add(&bytes, "", 1);
    return (char *)bytes.data;
}

/* %s: where the cache stands, if there is one. */
static void
assert_kept_whole(const char *stages, size_t file_count)
{
    struct folder folder;
    char *plain = tnd_sprintf(stages, "");
    char *cached = tnd_sprintf(stages, "cache: {filename: c}, ");
    char *expected, *pattern;
    glob_t found;

    folder_open(&folder);
    put_text(&folder, "a", "1\n22\n\n4\n55 5\n");
    put_text(&folder, "b", "x\ny z\n");
    expected = contents(&folder, plain);
    for (int pass = 0; pass < 2; pass++) { /* made, then read */
        char *texts = contents(&folder, cached);

        assert_string_equal(texts, expected);
        free(texts);
    }
    pattern = tnd_sprintf("%s/c*", folder.path);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    /* The folder for indexes is one of them. */
    assert_int_equal(found.gl_pathc - (access(folder.cache, F_OK) == 0), file_count);
    globfree(&found);
    free(pattern);
    free(expected);
    free(plain);
    free(cached);
    folder_close(&folder);
}

static void
batches_are_kept_whole(void **state)
{
    (void)state;
    assert_kept_whole("[range: 10, batch: 4, %srepeat: 2]", 1);
    assert_kept_whole("[range: 10, batch: 2, batch: 3, %sunbatch]", 1);
    assert_kept_whole("[text_line: a, string_split, ragged_batch: 2, %srepeat: 2]", 1);
    assert_kept_whole("[range: 9, padded_batch: 4, map: {value: \"value + sum(value)\"}, "
                      "%sshuffle: {buffer_size: 3, seed: 1}]",
                      1);
    assert_kept_whole("[range: 7, window: {size: 3, shift: 2, drop_remainder: true}, %sbatch: 2]",
                      1);
    assert_kept_whole("[range: 10, batch: 4, map: {value: \"sum(value)\"}, %stake: -1]", 1);
    assert_kept_whole("[range: 0, batch: 4, %srepeat: 2]", 1);
}

static void
sparse_columns_are_kept(void **state)
{
    (void)state;
#define NUMBERS "from_tensor_slices: {value: [[0, 3, 0], [1, 0, 2], [0, 0, 0], [7, 0, 0]]}, "
    assert_kept_whole("[" NUMBERS "to_sparse, %sbatch: 3]", 1);
    assert_kept_whole("[" NUMBERS "to_sparse, batch: 3, %srepeat: 2]", 1);
    assert_kept_whole("[" NUMBERS "batch: 3, to_sparse, %srebatch: 2]", 1);
    assert_kept_whole("[" NUMBERS "to_sparse, %sto_dense]", 1);
}

static void
every_outer_element_has_a_file_of_its_own(void **state)
{
    (void)state;
    assert_kept_whole("[list_files: {file_pattern: \"[ab]\", shuffle: false}, "
                      "interleave: {cycle_length: 2, dataset: [text_line, %stake: -1]}]",
                      2);
    assert_kept_whole("[range: 3, flat_map: {dataset: [range: 4, map: {value: \"value * $value\"}, "
                      "batch: 3, %stake: -1]}]",
                      3);
    assert_kept_whole("[range: 2, flat_map: {dataset: [range: 3, flat_map: {dataset: "
                      "[range: 2, map: {value: \"value + $value\"}, %stake: -1]}]}]",
                      6);
    assert_kept_whole("[from_tensor_slices: {a: [5, 5, 6]}, flat_map: {dataset: [range: 2, map: "
                      "{value: \"value + cast($a, int64)\"}, %stake: -1]}]",
                      2); /* like elements, the same file */
}

static void
batches_that_are_not_as_long_as_each_other_are_kept_too(void **state)
{
    static const char zipped[] =
        "[zip: {datasets: [[range: 4, as_string, batch: 2], "
        "[range: 9, rename: {value: b}, batch: 3]]}, cache: {filename: c}]";
    struct folder folder;

    (void)state;
    folder_open(&folder);
    assert_run(&folder, zipped, 1, "0|2|");
    assert_true(is_there(&folder, "c"));
    assert_run(&folder, zipped, 1, "0|2|");
    folder_close(&folder);
}

/* A job that resumes where `passes` iterators had been made, the last whole pass being `kept` (from
 * 1; 0: none yet). */
static tundish_status
resume(struct pipeline *pipeline, uint64_t passes, uint64_t kept)
{
    order_close(pipeline->iterator);
    pipeline->iterator = NULL;
    order_instance_close(pipeline->instance);
    pipeline->services.resumed = true;
    pipeline->instance = order_instance_open(pipeline->plan->graph, NULL, &pipeline->services);
    pipeline->instance->iterator_counts[pipeline->node->number] = passes;
    pipeline->instance->element_counts[pipeline->node->number] = kept;
    return order_open(pipeline->node, pipeline->instance, &pipeline->iterator);
}

static void
whoever_resumes_needs_the_file_of_the_pass_that_the_place_saw(void **state)
{
    struct folder folder;
    struct pipeline pipeline;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "1\n2\n3\n");
    assert_run(&folder, "[text_line: a, cache: {filename: c}]", 64, "1|2|3|");
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, "[text_line: a, cache: {filename: c}]"),
                     TUNDISH_OK);
    assert_int_equal(resume(&pipeline, 0, 0), TUNDISH_OK);      /* that pass was under way */
    assert_int_equal(resume(&pipeline, 3, 1), TUNDISH_OK);      /* it was kept */
    assert_int_equal(resume(&pipeline, 1, 0), TUNDISH_E_PLACE); /* given up, the next under way */
    assert_non_null(strstr(tnd_error_text(), "c contains pass 1"));
    assert_non_null(strstr(tnd_error_text(), "the place needs pass 2"));
    assert_int_equal(resume(&pipeline, 3, 3), TUNDISH_E_PLACE); /* a later one was kept */
    assert_non_null(strstr(tnd_error_text(), "the place needs pass 3"));
    pipeline_close(&pipeline);
    folder_close(&folder);
}

/* The first row of the next iterator, and what nodes say of their caches. */
static struct order_digest
begin_again(struct pipeline *pipeline, uint64_t words[PLAN_WIDTH_MAX])
{
    struct order_digest digest = { .interval = 1 };
    size_t count = 0;

    order_close(pipeline->iterator);
    pipeline->iterator = NULL;
    pipeline->services.digest = &digest;
    assert_int_equal(order_open(pipeline->node, pipeline->instance, &pipeline->iterator),
                     TUNDISH_OK);
    assert_int_equal(order_next(pipeline->iterator, words, 1, &count), ORDER_OK);
    pipeline->services.digest = NULL;
    return digest;
}

/* One has made the cache, as of a first step that is made in advance, and the other has found it.
 */
static void
nodes_whose_references_into_a_cache_differ_do_not_compare_them(void **state)
{
    static const char stages[] = "[text_line: a, cache: {filename: c}]";
    uint64_t one_words[PLAN_WIDTH_MAX], two_words[PLAN_WIDTH_MAX], again[PLAN_WIDTH_MAX];
    struct folder folder;
    struct pipeline one, two;
    struct order_digest first, second;
    char *texts;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a", "1\n2\n3\n");
    assert_int_equal(pipeline_open(&one, &folder, 0, stages), TUNDISH_OK);
    texts = pipeline_texts(&one, 64);
    assert_string_equal(texts, "1|2|3|");
    free(texts);
    assert_int_equal(pipeline_open(&two, &folder, 0, stages), TUNDISH_OK);
    first = begin_again(&one, one_words);
    second = begin_again(&two, two_words);
    assert_int_equal(first.whole, second.whole);
    assert_memory_not_equal(one_words, two_words, one.node->width * sizeof *one_words);
    assert_int_not_equal(first.numbering, second.numbering);
    first = begin_again(&one, again);
    assert_memory_equal(one_words, again, one.node->width * sizeof *one_words);
    second = begin_again(&one, again);
    assert_int_equal(first.numbering, second.numbering);
    pipeline_close(&two);
    pipeline_close(&one);
    folder_close(&folder);
}

TEST_FILE(test_source_cache_file)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_whole_pass_is_what_later_ones_and_later_jobs_give),
        cmocka_unit_test(a_pass_that_is_not_read_to_its_end_leaves_nothing),
        cmocka_unit_test(a_failed_row_is_told_and_the_pass_not_kept),
        cmocka_unit_test(another_pipelines_cache_is_refused),
        cmocka_unit_test(changed_files_are_noticed),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(a_folder_that_is_not_there_is_told_when_it_is_begun),
        cmocka_unit_test(batches_are_kept_whole),
        cmocka_unit_test(sparse_columns_are_kept),
        cmocka_unit_test(every_outer_element_has_a_file_of_its_own),
        cmocka_unit_test(whoever_resumes_needs_the_file_of_the_pass_that_the_place_saw),
        cmocka_unit_test(nodes_whose_references_into_a_cache_differ_do_not_compare_them),
        cmocka_unit_test(batches_that_are_not_as_long_as_each_other_are_kept_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
