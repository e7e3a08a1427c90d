/* test_refusals.c - order stages that cannot be what is written, each refused before anything runs,
 * in a sentence that says what to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/memory.h"
#include "plan/plan.h"
#include "unit/test_file.h"

struct refusal {
    const char *stages, *sentence;
};

/* What is said of the pipeline, for the caller to free; "" if it is taken. */
static char *
complaints_of(const char *stages, const char *rest, uint32_t workers)
{
    char *text = tnd_sprintf("streams: {case: {dataset: [%s]%s}}", stages, rest);
    struct plan_options options = { .worker_count = workers, .root_seed = 1 };
    struct spec_errors errors = { 0 };
    struct spec_file *file = NULL;
    struct plan *plan = NULL;
    char *complaints;

    if (spec_open_text(text, strlen(text), "case.yaml", "/", &errors, &file) == TUNDISH_OK)
        (void)plan_open(file, &file->streams[0], &options, &errors, &plan);
    complaints = errors.count > 0 ? spec_errors_text(&errors) : tnd_strdup("");
    plan_close(plan);
    spec_close(file);
    spec_errors_close(&errors);
    free(text);
    return complaints;
}

/* `rest`: of the stream. */
static void
assert_refused(const struct refusal *refusal, const char *rest, uint32_t workers)
{
    char *complaints = complaints_of(refusal->stages, rest, workers);

    if (strstr(complaints, refusal->sentence) == NULL)
        fail_msg("%s%s: '%s' is not in '%s'", refusal->stages, rest, refusal->sentence, complaints);
    /* One error, one line. */
    assert_int_equal(strcspn(complaints, "\n") + 1, strlen(complaints));
    free(complaints);
}

static void
assert_refusals(const struct refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_refused(&refusals[i], "", 1);
}

static void
assert_taken(const char *stages)
{
    char *complaints = complaints_of(stages, "", 1);

    assert_string_equal(complaints, "");
    free(complaints);
}

static void
counts_that_are_no_counts(void **state)
{
    static const struct refusal refusals[] = {
        { "{range: 5}, {batch: -1}",
          "batch_size of batch must be an integer of at least 1, not -1" },
        { "{range: 5}, {batch: 0}", "batch_size of batch must be an integer of at least 1, not 0" },
        { "{range: 5}, {padded_batch: 0}", "of at least 1, not 0" },
        { "{range: 5}, {ragged_batch: 0}", "of at least 1, not 0" },
        { "{range: 5}, {batch: 2}, {rebatch: [2, -1]}", "integers of at least 1, not -1" },
        { "{range: 5}, {batch: 2}, {rebatch: 0}", "of at least 1" },
        { "{range: 5}, {shuffle: -5}", "buffer_size of shuffle must be" },
        { "{range: 5}, {shuffle: 0}", "buffer_size" },
        { "{range: 5}, {window: 0}", "size of window must be an integer of at least 1, not 0" },
        { "{range: 5}, {window: {size: 2, shift: 0}}", "shift of window must be" },
        { "{range: 5}, {window: {size: 2, stride: 0}}", "stride of window must be" },
        { "{range: 5}, {prefetch: -7}", "buffer_size of prefetch must be" },
        { "{range: 5}, {interleave: {dataset: [{range: 3}], cycle_length: 0}}",
          "cycle_length of interleave must be an integer of at least 1, not 0" },
        { "{range: 5}, {interleave: {dataset: [{range: 3}], cycle_length: 2, block_length: 0}}",
          "block_length of interleave must be" },
        { "{range: [0, 5, 0]}", "step of range must not be 0" },
    };

    (void)state;
    assert_refusals(refusals, sizeof refusals / sizeof *refusals);
}

/* As in tf.data, a negative count of these means: all. */
static void
counts_below_zero_that_mean_all(void **state)
{
    (void)state;
    assert_taken("{range: 5}, {take: -7}");
    assert_taken("{range: 5}, {skip: -7}");
    assert_taken("{range: 5}, {repeat: -7}");
}

static void
counts_that_no_number_holds(void **state)
{
    static const struct refusal refusals[] = {
        { "{range: 5}, {take: 99999999999999999999}", "does not fit 64 bits" },
        { "{range: 5}, {skip: 99999999999999999999}", "does not fit 64 bits" },
        { "{range: 5}, {repeat: -99999999999999999999}", "does not fit 64 bits" },
        { "{range: 5}, {batch: 99999999999999999999}", "does not fit 64 bits" },
        { "{range: 5}, {shuffle: 99999999999999999999}", "does not fit 64 bits" },
    };

    (void)state;
    assert_refusals(refusals, sizeof refusals / sizeof *refusals);
    assert_taken("{range: 5}, {take: 9223372036854775807}");
    assert_taken("{range: 5}, {skip: 9223372036854775807}, {batch: 9223372036854775807}");
    assert_taken("{range: 5}, {shuffle: 9223372036854775807}");
}

