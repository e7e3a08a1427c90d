/* test_distribute.c - what distribution makes of a stream, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/memory.h"
#include "order/arguments.h"
#include "plan/plan.h"
#include "plan/resume.h"
#include "unit/test_file.h"

struct planned {
    struct spec_file *file;
    struct plan *plan;
    char *errors; /* NULL: none */
};

static void
planned_open(struct planned *planned, const char *stages, const char *distribute, uint32_t workers)
{
    char *text =
        tnd_sprintf("streams: {case: {dataset: [%s], distribute: {%s}}}", stages, distribute);
    struct plan_options options = { .worker_count = workers, .root_seed = 1 };
    struct spec_errors errors = { 0 };

    *planned = (struct planned){ 0 };
    if (spec_open_text(text, strlen(text), "case.yaml", "/", &errors, &planned->file) == TUNDISH_OK)
        (void)plan_open(planned->file, &planned->file->streams[0], &options, &errors,
                        &planned->plan);
    if (errors.count > 0)
        planned->errors = spec_errors_text(&errors);
    spec_errors_close(&errors);
    free(text);
}

static void
planned_close(struct planned *planned)
{
    plan_close(planned->plan);
    spec_close(planned->file);
    free(planned->errors);
}

static void
assert_policy(const char *stages, const char *distribute, enum spec_auto_shard policy,
              const char *reason)
{
    struct planned planned;

    planned_open(&planned, stages, distribute, 2);
    if (planned.errors != NULL)
        fail_msg("%s", planned.errors);
    assert_int_equal(planned.plan->policy, policy);
    assert_non_null(strstr(planned.plan->policy_reason, reason));
    planned_close(&planned);
}

static void
assert_refused(const char *stages, const char *distribute, uint32_t workers, const char *sentence)
{
    struct planned planned;

    planned_open(&planned, stages, distribute, workers);
    if (planned.errors == NULL)
        fail_msg("%s is taken", stages);
    if (strstr(planned.errors, sentence) == NULL)
        fail_msg("'%s' is not in:\n%s", sentence, planned.errors);
    planned_close(&planned);
}

static void
auto_finds_lists_of_files(void **state)
{
    (void)state;
    assert_policy("{tfrecord: {filenames: [a, b]}}, {batch: 4}", "", SHARD_FILE, "list of files");
    assert_policy("{list_files: \"x*\"}, {interleave: {dataset: [tfrecord], cycle_length: 2}}, "
                  "{shuffle: 9}, {batch: 4}, {prefetch: 1}",
                  "", SHARD_FILE, "list of files");
    assert_policy("{range: 9}, {batch: 4}", "", SHARD_DATA, "not in a list of files");
    assert_policy("{csv: {filenames: [a], record_defaults: [int64], column_names: [x]}}, "
                  "{batch: 4}",
                  "", SHARD_DATA, "not in a list of files");
    assert_policy("{tfrecord: {filenames: [a, b]}}, {enumerate: 0}, {batch: 4}", "", SHARD_DATA,
                  "not in a list of files");
    assert_policy(
        "{tfrecord: {filenames: [a, b]}}, {group_by_window: {key: \"cast(length(value), int64)\", "
        "window_size: 4}}",
        "", SHARD_DATA, "not in a list of files");
    assert_policy("{range: 9}, {batch: 4}", "auto_shard: \"OFF\"", SHARD_OFF, "asked for");
    assert_policy("{range: 9}, {batch: 4}", "from_function: true", SHARD_OFF, "from_function");
}

#define FROM_LIST "{from_tensor_slices: {value: [1, 2]}}, {flat_map: [{range: [0, $value]}]}"
#define FROM_RANGE "{range: 2}, {flat_map: [{range: [0, $value]}]}"

static void
auto_deals_what_a_function_on_a_list_yields_to_another(void **state)
{
    (void)state;
    assert_policy(FROM_LIST ", {flat_map: [{range: $value}]}, {batch: 4}", "", SHARD_FILE,
                  "the output of the first function");
    assert_policy(FROM_LIST ", {shuffle: 3}, {window: 4}", "", SHARD_FILE,
                  "the output of the first function");
    assert_policy(FROM_LIST ", {batch: 4}", "", SHARD_DATA, "not in a list of files");
    assert_policy(FROM_RANGE ", {window: 4}", "", SHARD_DATA, "not in a list of files");
    assert_policy("{zip: [[" FROM_LIST "]]}, {window: 4}", "", SHARD_DATA,
                  "not in a list of files");
}

static void
file_without_files_is_refused(void **state)
{
    (void)state;
    assert_refused("{range: 9}, {batch: 4}", "auto_shard: FILE", 2, "use DATA or AUTO");
}

