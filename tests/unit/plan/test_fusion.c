/* test_fusion.c - which content stages are made as one, and what a stage sees of those after it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "content/content.h"
#include "core/memory.h"
#include "plan/plan.h"
#include "unit/test_file.h"

/* "FIRST..LAST" of what is made as one, or "" if nothing is; complaints instead, if there are any.
 * The caller frees. */
static char *
fused(const char *stages)
{
    char *text = tnd_sprintf("streams: {case: {dataset: [list_files: '*.jpg', read_file: {columns: "
                             "value, output: img}, select: img, %s]}}",
                             stages);
    struct plan_options options = { .worker_count = 1, .root_seed = 1 };
    struct spec_errors errors = { 0 };
    struct spec_file *file = NULL;
    struct plan *plan = NULL;
    char *found = tnd_strdup("");

    if (spec_open_text(text, strlen(text), "case.yaml", "/", &errors, &file) == TUNDISH_OK)
        (void)plan_open(file, &file->streams[0], &options, &errors, &plan);
    for (uint32_t i = 0; errors.count == 0 && i < plan->graph->node_count; i++) {
        const struct plan_node *node = plan->graph->nodes[i];

        if (node->fused == NULL)
            continue;
        free(found);
        found = tnd_sprintf("%s..%s", node->first->name, node->name);
    }
    if (errors.count > 0) {
        free(found);
        found = spec_errors_text(&errors);
    }
    plan_close(plan);
    spec_close(file);
    spec_errors_close(&errors);
    free(text);
    return found;
}

static void
assert_fused(const char *stages, const char *expected)
{
    char *found = fused(stages);

    if (strcmp(found, expected) != 0)
        fail_msg("%s: '%s', and '%s' was expected", stages, found, expected);
    free(found);
}

static void
assert_complaint(const char *stages, const char *words)
{
    char *found = fused(stages);

    if (strstr(found, words) == NULL)
        fail_msg("%s: '%s' is not in '%s'", stages, words, found);
    free(found);
}

static void
pictures_are_decoded_and_resized_at_once(void **state)
{
    (void)state;
    assert_fused("decode_jpeg: {channels: 3}, resize: {size: [8, 8]}", "decode_jpeg..resize");
    assert_fused("decode_png: {channels: 3}, resizing: {height: 8, width: 8}, batch: 2",
                 "decode_png..resizing");
    assert_fused("decode_jpeg: {channels: 3}, resize: {size: [8, 8]}, cast: uint8",
                 "decode_jpeg..cast");
    assert_fused("decode_jpeg: {channels: 3}, resize: {size: [8, 8]}, cast: int32",
                 "decode_jpeg..resize");
}

static void
what_stands_between_keeps_them_apart(void **state)
{
    (void)state;
    assert_fused("decode_jpeg: {channels: 3}", "");
    assert_fused("decode_jpeg: {channels: 3}, cast: uint8, resize: {size: [8, 8]}", "");
    assert_fused("decode_jpeg: {channels: 3}, prefetch: 1, resize: {size: [8, 8]}", "");
    assert_fused("decode_jpeg: {channels: 3}, resize: {size: [8, 8], columns: img, output: small}",
                 "");
    assert_fused("decode_jpeg: {channels: 3}, resize: {size: [8, 8], antialias: true}", "");
    assert_fused("decode_jpeg, resize: {size: [8, 8]}", "");
}

static void
scaled_takes_the_size_of_the_first_stage_that_looks_at_pixels(void **state)
{
    static const char complaint[] = "scaled needs a later resize (or resizing) of 'img'";

    (void)state;
    assert_fused("decode_jpeg: {channels: 3, scaled: true}, resize: {size: [8, 8]}",
                 "decode_jpeg..resize");
    assert_fused("decode_jpeg: {channels: 3, scaled: true}, random_flip, cast: float32, "
                 "resizing: {height: 8, width: 8}",
                 "");
    assert_complaint("decode_jpeg: {channels: 3, scaled: true}", complaint);
    assert_complaint("decode_jpeg: {channels: 3, scaled: true}, shuffle: 2, resize: {size: [8, 8]}",
                     complaint);
    assert_complaint("decode_jpeg: {channels: 3, scaled: true}, center_crop: {height: 4, width: 4}",
                     complaint);
    assert_complaint("decode_jpeg: {channels: 3, scaled: true}, "
                     "resize: {size: [8, 8], columns: img, output: small}",
                     complaint);
}

TEST_FILE(test_fusion)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_decoded_and_resized_at_once),
        cmocka_unit_test(what_stands_between_keeps_them_apart),
        cmocka_unit_test(scaled_takes_the_size_of_the_first_stage_that_looks_at_pixels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