static void
shards_that_are_none(void **state)
{
    static const struct refusal refusals[] = {
        { "{range: 5}, {shard: {num_shards: 0, index: 0}}", "num_shards of shard must be" },
        { "{range: 5}, {shard: {num_shards: -3, index: 0}}", "num_shards of shard must be" },
        { "{range: 5}, {shard: {num_shards: 2, index: 2}}",
          "index of shard must be less than num_shards (2), not 2" },
        { "{range: 5}, {shard: {num_shards: 2, index: -1}}",
          "index of shard must be an integer of at least 0, not -1" },
        { "{range: 5}, {shard: {num_shards: 2}}", "shard needs index" },
        { "{range: 5}, {shard: {num_shards: HINT, index: 0}}", "or SHARD_HINT, not \"HINT\"" },
    };

    (void)state;
    assert_refusals(refusals, sizeof refusals / sizeof *refusals);
}

#define A "[{range: {stop: 3, name: a}}]"
#define B "[{range: {stop: 3, name: b}}]"

static void
datasets_that_do_not_go_together(void **state)
{
    static const struct refusal refusals[] = {
        { "{zip: [" A ", " A "]}", "two datasets have a column 'a': rename one" },
        { "{zip: []}", "zip needs at least one dataset" },
        { "{concatenate: [" A ", " B "]}", "must have the same columns in the same order" },
        { "{concatenate: [" A ", [{range: {stop: 3, name: a, output_type: int32}}]]}",
          "column 'a' is int64 here, int32 there" },
        { "{concatenate: [" A ", [{zip: [" A ", " B "]}]]}",
          "one dataset has 1 columns, another 2" },
        { "{concatenate: [[{range: {stop: 3, name: a}}, {ragged_batch: 1}, {ragged_batch: 2}], "
          "[{range: {stop: 3, name: a}}, {ragged_batch: 1}, {ragged_batch: 1}, {ragged_batch: "
          "2}]]}",
          "column 'a' has rank 2 here, 3 there, and only those of dense columns may differ" },
        { "{sample_from_datasets: {datasets: [" A ", " B "], seed: 1}}",
          "must have the same columns in the same order" },
        { "{sample_from_datasets: {datasets: [" A ", " A "], weights: [1]}}",
          "there must be as many weights as datasets: 2, not 1" },
        { "{sample_from_datasets: {datasets: [" A ", " A "], weights: [-1, 2]}}",
          "numbers of at least 0" },
    };

    (void)state;
    assert_refusals(refusals, sizeof refusals / sizeof *refusals);
    assert_taken("{concatenate: [" A ", [{range: {stop: 3, name: a}}, {batch: 2}]]}");
}

static void
columns_of_unknown_rank(void **state)
{
#define RANKS "{concatenate: [" A ", [{range: {stop: 3, name: a}}, {batch: 2}]]}, "
    static const struct refusal refusals[] = {
        { RANKS "{padded_batch: 2}", "set padded_shapes" },
        { RANKS "{padded_batch: {batch_size: 2, padded_shapes: {a: null}}}", "set padded_shapes" },
        { RANKS "{padded_batch: {batch_size: 2, padded_shapes: [1, 1, 1, 1, 1, 1, 1, 1]}}",
          "padded_shapes has 8 dimensions for column 'a'" },
    };

    (void)state;
    assert_refusals(refusals, sizeof refusals / sizeof *refusals);
    assert_taken(RANKS "{padded_batch: {batch_size: 2, padded_shapes: [3]}}");
#undef RANKS
}

static void
choices_that_choose_nothing(void **state)
{
#define CHOOSE(choice)                                                                             \
    "{choose_from_datasets: {datasets: [" A ", " A "], choice_dataset: [" choice "]}}"
    static const struct refusal refusals[] = {
        { CHOOSE("{from_tensor_slices: {c: [0, 1]}}"), "is int32: add `cast: int64` to it" },
        { CHOOSE("{zip: [" A ", " B "]}"), "must have one column, an int64 scalar, and has 2" },
        { CHOOSE("{range: 2}, {batch: 2}"), "has a shape: remove its batch" },
    };

    (void)state;
    assert_refusals(refusals, sizeof refusals / sizeof *refusals);
    assert_taken(CHOOSE("{from_tensor_slices: {c: [0, 1]}}, {cast: int64}"));
#undef CHOOSE
}

