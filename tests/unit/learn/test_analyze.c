/* test_analyze.c - small tables, and what a pass over them learns. */
#include "../source/source_fixture.h"
#include "learn/analyze.h"
#include "unit/test_file.h"

static tundish_status
learn(const struct folder *folder, const char *stages, char **ret_sentences)
{
    char *text = tnd_sprintf("streams: {case: {dataset: [%s]}}", stages);
    char *analysis = tnd_sprintf("%s/analysis", folder->path);
    struct spec_errors errors = { 0 };
    struct analyze_options options = {
        .folder = analysis,
        .cache_folder = folder->cache,
        .thread_count = 1,
        .memory_bytes = ANALYZE_MEMORY_BYTES,
        .is_quiet = true,
        .errors = &errors,
    };
    struct spec_file *file = NULL;
    tundish_status status =
        spec_open_text(text, strlen(text), "case.yaml", folder->path, &errors, &file);

    if (status == TUNDISH_OK) {
        options.file = file;
        options.stream = &file->streams[0];
        status = analyze_run(&options);
    }
    *ret_sentences = errors.count > 0 ? spec_errors_text(&errors) : tnd_strdup(tnd_error_text());
    spec_close(file);
    spec_errors_close(&errors);
    free(analysis);
    free(text);
    return status;
}

static void
assert_file(const struct folder *folder, const char *name, const char *expected)
{
    char *path = tnd_sprintf("%s/analysis/%s", folder->path, name);
    char text[4096];
    FILE *file = fopen(path, "rb");

    if (file == NULL)
        fail_msg("nothing was learned for %s", name);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    free(path);
    if (strstr(text, expected) == NULL)
        fail_msg("'%s' is not in %s: %s", expected, name, text);
}

/* `stages` learn the files named, which hold these texts; NULL: no second one. */
static void
assert_learned(const char *stages, const char *one, const char *text, const char *other,
               const char *other_text)
{
    struct folder folder;
    char *sentences;

    folder_open(&folder);
    if (learn(&folder, stages, &sentences) != TUNDISH_OK)
        fail_msg("%s: %s", stages, sentences);
    assert_file(&folder, one, text);
    if (other != NULL)
        assert_file(&folder, other, other_text);
    free(sentences);
    folder_close(&folder);
}

static void
assert_not_learned(const char *stages, tundish_status expected, const char *sentence)
{
    struct folder folder;
    char *sentences;

    folder_open(&folder);
    assert_int_equal(learn(&folder, stages, &sentences), expected);
    if (strstr(sentences, sentence) == NULL)
        fail_msg("'%s' is not in: %s", sentence, sentences);
    free(sentences);
    folder_close(&folder);
}

#define KEYED "{from_tensor_slices: {x: [1.0, 2.0, 3.0, 4.0, 6.0], k: [a, a, b, b, a]}}, "
#define PAIRS "{from_tensor_slices: {x: [[1.0, 0.0], [3.0, 0.0], [1.0, 4.0], [3.0, 4.0]]}}, "
#define COLOURS                                                                                    \
    "{from_tensor_slices: {w: [red, blue, red, green, blue, red], y: [1, 0, 1, 1, 0, 1]}}, "

static void
moments(void **state)
{
    (void)state;
    assert_learned(KEYED "{scale_to_z_score: {columns: x}}", "x.mean", "\"values\": [3.2]",
                   "x.variance", "\"values\": [2.96]");
    assert_learned(KEYED "{scale_to_z_score_per_key: {columns: x, key: k}}", "x.per_key.mean",
                   "[3.0, 3.5], \"keys\": [\"a\", \"b\"]", "x.per_key.variance",
                   "[4.6666665, 0.25], \"keys\": [\"a\", \"b\"]");
    assert_learned(PAIRS "{normalization: {columns: x}}", "x.mean", "[2.0, 2.0]", "x.variance",
                   "[1.0, 4.0]");
}

static void
extremes(void **state)
{
    (void)state;
    assert_learned(KEYED "{scale_to_0_1: {columns: x}}", "x.min", "[1.0]", "x.max", "[6.0]");
    assert_learned(KEYED "{scale_by_min_max_per_key: {columns: x, key: k}}", "x.per_key.min",
                   "[1.0, 3.0], \"keys\": [\"a\", \"b\"]", "x.per_key.max", "[6.0, 4.0]");
    assert_learned(PAIRS "{scale_to_0_1: {columns: x, elementwise: true}}", "x.min", "[1.0, 0.0]",
                   "x.max", "[3.0, 4.0]");
}

static void
covariance_and_its_axes(void **state)
{
    (void)state;
    assert_learned(PAIRS "{covariance: {columns: x, dtype: float32}}", "x.covariance",
                   "\"shape\": [2, 2], \"values\": [1.0, 0.0, 0.0, 4.0]", NULL, NULL);
    assert_learned(PAIRS "{pca: {columns: x, output_dim: 1, dtype: float32}}", "x.pca",
                   "\"shape\": [2, 1], \"values\": [0.0, 1.0]", NULL, NULL);
    assert_learned("{from_tensor_slices: {x: [[1.0, 1.0], [3.0, 3.0], [2.0, 2.0]]}}, {pca: "
                   "{columns: x, output_dim: 1, dtype: float32}}",
                   "x.pca", "[0.70710677, 0.70710677]", NULL, NULL);
}

