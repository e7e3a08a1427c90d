/* test_check_dataset.c - lists of stages, by name or written out, and how they hang together. */
#include "spec_fixture.h"

#include "spec/stages.h"
#include "unit/test_file.h"

static void
a_dataset_begins_with_what_stands_first(void **state)
{
    (void)state;
    assert_errors(
        STREAM_OF("batch: 5", "range: 5", "zip: [[{range: 5}]]"),
        "4:9: batch cannot be the first stage: a dataset begins with a source (range, list_files, "
        "tfrecord, ...) or with zip, concatenate, sample_from_datasets or choose_from_datasets\n"
        "5:9: range can only be the first stage; inside interleave or flat_map it reads the outer "
        "element\n"
        "6:9: zip can only be the first stage; move the stages before it to `datasets`\n");
    assert_error_has("streams: {case: {dataset: []}}\n", "at least one stage");
    assert_error_has("streams: {case: {dataset: 5}}\n",
                     "the name of a dataset or a list of stages");
    assert_error_has("streams: {case: {dataset: {range: 5}}}\n",
                     "not a mapping; put `- ` before each stage");
}

static void
a_name_stands_for_one_dataset(void **state)
{
    struct spec_file *file = parse("datasets:\n"
                                   "  low: [range: 5]\n"
                                   "  both: [zip: [low, [range: {stop: 5, name: x}]]]\n"
                                   "streams:\n"
                                   "  a: {dataset: both}\n"
                                   "  b: {dataset: [concatenate: [low, low]]}\n");
    const struct spec_dataset *zip = &spec_find_stream(file, "a")->dataset;
    const struct spec_dataset *joined = &spec_find_stream(file, "b")->dataset;
    const struct spec_value *list = spec_get(&joined->stages[0], "datasets");

    (void)state;
    assert_string_equal(zip->name, "both");
    assert_int_equal(zip->stage_total, 3);
    assert_int_equal(zip->depth, 2);
    assert_null(joined->name);
    assert_int_equal(list->items[0].kind, SPEC_DATASET);
    assert_ptr_equal(list->items[0].dataset, list->items[1].dataset);
    assert_ptr_equal(list->items[0].dataset,
                     spec_get(&zip->stages[0], "datasets")->items[0].dataset);
    assert_string_equal(list->items[0].dataset->name, "low");
    spec_close(file);
}

static void
unknown_datasets_bring_the_nearest(void **state)
{
    (void)state;
    assert_errors("datasets: {negatives: [range: 5]}\n"
                  "streams: {case: {dataset: [zip: [negativ, tfrecord, 5, other]]}}\n",
                  "2:34: there is no dataset \"negativ\"; did you mean negatives?\n"
                  "2:43: there is no dataset \"tfrecord\"; for a list of this one stage write "
                  "[tfrecord]\n"
                  "2:53: expected the name of a dataset or a list of stages, not 5\n"
                  "2:56: there is no dataset \"other\"; expected a name from `datasets:` or a list "
                  "of stages\n");
}

static void
circles_are_refused_with_their_chain(void **state)
{
    (void)state;
    assert_errors("datasets:\n  a: [zip: [b]]\n  b: [zip: [c]]\n  c: [zip: [a]]\n"
                  "streams: {case: {dataset: a}}\n",
                  "4:13: the dataset a contains itself: a -> b -> c -> a\n");
    assert_error_has("datasets:\n  a: [zip: [a]]\nstreams: {case: {dataset: a}}\n",
                     "2:13: the dataset a contains itself: a -> a");
    assert_error_has("datasets:\n  x: [zip: [a]]\n  a: [zip: [a]]\nstreams: {case: {dataset: x}}\n",
                     "the dataset a contains itself: a -> a");
}

/* d0, and d1 to d`count`, each mentioning the one before `mentions` times. */
static char *
chain(unsigned count, unsigned mentions, bool is_reversed)
{
    char *text;
    size_t text_bytes;
    FILE *out = open_memstream(&text, &text_bytes);

    fputs("datasets:\n  d0: [range: 5]\n", out);
    for (unsigned i = 1; i <= count; i++) {
        unsigned number = is_reversed ? count + 1 - i : i;

        fprintf(out, "  d%u: [concatenate: [d%u", number, number - 1);
        for (unsigned j = 1; j < mentions; j++)
            fprintf(out, ", d%u", number - 1);
        fputs("]]\n", out);
    }
    fprintf(out, "streams: {case: {dataset: d%u}}\n", count);
    fclose(out);
    return text;
}

static void
depth_is_bounded_in_whatever_order_datasets_stand(void **state)
{
    char *text = chain(31, 1, false);

    (void)state;
    spec_close(parse(text));
    free(text);
    text = chain(500, 1, false);
    assert_error_has(text, "nested more than 32 deep: d32 -> ...");
    free(text);
    text = chain(500, 1, true);
    assert_error_has(text, "nested more than 32 deep: d500 -> d499");
    free(text);
}

static void
what_doubles_at_each_level_is_refused_at_once(void **state)
{
    char *text = chain(30, 10, false);

    (void)state;
    assert_error_has(text, "more than 10000 stages");
    free(text);
}

static void
unused_datasets_are_checked_too(void **state)
{
    (void)state;
    assert_errors("datasets: {a: [rnge: 5], b: 7}\nstreams: {case: {dataset: [range: 5]}}\n",
                  "1:16: there is no stage \"rnge\"; did you mean range?\n"
                  "1:29: expected a list of stages, not 7\n");
}

static void
a_dataset_among_stages_is_told_how_to_begin_with_it(void **state)
{
    (void)state;
    assert_errors("datasets: {base: [range: 5]}\nstreams: {case: {dataset: [base, batch: 2]}}\n",
                  "2:28: \"base\" is a dataset of this file, not a stage; `concatenate: [base]` "
                  "begins with its elements\n");
    spec_close(parse("datasets: {base: [range: 5]}\n"
                     "streams: {case: {dataset: [concatenate: [base], batch: 2]}}\n"));
}

static void
values_stands_alone(void **state)
{
    (void)state;
    spec_close(parse("streams: {case: {dataset: [values: {x: replica_id_in_sync_group}], "
                     "distribute: {replicas: 2}}}\n"));
    assert_error_has(STREAM_OF("values: {x: 1}", "batch: 2"),
                     "values must be the only stage of a stream");
    assert_error_has(STREAM_OF("zip: [[{values: {x: 1}}]]"),
                     "values must be the only stage of a stream");
}

TEST_FILE(test_check_dataset)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dataset_begins_with_what_stands_first),
        cmocka_unit_test(a_name_stands_for_one_dataset),
        cmocka_unit_test(unknown_datasets_bring_the_nearest),
        cmocka_unit_test(circles_are_refused_with_their_chain),
        cmocka_unit_test(depth_is_bounded_in_whatever_order_datasets_stand),
        cmocka_unit_test(what_doubles_at_each_level_is_refused_at_once),
        cmocka_unit_test(unused_datasets_are_checked_too),
        cmocka_unit_test(a_dataset_among_stages_is_told_how_to_begin_with_it),
        cmocka_unit_test(values_stands_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