#define BUCKETS(column)                                                                            \
    "{bucket_by_sequence_length: {column: " column                                                 \
    ", bucket_boundaries: [2], bucket_batch_sizes: [1, 1]}}"

static void
lengths_that_there_are_not(void **state)
{
    static const struct refusal refusals[] = {
        { "{range: 5}, {cast: {columns: value, dtype: int32}}, " BUCKETS("value"),
          "is a scalar of int32, which has no length: name a column" },
        { "{range: 5}, {batch: 2}, " BUCKETS("length"), "there is no column 'length'" },
        { "{range: 5}, {unbatch: {}}", "column 'value' is a scalar" },
        { "{range: 5}, {padded_batch: {batch_size: 2, padded_shapes: [3]}}",
          "padded_shapes has rank 1 for column 'value', which has rank 0" },
    };

    (void)state;
    assert_refusals(refusals, sizeof refusals / sizeof *refusals);
}

static void
groups_that_there_are_not(void **state)
{
    static const struct refusal refusals[] = {
        { "{range: 5}, {group_by_window: value}", "needs window_size or window_size_func" },
        { "{range: 5}, {group_by_window: {key: value, window_size: 2, window_size_func: key}}",
          "and not both" },
        { "{range: 5}, {group_by_window: {key: value > 2, window_size: 2}}",
          "needs one int64 for each element, not bool" },
        { "{range: 5}, {batch: 2}, {group_by_window: {key: value, window_size: 2}}",
          "needs one int64 for each element" },
        { "{range: 5}, {group_by_window: {key: value, window_size_func: value}}", "value" },
        { "{range: 5}, {group_by_window: {key: value, window_size: 2, padding_values: 1}}",
          "need reduce: padded_batch" },
        { "{range: 5}, repeat, {group_by_window: {key: value, window_size: 9000000000000000000}}",
          "use a smaller window_size" },
    };

    (void)state;
    assert_refusals(refusals, sizeof refusals / sizeof *refusals);
    assert_taken("{range: 5}, repeat, {group_by_window: {key: value, window_size: 2}}");
}

static void
ends_that_never_come(void **state)
{
    static const struct refusal refusals[] = {
        { "{range: 5}, repeat, {shuffle: -2}", "put repeat after shuffle" },
        { "{range: 5}, repeat, {shuffle: 9000000000000000000}", "use a smaller buffer_size" },
        { "{range: 5}, repeat, {batch: 9000000000000000000}", "use a smaller batch_size" },
        { "{range: 5}, repeat, {permute: 1}", "put permute before it, or use shuffle" },
        { "{range: 5}, repeat, {window: 9000000000000000000}", "use a smaller size" },
        { "{range: 5}, {batch: 1}, repeat, {rebatch: 9000000000000000000}",
          "use a smaller batch_size" },
        { "{range: 5}, {batch: 1}, repeat, {bucket_by_sequence_length: {column: value, "
          "bucket_boundaries: [2], bucket_batch_sizes: [1, 9000000000000000000]}}",
          "use a smaller bucket_batch_sizes" },
    };

    (void)state;
    assert_refusals(refusals, sizeof refusals / sizeof *refusals);
    assert_taken("{range: 5}, repeat, {take: 9}, {shuffle: -2}");
    assert_taken("{range: 5}, repeat, {cache: {filename: c}}, {batch: 2}"); /* keeps nothing */
}

static void
rows_that_no_memory_holds(void **state)
{
#define SAYS "would have more than 2 GiB in each row: check the sizes"
    static const struct refusal refusals[] = {
        { "{from_tensor_slices: {v: [[1], [2]]}}, {padded_batch: {batch_size: 2, padded_shapes: "
          "[4611686018427387904]}}",
          "padded_batch: column 'v' " SAYS },
        { "{range: 3}, {one_hot: 4611686018427387904}", "one_hot: column 'value' " SAYS },
        { "{range: 3}, {batch: 3}, {pad_or_truncate: {length: 4611686018427387904}}",
          "pad_or_truncate: column 'value' " SAYS },
    };
#undef SAYS

    (void)state;
    assert_refusals(refusals, sizeof refusals / sizeof *refusals);
    assert_taken("{range: 3}, {batch: {batch_size: 4611686018427387904, drop_remainder: true}}, "
                 "{map: {value: \"value + 1\"}}");
}