/* Numbers whose tails are alike have no tail parameters. */
static void
tails(void **state)
{
    (void)state;
    assert_learned(KEYED "{scale_to_gaussian: {columns: x}}", "x.left_tail", "[0.0]",
                   "x.right_tail", "[0.0]");
    assert_learned(KEYED "{scale_to_gaussian: {columns: x}}", "x.location", "[3.2]", "x.scale",
                   "[1.7204651]");
}

static void
boundaries(void **state)
{
    (void)state;
    assert_learned("{from_tensor_slices: {x: [1, 2, 3, 4, 5, 6, 7, 8]}}, {bucketize: {columns: x, "
                   "num_buckets: 2}}",
                   "x.boundaries", "[5.0]", NULL, NULL);
    assert_learned("{from_tensor_slices: {x: [1.0, 2.0, 3.0, 4.0], k: [a, a, b, b]}}, "
                   "{bucketize_per_key: {columns: x, key: k, num_buckets: 2}}",
                   "x.per_key.boundaries",
                   "\"shape\": [2, 1], \"values\": [2.0, 4.0], \"keys\": [\"a\", \"b\"]", NULL,
                   NULL);
}

static void
rare_terms_weigh_more(void **state)
{
    (void)state;
    /* ln((3 + 1) / (documents + 1)) + 1 */
    assert_learned("{from_tensor_slices: {x: [[0, 1], [0, 0], [0, 2]]}}, {tfidf: {columns: x, "
                   "vocab_size: 3, output: [ids, weights]}}",
                   "weights.idf_weights", "[1.0, 1.6931472, 1.6931472]", NULL, NULL);
    /* ln(1 + 3 / (1 + documents)); unknown ones weigh the mean */
    assert_learned("{from_tensor_slices: {w: ['a b', 'b', 'b c']}}, {text_vectorization: {columns: "
                   "w, output_mode: tf_idf}}",
                   "w.idf_weights", "[0.7973991, 0.5596158, 0.91629076, 0.91629076]",
                   "w.vocabulary.txt", "b\nc\na\n");
    /* padding weighs nothing */
    assert_learned("{from_tensor_slices: {w: ['a b', 'b', 'b c']}}, {text_vectorization: {columns: "
                   "w, output_mode: tf_idf, max_tokens: 6, pad_to_max_tokens: true}}",
                   "w.idf_weights", "[0.7973991, 0.5596158, 0.91629076, 0.91629076, 0.0, 0.0]",
                   NULL, NULL);
}

static void
vocabularies_begin_with_the_most_frequent(void **state)
{
    (void)state;
    assert_learned(COLOURS "{compute_and_apply_vocabulary: {columns: w, vocab_filename: v}}", "v",
                   "red\nblue\ngreen\n", NULL, NULL);
    assert_learned(COLOURS "{compute_and_apply_vocabulary: {columns: w, frequency_threshold: 2, "
                           "store_frequency: true, vocab_filename: v}}",
                   "v", "3 red\n2 blue\n", NULL, NULL);
    assert_learned(COLOURS "{string_lookup: {columns: w}}, {integer_lookup: {columns: y}}",
                   "w.vocabulary.txt", "red\nblue\ngreen\n", "y.vocabulary.txt", "1\n0\n");
}

/* `blue` is the only colour with label 0. */
static void
vocabularies_by_labels_begin_with_the_most_telling(void **state)
{
    (void)state;
    assert_learned(COLOURS
                   "{compute_and_apply_vocabulary: {columns: w, labels: y, vocab_filename: v}}",
                   "v", "blue\nred\ngreen\n", NULL, NULL);
}

static void
data_that_teaches_nothing_is_an_error(void **state)
{
    (void)state;
    assert_not_learned("{range: 3}", TUNDISH_E_PIPELINE, "no stage that learns anything");
    assert_not_learned("{from_tensor_slices: {x: ['1', y]}}, {string_to_number: {columns: x}}, "
                       "{scale_to_z_score: {columns: x}}",
                       TUNDISH_E_DATA,
                       "\"y\" is not a valid float32 (string_to_number, line 1 of case.yaml)");
}

TEST_FILE(test_analyze)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments),
        cmocka_unit_test(extremes),
        cmocka_unit_test(covariance_and_its_axes),
        cmocka_unit_test(tails),
        cmocka_unit_test(boundaries),
        cmocka_unit_test(rare_terms_weigh_more),
        cmocka_unit_test(vocabularies_begin_with_the_most_frequent),
        cmocka_unit_test(vocabularies_by_labels_begin_with_the_most_telling),
        cmocka_unit_test(data_that_teaches_nothing_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
