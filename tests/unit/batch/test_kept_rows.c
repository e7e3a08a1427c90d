/* test_kept_rows.c - rows that were looked at and wait for their batch. Rows of another element are
 * kept for one, so that it is seen which elements were taken from there. */
#include "batch/kept_rows.h"

#include "../source/source_fixture.h"
#include "core/clock.h"
#include "order/look.h"
#include "unit/test_file.h"

/* Element i has the text i and i words. */
#define ROWS                                                                                       \
    "{from_tensor_slices: {s: ['0', '1', '2', '3', '4', '5'], w: ['', 'a', 'a b', 'a b c', "       \
    "'a b c d', 'a b c d e']}}, {string_split: {columns: w}}"
#define FILTERED "[" ROWS ", {filter: \"s != 'x'\"}]"

enum { ELEMENTS = 6 };

struct keeping {
    struct folder folder;
    struct pipeline pipeline;
    struct kept_rows *kept;
    uint64_t words[ELEMENTS * PLAN_WIDTH_MAX];
    uint32_t width;
};

static void
keeping_open(struct keeping *one, const char *deliver)
{
    char *stages = tnd_sprintf("%s\n    deliver: {%s}", FILTERED, deliver);
    size_t count;

    folder_open(&one->folder);
    assert_int_equal(pipeline_open(&one->pipeline, &one->folder, 0, stages), TUNDISH_OK);
    free(stages);
    one->width = one->pipeline.node->width;
    assert_int_equal(order_next(one->pipeline.iterator, one->words, ELEMENTS, &count), ORDER_OK);
    assert_int_equal(count, ELEMENTS);
    one->kept = kept_rows_open(one->pipeline.plan);
    assert_non_null(one->kept);
    one->pipeline.evaluation.kept = one->kept;
}

static void
keeping_close(struct keeping *one)
{
    scratch_reset(one->pipeline.evaluation.scratch);
    kept_rows_close(one->kept);
    pipeline_close(&one->pipeline);
    folder_close(&one->folder);
}

/* Keep what elements [from, from + count) are as if it were those `as` says. */
static void
keep_as(struct keeping *one, size_t from, int64_t count, const uint64_t *as)
{
    const struct plan_node *node = one->pipeline.node->inputs[0];
    const struct evaluate_request request = { .words = one->words + from * one->width,
                                              .stride = one->width,
                                              .count = count };
    struct kept_offer offer = {
        .node = node, .words = one->words, .elements = as, .took_ns = INT64_MAX
    };
    struct frame rows;

    scratch_reset(one->pipeline.outer.scratch);
    assert_int_equal(evaluate(&one->pipeline.outer, node, &request, &rows), TUNDISH_OK);
    offer.rows = &rows;
    kept_rows_offer(one->kept, &offer);
}

static void
keep(struct keeping *one, size_t from, uint64_t as)
{
    keep_as(one, from, 1, &as);
}

/* What elements [from, from + the texts' count) are made of. */
static void
assert_made(struct keeping *one, size_t from, const char *texts)
{
    struct frame *frame = &one->pipeline.frame;
    int64_t count = (int64_t)strlen(texts);

    assert_int_equal(pipeline_content(&one->pipeline, one->words + from * one->width, count),
                     TUNDISH_OK);
    assert_int_equal(frame->count, count);
    assert_null(frame->kept);
    for (int64_t i = 0; i < count; i++) {
        struct byte_view text = text_at(&one->pipeline, 0, (size_t)i);

        assert_int_equal(text.size, 1);
        assert_int_equal(*(const char *)text.data, texts[i]);
        assert_int_equal(level_length(&frame->columns[1].levels[0], i), texts[i] - '0');
    }
    assert_int_equal(frame->columns[1].value_count, frame->columns[1].levels[0].splits[count]);
}

static void
rows_are_handed_out_once(void **state)
{
    struct keeping one;

    (void)state;
    keeping_open(&one, "");
    assert_made(&one, 0, "012345");
    keep_as(&one, 1, 4, (const uint64_t[]){ 5, 0, 4, 3 });
    assert_made(&one, 0, "212431");
    assert_made(&one, 0, "012345");
    keeping_close(&one);
}

static void
they_need_not_be_wanted_together_nor_in_order(void **state)
{
    struct keeping one;

    (void)state;
    keeping_open(&one, "");
    keep_as(&one, 1, 3, (const uint64_t[]){ 0, 1, 2 });
    keep_as(&one, 0, 3, (const uint64_t[]){ 3, 4, 5 });
    assert_made(&one, 2, "30");
    assert_made(&one, 2, "2312");
    assert_made(&one, 0, "12");
    assert_made(&one, 0, "012345");
    keeping_close(&one);
}

static void
none_is_left_after_a_clear(void **state)
{
    struct keeping one;

    (void)state;
    keeping_open(&one, "");
    keep(&one, 1, 0);
    kept_rows_clear(one.kept);
    assert_made(&one, 0, "012345");
    keeping_close(&one);
}

/* A block of one row takes a little more than a kilobyte. */
#define LIMIT_OF_THREE "memory_limit: 20000"

static void
where_there_is_no_room_the_newest_are_not_kept(void **state)
{
    struct keeping one;

    (void)state;
    keeping_open(&one, LIMIT_OF_THREE);
    for (uint64_t i = 0; i < ELEMENTS; i++)
        keep(&one, 1, i);
    assert_made(&one, 0, "111345");
    /* What is in use takes its room until then. */
    scratch_reset(one.pipeline.evaluation.scratch);
    keep(&one, 1, 5);
    assert_made(&one, 0, "012341");
    keeping_close(&one);
}

