/* test_by_words.c - of which columns of a source stages make integers word by word, and no more. */
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

/* The names of such columns, one after the other; of a function's sources where there is one. The
 * caller frees. */
static char *
columns_where(bool (*holds)(const struct plan_node *node, uint32_t column),
              const struct plan_graph *graph)
{
    char *found = tnd_strdup("");

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        if (node->body != NULL) {
            free(found);
            return columns_where(holds, node->body);
        }
        for (uint32_t k = 0; node->source != NULL && k < node->schema.count; k++)
            if (holds(node, k)) {
                char *longer = tnd_sprintf("%s%s", found, node->schema.columns[k].name);

                free(found);
                found = longer;
            }
    }
    return found;
}

static bool
has_maker(const struct plan_node *node, uint32_t column)
{
    const struct words_maker *maker = &node->words[column].maker;

    assert_true((maker->make == NULL) == (maker->key == NULL));
    return maker->make != NULL;
}

static void
assert_columns(bool (*holds)(const struct plan_node *node, uint32_t column), const char *stages,
               const char *expected)
{
    char *text = tnd_sprintf("streams: {case: {dataset: [%s]}}", stages);
    struct plan_options options = { .worker_count = 1, .root_seed = 1 };
    struct spec_errors errors = { 0 };
    struct spec_file *file = NULL;
    struct plan *plan = NULL;
    char *found;

    if (spec_open_text(text, strlen(text), "case.yaml", "/", &errors, &file) == TUNDISH_OK)
        (void)plan_open(file, &file->streams[0], &options, &errors, &plan);
    if (plan == NULL)
        fail_msg("%s: %s", stages, spec_errors_text(&errors));
    found = columns_where(holds, plan->graph);
    if (strcmp(found, expected) != 0)
        fail_msg("%s: '%s', and '%s' was expected", stages, found, expected);
    free(found);
    plan_close(plan);
    spec_close(file);
    spec_errors_close(&errors);
    free(text);
}

static void
assert_by_words(const char *stages, const char *expected)
{
    assert_columns(plan_by_words, stages, expected);
}

#define TEXTS "from_tensor_slices: {a: [x, y], b: [y, z], n: [1, 2]}, "
#define LOOKUP(columns) "string_lookup: {columns: " columns ", vocabulary: [x, y]}"

static void
stages_that_make_integers_of_texts_need_only_words(void **state)
{
    (void)state;
    assert_by_words(TEXTS LOOKUP("[a, b]"), "ab");
    assert_by_words(TEXTS LOOKUP("a"), "a");
    assert_by_words(TEXTS "hashing: {columns: [a, b], num_bins: 9}", "ab");
    assert_by_words(TEXTS "string_to_hash_bucket_fast: {columns: b, num_buckets: 9}", "b");
    assert_by_words(TEXTS LOOKUP("[a, b]") ", stack: {columns: [a, b], output: ids}, batch: 2",
                    "ab");
}

static void
a_column_that_is_delivered_needs_its_texts(void **state)
{
    (void)state;
    assert_by_words(TEXTS "batch: 2", "");
    assert_by_words(
        TEXTS "string_lookup: {columns: [a, b], vocabulary: [x], output: [c, d]}, batch: 2", "");
    assert_by_words(
        TEXTS
        "string_lookup: {columns: [a, b], vocabulary: [x], output: [c, d]}, drop: a, batch: 2",
        "a");
    assert_by_words(TEXTS "select: n, batch: 2", "ab");
    assert_by_words(TEXTS "rename: {a: c}, " LOOKUP("[c]"), "a");
}

static void
what_reads_a_text_needs_it(void **state)
{
    (void)state;
    assert_by_words(TEXTS "map: {a: \"a + 'x'\"}, " LOOKUP("[a, b]"), "b");
    assert_by_words(TEXTS "map: {n: n + 1}, " LOOKUP("[a, b]"), "ab");
    assert_by_words(TEXTS "filter: \"a == 'x'\", " LOOKUP("[a, b]"), "");
    assert_by_words(TEXTS LOOKUP("[a, b]") ", filter: a == 1", "ab");
    assert_by_words(TEXTS "stack: {columns: [a, b], output: c}, " LOOKUP("c"), "");
    assert_by_words(TEXTS "string_to_number: {columns: a, out_type: int32}, " LOOKUP("b"), "");
}

static void
rows_that_only_move_stay_as_they_are(void **state)
{
    (void)state;
    assert_by_words(TEXTS "shuffle: {buffer_size: 2, seed: 1}, repeat: 2, " LOOKUP("[a, b]"), "ab");
    assert_by_words(TEXTS "batch: 2, " LOOKUP("[a, b]"), "");
}

static void
rows_of_a_function_go_on_outside(void **state)
{
    (void)state;
    assert_by_words("range: 2, interleave: {dataset: [from_tensor_slices: {a: [x], b: [y]}], "
                    "cycle_length: 2}, " LOOKUP("a"),
                    "a");
    assert_by_words("range: 2, flat_map: [from_tensor_slices: {a: [x], b: [y]}, " LOOKUP(
                        "[a, b]") "], batch: 2",
                    "ab");
}

/* Also of texts that others need; but not where rows may be left out before. */
static void
the_maker_is_of_a_stage_that_all_rows_come_to(void **state)
{
    (void)state;
    assert_columns(has_maker, TEXTS "shuffle: {buffer_size: 2, seed: 1}, " LOOKUP("b"), "b");
    assert_columns(has_maker, TEXTS "batch: 2, hashing: {columns: [a, b], num_bins: 9}", "ab");
    assert_columns(has_maker, TEXTS "map: {c: \"a + 'x'\"}, rename: {a: d}, " LOOKUP("d"), "a");
    assert_columns(has_maker, TEXTS "filter: \"n == 1\", " LOOKUP("[a, b]"), "");
    assert_columns(has_maker, TEXTS LOOKUP("[a, b]") ", filter: a == 1", "ab");
    assert_columns(has_maker,
                   TEXTS "drop: a, string_to_hash_bucket_fast: {columns: b, num_buckets: 9}", "b");
    assert_columns(has_maker, TEXTS "batch: 2", "");
}

TEST_FILE(test_by_words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_that_make_integers_of_texts_need_only_words),
        cmocka_unit_test(a_column_that_is_delivered_needs_its_texts),
        cmocka_unit_test(what_reads_a_text_needs_it),
        cmocka_unit_test(rows_that_only_move_stay_as_they_are),
        cmocka_unit_test(rows_of_a_function_go_on_outside),
        cmocka_unit_test(the_maker_is_of_a_stage_that_all_rows_come_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