static void
only_what_has_rows_is_shared(void **state)
{
    struct planned planned;

    (void)state;
    assert_refused("{range: 9}", "replicas: 2", 1, "no batch to deal");
    assert_refused("{from_tensor_slices: {g: [[1, 2], [3, 4]]}}", "replicas: 2", 1,
                   "no batch to deal between them: add `batch: G`, the global batch size, or set "
                   "from_function: true; if each element is a batch already, add `unbatch` before "
                   "`batch: G`");
    assert_refused("{from_tensor_slices: {g: [[1, 2], [3, 4]], h: [5, 6]}}", "replicas: 2", 1,
                   "or set from_function: true\n");
    assert_refused("{program: {command: [\"true\"], spec: {g: {dtype: int8, shape: []}}}}",
                   "replicas: 2", 1, "no batch to deal");
    assert_refused("{range: 9}, {batch: 4}, {enumerate: 0}", "replicas: 2", 1, "scalar");
    planned_open(&planned, "{program: {command: [\"true\"], spec: {g: {dtype: int8, shape: [4]}}}}",
                 "replicas: 2", 1);
    if (planned.errors != NULL)
        fail_msg("%s", planned.errors);
    assert_int_equal(planned.plan->global_batch, 4);
    assert_int_equal(planned.plan->element_spec.columns[0].shape[0], 2);
    planned_close(&planned);
}

static void
variables_of_the_input_context_stand_in_expressions(void **state)
{
    struct planned planned;

    (void)state;
    planned_open(&planned,
                 "{range: 9}, {map: {value: \"value + $input_pipeline_id * $num_input_pipelines + "
                 "$per_replica_batch_size( 8 ) + $num_replicas_in_sync\"}}, {filter: \"value % "
                 "$num_input_pipelines == 0\"}",
                 "from_function: true, replicas: 2", 2);
    if (planned.errors != NULL)
        fail_msg("%s", planned.errors);
    planned_close(&planned);
    assert_refused("{range: 9}, {map: {value: \"value + $per_replica_batch_size(10)\"}}",
                   "from_function: true, replicas: 2", 2,
                   "10 is not divisible by the 4 replicas in sync: 2 rows");
    assert_refused("{range: 9}, {map: {value: \"value + $num_input_pipelines\"}}", "", 1,
                   "num_input_pipelines");
}

/* What the plan says of draws that each worker numbers by itself, or "". */
static void
assert_draws(const char *stages, const char *distribute, uint32_t workers, const char *sentence)
{
    struct planned planned;
    char *said;

    planned_open(&planned, stages, distribute, workers);
    if (planned.errors != NULL)
        fail_msg("%s", planned.errors);
    said = plan_draws_sentence(planned.plan);
    if (*sentence == '\0')
        assert_null(said);
    else if (said == NULL || strstr(said, sentence) == NULL)
        fail_msg("'%s' is not in '%s'", sentence, said == NULL ? "" : said);
    free(said);
    planned_close(&planned);
}

static void
draws_that_hang_on_the_number_of_workers_are_told(void **state)
{
    static const char stages[] =
        "{tfrecord: {filenames: [a, b]}}, {decode_raw: uint8}, {reshape: [4, 4, 3]}, {batch: 4}, "
        "{random_flip: {}}";

    (void)state;
    assert_draws(stages, "", 2, "random_flip (line 1) draws random numbers by the count of rows");
    assert_draws(stages, "auto_shard: FILE", 1, "with another number of nodes a row gets others");
    assert_draws(stages, "auto_shard: FILE", 2, "valid for the same number of nodes");
    assert_draws(stages, "auto_shard: DATA", 2, "");
    assert_draws(stages, "from_function: true", 2, "");
}

#define FLIPPED "{reshape: [4, 4, 3]}, {random_flip: {}}"
#define HINTED "{shard: {num_shards: SHARD_HINT}}"

static void
draws_before_rows_are_dealt_hang_on_nothing(void **state)
{
    (void)state;
    assert_draws("{range: 48}, {batch: 48}, " FLIPPED ", " HINTED ", {batch: 2}",
                 "auto_shard: HINT", 2, "");
    assert_draws("{range: 48}, {batch: 48}, " HINTED ", " FLIPPED ", {batch: 2}",
                 "auto_shard: HINT", 2, "random_flip (line 1) draws");
}

static void
permute_needs_numbers(void **state)
{
    struct planned planned;

    (void)state;
    assert_refused("{range: 9}, {shuffle: 3}, {permute: 1}", "", 1, "not shuffle");
    assert_refused("{range: 9}, {filter: \"value > 1\"}, {permute: 1}", "", 1, "not filter");
    planned_open(&planned, "{tfrecord: {filenames: [a, b]}}, {permute: 1}, {batch: 4}", "", 2);
    assert_null(planned.errors);
    planned_close(&planned);
}

static void
rows_that_only_content_knows_are_cut_from_it(void **state)
{
    static const char lists[] = "{range: 9}, {batch: 2}, {padded_batch: 2}, {unbatch: {}}";
    char *rebatched = tnd_sprintf("%s, {rebatch: 2}", lists);
    const struct plan_node *root;
    struct planned planned;

    (void)state;
    planned_open(&planned, rebatched, "", 1);
    assert_null(planned.errors);
    root = planned.plan->graph->root;
    assert_true(root->cuts_content);
    assert_int_equal(((const struct rebatch_arguments *)root->arguments)->rows, -1);
    planned_close(&planned);
    planned_open(&planned, lists, "replicas: 2", 1);
    assert_null(planned.errors);
    root = planned.plan->graph->root;
    assert_true(root->cuts_content);
    assert_int_equal(root->width, root->inputs[0]->width + 1);
    planned_close(&planned);
    free(rebatched);
}

