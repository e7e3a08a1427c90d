/* test_dealer.c - which replica gets which slice at which step. */
#include "../source/source_fixture.h"
#include "batch/dealer.h"
#include "unit/test_file.h"

struct dealt {
    struct spec_errors errors;
    struct spec_file *file;
    struct plan *plan;
    struct source_files *files;
    struct dealer *dealer;
    struct folder folder;
};

/* `stages` may go on with "], " and more of the stream. */
static void
deal(struct dealt *dealt, const char *stages, uint32_t worker, uint32_t worker_count,
     uint32_t replicas)
{
    const char *rest = strstr(stages, "]") == NULL ? "]" : "";
    char *text = tnd_sprintf("seed: 3\nstreams: {case: {dataset: [%s%s}}", stages, rest);
    struct plan_options plan_options = { .worker = worker,
                                         .worker_count = worker_count,
                                         .replicas = replicas };
    struct dealer_options options = { 0 };
    struct source_files_options files;

    memset(dealt, 0, sizeof *dealt);
    folder_open(&dealt->folder);
    files = (struct source_files_options){ .root = dealt->folder.path,
                                           .cache_folder = dealt->folder.cache };
    if (spec_open_text(text, strlen(text), "case.yaml", "/", &dealt->errors, &dealt->file) !=
            TUNDISH_OK ||
        plan_open(dealt->file, &dealt->file->streams[0], &plan_options, &dealt->errors,
                  &dealt->plan) != TUNDISH_OK)
        fail_msg("%s", spec_errors_text(&dealt->errors));
    free(text);
    assert_int_equal(source_files_open(&files, &dealt->files), TUNDISH_OK);
    options.files = dealt->files;
    assert_int_equal(dealer_open(dealt->plan, &options, &dealt->dealer), TUNDISH_OK);
}

static void
put_away(struct dealt *dealt)
{
    dealer_close(dealt->dealer);
    source_files_close(dealt->files);
    plan_close(dealt->plan);
    spec_close(dealt->file);
    spec_errors_close(&dealt->errors);
    folder_close(&dealt->folder);
}

static void
print_slice(FILE *out, const struct dealt *dealt, const struct deal_slice *slice)
{
    const struct schema *schema = &dealt->plan->graph->root->schema;
    struct evaluation evaluation = { .files = dealt->files, .scratch = scratch_open() };
    struct evaluate_request request = { .words = slice->words, .count = 1 };
    struct frame frame;

    if (!slice->present) {
        fputc('-', out);
    } else {
        assert_int_equal(evaluate(&evaluation, dealt->plan->graph->root, &request, &frame),
                         TUNDISH_OK);
        assert_int_equal(schema->columns[0].dtype, TUNDISH_INT64);
        for (int64_t i = 0; i < frame.columns[0].value_count; i++)
            fprintf(out, "%s%lld", i > 0 ? "," : "",
                    (long long)((const int64_t *)frame.columns[0].values)[i]);
    }
    scratch_close(evaluation.scratch);
}

/* What is left of the epoch: replicas' slices with blanks between, steps with bars. "-" is no
 * slice. */
static const char *
steps_left(struct dealt *dealt)
{
    static char text[1024];
    FILE *out = fmemopen(text, sizeof text, "w");

    text[0] = '\0';
    for (bool first = true;; first = false) {
        struct deal_round round;
        uint32_t present;

        assert_int_equal(dealer_next(dealt->dealer, &round), TUNDISH_OK);
        present = round.present_count;
        for (uint32_t r = 0; r < round.replicas && present > 0; r++) {
            fputs(r > 0 ? " " : first ? "" : " | ", out);
            print_slice(out, dealt, &round.slices[r]);
        }
        dealer_release_round(&round);
        if (present == 0)
            break;
    }
    fclose(out);
    return text;
}

static void
assert_dealt(const char *stages, uint32_t worker, uint32_t worker_count, uint32_t replicas,
             const char *expected)
{
    struct dealt dealt;

    deal(&dealt, stages, worker, worker_count, replicas);
    assert_int_equal(dealer_start_epoch(dealt.dealer), TUNDISH_OK);
    assert_string_equal(steps_left(&dealt), expected);
    put_away(&dealt);
}

static void
slices_go_to_the_replicas_in_turn(void **state)
{
    (void)state;
    assert_dealt("{range: 4}, {batch: 2}", 0, 1, 1, "0,1 | 2,3");
    assert_dealt("{range: 8}, {batch: 4}", 0, 1, 2, "0,1 2,3 | 4,5 6,7");
    assert_dealt("{range: 12}, {batch: 6}", 0, 1, 3, "0,1 2,3 4,5 | 6,7 8,9 10,11");
}