static void
those_that_many_overtake_are_given_up(void **state)
{
    struct keeping one;

    (void)state;
    keeping_open(&one, LIMIT_OF_THREE);
    keep(&one, 1, 0);
    for (int round = 0; round < 4; round++) {
        keep(&one, 1, 4);
        keep(&one, 1, 5);
        assert_made(&one, 4, "11");
        scratch_reset(one.pipeline.evaluation.scratch);
    }
    for (uint64_t i = 3; i < ELEMENTS; i++)
        keep(&one, 1, i);
    assert_made(&one, 0, "012111");
    keeping_close(&one);
}

static void
what_is_made_as_fast_as_kept_is_not_kept(void **state)
{
    struct keeping one;
    struct frame rows;
    struct evaluate_request request;
    struct kept_offer offer;

    (void)state;
    keeping_open(&one, "");
    request = (struct evaluate_request){ .words = one.words, .stride = one.width, .count = 1 };
    offer = (struct kept_offer){ .node = one.pipeline.node->inputs[0],
                                 .words = one.words,
                                 .elements = (const uint64_t[]){ 1 },
                                 .rows = &rows,
                                 .took_ns = 100 };
    assert_int_equal(evaluate(&one.pipeline.outer, offer.node, &request, &rows), TUNDISH_OK);
    kept_rows_offer(one.kept, &offer);
    assert_made(&one, 0, "012345");
    keeping_close(&one);
}

static void
nothing_is_kept_whose_words_may_change(void **state)
{
    static const char *const stages[] = {
        "[" ROWS
        ", {cache: {filename: c}}, {filter: \"s != 'x'\"}]", /* its records are rewritten */
        "[" ROWS ", {batch: 2}, {filter: \"size(s) > 0\"}]", /* own runs */
        "[" ROWS ", {shuffle: 3}]",                          /* nobody looks */
    };

    (void)state;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        struct folder folder;
        struct pipeline pipeline;

        folder_open(&folder);
        assert_int_equal(pipeline_open(&pipeline, &folder, 0, stages[i]), TUNDISH_OK);
        assert_null(kept_rows_open(pipeline.plan));
        pipeline_close(&pipeline);
        folder_close(&folder);
    }
}

/* On this clock nothing is done in no time. */
static int64_t
later_each_time(void *context)
{
    static int64_t now_ns;

    (void)context;
    return now_ns += INT64_C(1000000000);
}

static tundish_status
take_nothing(struct order_look *look, const struct frame *frame)
{
    (void)look;
    (void)frame;
    return TUNDISH_OK;
}

/* A stage has looked at all elements of its input, as a worker looks: how many are kept. */
static int64_t
count_kept(const char *last_stage, bool asks)
{
    static const struct tnd_clock clock = { later_each_time, later_each_time, NULL };
    char *stages = tnd_sprintf("[" ROWS ", {%s}]", last_stage);
    uint64_t words[ELEMENTS * PLAN_WIDTH_MAX];
    int64_t found[ELEMENTS], missing[ELEMENTS], missing_count, kept_count = 0;
    struct kept_piece pieces[ELEMENTS];
    struct pipeline pipeline;
    struct order_iterator *rows;
    const struct plan_node *input;
    struct kept_rows *kept;
    struct folder folder;
    size_t count;

    folder_open(&folder);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, stages), TUNDISH_OK);
    input = pipeline.node->inputs[0];
    assert_int_equal(order_open(input, pipeline.instance, &rows), TUNDISH_OK);
    assert_int_equal(order_next(rows, words, ELEMENTS, &count), ORDER_OK);
    assert_int_equal(count, ELEMENTS);
    pipeline.evaluation.kept = kept = kept_rows_open(pipeline.plan);
    assert_non_null(kept);
    struct order_look look = { .node = asks ? pipeline.node : input,
                               .asks = asks,
                               .words = words,
                               .count = ELEMENTS,
                               .take = take_nothing };
    const struct kept_want want = { .node = input,
                                    .words = words,
                                    .stride = input->width,
                                    .count = ELEMENTS,
                                    .scratch = pipeline.evaluation.scratch };

    tnd_clock_install(&clock);
    evaluate_look(&pipeline.evaluation, &look);
    tnd_clock_install(NULL);
    assert_int_equal(look.status, TUNDISH_OK);
    scratch_reset(pipeline.evaluation.scratch);
    for (uint32_t i = kept_rows_take(kept, &want, pieces, found, missing, &missing_count); i > 0;
         i--)
        kept_count += pieces[i - 1].count;
    scratch_reset(pipeline.evaluation.scratch);
    order_close(rows);
    kept_rows_close(kept);
    pipeline_close(&pipeline);
    folder_close(&folder);
    free(stages);
    return kept_count;
}

static void
what_passes_a_look_is_kept(void **state)
{
    (void)state;
    assert_int_equal(count_kept("filter: \"s != '4'\"", true), ELEMENTS - 1);
    assert_int_equal(count_kept("bucket_by_sequence_length: {column: w, bucket_boundaries: [3], "
                                "bucket_batch_sizes: [2, 2]}",
                                false),
                     ELEMENTS);
    assert_int_equal(count_kept("group_by_window: {key: size(w) % 2, window_size: 3, reduce: "
                                "padded_batch}",
                                true),
                     ELEMENTS);
}

TEST_FILE(test_kept_rows)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_handed_out_once),
        cmocka_unit_test(they_need_not_be_wanted_together_nor_in_order),
        cmocka_unit_test(none_is_left_after_a_clear),
        cmocka_unit_test(where_there_is_no_room_the_newest_are_not_kept),
        cmocka_unit_test(those_that_many_overtake_are_given_up),
        cmocka_unit_test(what_is_made_as_fast_as_kept_is_not_kept),
        cmocka_unit_test(nothing_is_kept_whose_words_may_change),
        cmocka_unit_test(what_passes_a_look_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