/* A batch of batches is taken off again, but not the stage that looked at whole batches before. */
static void
rows_are_mixed_before_the_batch_that_is_taken_off(void **state)
{
    struct planned planned;

    (void)state;
    planned_open(&planned,
                 "{range: 8}, {batch: {batch_size: 4, drop_remainder: true}}, "
                 "{map: {value: value - max(value)}}, "
                 "{batch: {batch_size: 2, drop_remainder: true}}, {unbatch: {}}",
                 "replicas: 2", 1);
    if (planned.errors != NULL)
        fail_msg("%s", planned.errors);
    assert_true(planned.plan->graph->root->cuts_content);
    planned_close(&planned);
}

#define SAMPLED(weights_and_stop)                                                                  \
    "{sample_from_datasets: {datasets: [[{range: 3}], [{range: 3}, {repeat: -1}]], seed: "         \
    "1, " weights_and_stop "}}, {shuffle: -2}, {batch: 4}"

static void
a_sampled_end_comes_with_the_first_dataset_or_the_last(void **state)
{
    (void)state;
    assert_refused(SAMPLED("stop_on_empty_dataset: false"), "", 1, "never full");
    assert_policy(SAMPLED("stop_on_empty_dataset: true"), "", SHARD_DATA, "");
    assert_policy(SAMPLED("weights: [1, 0]"), "", SHARD_DATA, "");
    assert_refused(SAMPLED("weights: [0, 1]"), "", 1, "never full");
}

static void
datasets_without_a_weight_are_left_out(void **state)
{
    struct planned planned;

    (void)state;
    planned_open(&planned,
                 "{sample_from_datasets: {datasets: [[{range: 3}], [{range: [10, 14]}, {take: 2}], "
                 "[{range: 5}]], weights: [1, 0, 1], seed: 1}}",
                 "", 1);
    assert_null(planned.errors);
    assert_int_equal(planned.plan->graph->root->input_count, 2);
    assert_int_equal(planned.plan->graph->node_count, 3);
    planned_close(&planned);
    planned_open(&planned,
                 "{sample_from_datasets: {datasets: [[{range: 3}], [{range: [10, 14]}]], "
                 "weights: [0.0, 1.0], seed: 1}}",
                 "", 1);
    assert_null(planned.errors);
    assert_string_equal(planned.plan->graph->root->name, "range");
    assert_int_equal(planned.plan->graph->node_count, 1);
    planned_close(&planned);
}

static void
an_end_that_never_comes_is_refused(void **state)
{
    struct planned planned;

    (void)state;
    assert_refused("{range: 9}, {repeat: -1}, {map: {value: \"value + 1\"}}, {shuffle: -2}", "", 1,
                   "never full");
    assert_refused("{zip: [[{range: {stop: 9, name: a}}, {repeat: -1}], [{range: {stop: 9, name: "
                   "b}}, {repeat: -1}]]}, {shuffle: -2}",
                   "", 1, "never full");
    planned_open(&planned, "{range: 9}, {repeat: -1}, {take: 20}, {shuffle: -2}, {repeat: -1}", "",
                 1);
    assert_null(planned.errors);
    planned_close(&planned);
}

static void
unlike_columns_are_refused(void **state)
{
    (void)state;
    assert_refused("{concatenate: [[{range: {stop: 3, name: a}}], [{range: {stop: 3, name: b}}]]}",
                   "", 1, "concatenate");
    assert_refused("{concatenate: [[{range: 3}], [{range: {stop: 3, output_type: int32}}]]}", "", 1,
                   "int32");
    assert_refused("{zip: [[{range: 3}], [{range: 3}]]}", "", 1, "zip");
}

TEST_FILE(test_distribute)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_finds_lists_of_files),
        cmocka_unit_test(auto_deals_what_a_function_on_a_list_yields_to_another),
        cmocka_unit_test(file_without_files_is_refused),
        cmocka_unit_test(only_what_has_rows_is_shared),
        cmocka_unit_test(variables_of_the_input_context_stand_in_expressions),
        cmocka_unit_test(draws_that_hang_on_the_number_of_workers_are_told),
        cmocka_unit_test(draws_before_rows_are_dealt_hang_on_nothing),
        cmocka_unit_test(permute_needs_numbers),
        cmocka_unit_test(rows_that_only_content_knows_are_cut_from_it),
        cmocka_unit_test(rows_are_mixed_before_the_batch_that_is_taken_off),
        cmocka_unit_test(datasets_without_a_weight_are_left_out),
        cmocka_unit_test(an_end_that_never_comes_is_refused),
        cmocka_unit_test(a_sampled_end_comes_with_the_first_dataset_or_the_last),
        cmocka_unit_test(unlike_columns_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