static void
sparse_rows_that_are_none(void **state)
{
    static const struct refusal refusals[] = {
        { "{range: 4}, {batch: 2}, to_sparse, unbatch", "to_sparse after it" },
        { "{range: 4}, {batch: 2}, to_sparse, {rebatch: 3}", "to_sparse after it" },
    };

    (void)state;
    assert_refusals(refusals, sizeof refusals / sizeof *refusals);
}

#define IMAGES "{from_tensors: {a: [[[1.0]]], b: [[[2.0]]]}}"

static void
draws_that_cannot_be_shared(void **state)
{
    static const struct refusal refusals[] = {
        { IMAGES ", {random_flip: {columns: a, draws: d}}, {random_crop: {columns: b, draws: d, "
                 "height: 1, width: 1}}",
          "only stages of one kind can share draws" },
        { IMAGES ", {random_flip: {columns: a, draws: d, seed: 1}}, {random_flip: {columns: b, "
                 "draws: d, seed: 2}}",
          "give the seed to the first stage that has them" },
        { IMAGES ", {random_flip: {columns: a, redraw: true}}", "redraw needs draws" },
        { IMAGES ", {random_flip: {columns: a, draws: d, redraw: true}}, cache, {random_flip: "
                 "{columns: b, draws: d, redraw: true}}",
          "use another name" },
    };

    (void)state;
    assert_refusals(refusals, sizeof refusals / sizeof *refusals);
    assert_taken(IMAGES ", {random_flip: {columns: a, draws: d, seed: 1}}, {random_flip: "
                        "{columns: b, draws: d, seed: 1}}");
    assert_taken(IMAGES ", {random_flip: {columns: a, draws: d}}, cache, {random_flip: "
                        "{columns: b, draws: d}}");
}

static void
slices_that_cannot_be_even(void **state)
{
    const struct {
        struct refusal refusal;
        const char *even;
        uint32_t workers;
    } refusals[] = {
        { { "range: 8, batch: 3", "a batch of 3 rows cannot be divided evenly among 2 replicas" },
          "replicas: 2",
          1 },
        { { "range: 8, batch: 4", "use rebatch: split" }, "replicas: 2, rebatch: carry", 1 },
        { { "range: 8, batch: 4", "readers of a queue" }, "delivery: queue", 1 },
        { { "range: 8, batch: 4", "readers of an evaluation" }, "evaluation_shards: 2", 1 },
        { { "range: 8, batch: 4", "from_function" }, "from_function: true", 1 },
        { { "range: 8, batch: 4", "set one of the two" }, "drop_remainder_step: true", 1 },
        { { "range: 8, batch: 4", "name already" }, "replicas: 2, mask: value", 1 },
        { { "range: 8, batch: 4", "use auto_shard: DATA" }, "replicas: 2, auto_shard: HINT", 2 },
        { { "list_files: \"*.txt\", {flat_map: {dataset: [{text_line: {filenames: $value}}]}}, "
            "batch: 4",
            "use auto_shard: DATA" },
          "replicas: 2",
          2 },
        { { "range: 8", "add `batch: G`" }, "replicas: 1", 1 },
        { { "from_tensors: {value: [1, 2, 3, 4]}, {batch: 1}, {unbatch: }",
            "known only once it is made" },
          "replicas: 2",
          1 },
        { { "values: {value: replica_id_in_sync_group}", "remove even: repeat" },
          "replicas: 2",
          1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        char *rest = tnd_sprintf(", distribute: {even: repeat, %s}", refusals[i].even);

        assert_refused(&refusals[i].refusal, rest, refusals[i].workers);
        free(rest);
    }
    assert_refused(&(struct refusal){ "range: 8, batch: 4", "mask: 'real'" },
                   ", distribute: {mask: real}", 1);
    assert_refused(&(struct refusal){ "range: 8, batch: 4", "on_error: skip" },
                   ", distribute: {even: repeat}, deliver: {on_error: skip}", 1);
}

TEST_FILE(test_refusals)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_that_are_no_counts),
        cmocka_unit_test(counts_below_zero_that_mean_all),
        cmocka_unit_test(counts_that_no_number_holds),
        cmocka_unit_test(shards_that_are_none),
        cmocka_unit_test(datasets_that_do_not_go_together),
        cmocka_unit_test(columns_of_unknown_rank),
        cmocka_unit_test(choices_that_choose_nothing),
        cmocka_unit_test(lengths_that_there_are_not),
        cmocka_unit_test(groups_that_there_are_not),
        cmocka_unit_test(ends_that_never_come),
        cmocka_unit_test(rows_that_no_memory_holds),
        cmocka_unit_test(sparse_rows_that_are_none),
        cmocka_unit_test(draws_that_cannot_be_shared),
        cmocka_unit_test(slices_that_cannot_be_even),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