static void
a_short_batch_leaves_replicas_with_less(void **state)
{
    (void)state;
    assert_dealt("{range: 5}, {batch: 4}", 0, 1, 2, "0,1 2,3 | 4 ");
    assert_dealt("{range: 0}, {batch: 4}", 0, 1, 2, "");
}

/* Scalars cannot be an empty batch. */
static void
a_round_that_lacks_scalars_is_left_out(void **state)
{
    (void)state;
    assert_dealt("{range: 5}], distribute: {from_function: true}", 0, 1, 2, "0 1 | 2 3");
    assert_dealt("{range: 5}", 0, 1, 1, "0 | 1 | 2 | 3 | 4");
}

static void
workers_share_the_rows(void **state)
{
    (void)state;
    assert_dealt("{range: 8}, {batch: 4}", 0, 2, 1, "0,1 | 4,5");
    assert_dealt("{range: 8}, {batch: 4}", 1, 2, 1, "2,3 | 6,7");
}

static void
an_epoch_may_be_left_before_its_end(void **state)
{
    struct dealt dealt;
    struct deal_round round;

    (void)state;
    deal(&dealt, "{range: 6}, {batch: 2}", 0, 1, 1);
    assert_int_equal(dealer_start_epoch(dealt.dealer), TUNDISH_OK);
    assert_int_equal(dealer_next(dealt.dealer, &round), TUNDISH_OK);
    assert_int_equal(round.epoch, 0);
    dealer_release_round(&round);
    assert_int_equal(dealer_next_epoch(dealt.dealer), TUNDISH_OK);
    assert_int_equal(dealer_next(dealt.dealer, &round), TUNDISH_OK);
    assert_int_equal(round.epoch, 1);
    assert_int_equal(round.step, 0);
    dealer_release_round(&round);
    assert_string_equal(steps_left(&dealt), "2,3 | 4,5");
    put_away(&dealt);
}

#define SHUFFLED "{range: 8}, {shuffle: {buffer_size: 8}}, {batch: 2}"

/* What the second epoch deals, from step `step` on, with the state that it began with. */
static char *
second_epoch(uint64_t *state_words, size_t *ret_count)
{
    struct dealt dealt;
    const uint64_t *words;
    char *text;

    deal(&dealt, SHUFFLED, 0, 1, 1);
    assert_int_equal(dealer_start_epoch(dealt.dealer), TUNDISH_OK);
    assert_int_equal(dealer_next_epoch(dealt.dealer), TUNDISH_OK);
    *ret_count = dealer_epoch_state(dealt.dealer, &words);
    assert_int_equal(*ret_count, dealer_state_words(dealt.dealer));
    assert_in_range(*ret_count, 1, 8);
    memcpy(state_words, words, *ret_count * sizeof *words);
    text = tnd_strdup(steps_left(&dealt));
    put_away(&dealt);
    return text;
}

static void
another_dealer_goes_on_from_a_place(void **state)
{
    uint64_t words[8];
    size_t count;
    char *whole = second_epoch(words, &count);
    struct dealt dealt;

    (void)state;
    deal(&dealt, SHUFFLED, 0, 1, 1);
    assert_int_equal(dealer_resume(dealt.dealer, 1, 2, words, count), TUNDISH_OK);
    assert_string_equal(steps_left(&dealt), strstr(strstr(whole, "| ") + 2, "| ") + 2);
    put_away(&dealt);
    free(whole);
}

static void
a_place_that_does_not_fit_is_refused(void **state)
{
    uint64_t words[8];
    size_t count;
    struct dealt dealt;

    (void)state;
    free(second_epoch(words, &count));
    deal(&dealt, SHUFFLED, 0, 1, 1);
    assert_int_equal(dealer_resume(dealt.dealer, 1, 0, words, count - 1), TUNDISH_E_PLACE);
    assert_int_equal(dealer_resume(dealt.dealer, 1, 6, words, count), TUNDISH_E_PLACE);
    assert_non_null(
        strstr(tnd_error_text(), "step 6 of epoch 1 cannot be reached: the epoch has fewer steps"));
    put_away(&dealt);
}

TEST_FILE(test_dealer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_go_to_the_replicas_in_turn),
        cmocka_unit_test(a_short_batch_leaves_replicas_with_less),
        cmocka_unit_test(a_round_that_lacks_scalars_is_left_out),
        cmocka_unit_test(workers_share_the_rows),
        cmocka_unit_test(an_epoch_may_be_left_before_its_end),
        cmocka_unit_test(another_dealer_goes_on_from_a_place),
        cmocka_unit_test(a_place_that_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
