/* test_resample.c - images of another size: what every method keeps, and what each makes of a few
 * pixels. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "content/images/resample.h"
#include "unit/test_file.h"

enum { SIDE = 12, SLACK = 64 };

static void
resize_row(const char *method, bool antialias, int64_t from_count, const float *from,
           int64_t to_count, float *to)
{
    float source[SIDE + SLACK] = { 0 };
    struct resample_work work = { .scratch = scratch_open() };
    struct resample resample = {
        .antialias = antialias,
        .from_height = 1,
        .from_width = from_count,
        .to_height = 1,
        .to_width = to_count,
        .channels = 1,
        .row_values = from_count,
    };

    memcpy(source, from, (size_t)from_count * sizeof *from);
    assert_true(resample_method_of(method, &resample.method));
    if (resample.method == RESAMPLE_NEAREST)
        resample_nearest(&resample, &work, source, sizeof *source, to);
    else
        resample_floats(&resample, &work, source, to);
    scratch_close(work.scratch);
}

static void
each_method_weights_pixels_as_it_does(void **state)
{
    static const struct {
        const char *method;
        bool antialias;
        int64_t from_count, to_count;
        float from[4], to[6];
    } cases[] = {
        /* Centres at halves: between 0 and 10 at -0.25, 0.25, 0.75, 1.25 of the distance. */
        { "bilinear", false, 2, 4, { 0, 10 }, { 0, 2.5F, 7.5F, 10 } },
        { "bilinear", false, 4, 2, { 0, 10, 20, 30 }, { 5, 25 } },
        /* Triangles as wide as two pixels: 3, 3, 1 of 7 and 1, 3, 3 of 7. */
        { "bilinear", true, 4, 2, { 0, 7, 14, 21 }, { 5, 16 } },
        { "nearest", false, 2, 4, { 3, 9 }, { 3, 3, 9, 9 } },
        { "nearest", false, 4, 2, { 1, 2, 3, 4 }, { 2, 4 } },
        { "area", false, 4, 2, { 0, 10, 20, 40 }, { 5, 30 } },
        { "area", false, 3, 2, { 0, 30, 60 }, { 10, 50 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float to[6];

        resize_row(cases[i].method, cases[i].antialias, cases[i].from_count, cases[i].from,
                   cases[i].to_count, to);
        for (int64_t k = 0; k < cases[i].to_count; k++)
            if (fabsf(to[k] - cases[i].to[k]) > 1e-5F)
                fail_msg("case %zu, pixel %d: %g instead of %g", i, (int)k, (double)to[k],
                         (double)cases[i].to[k]);
    }
    assert_false(resample_method_of("trilinear", &(enum resample_method){ 0 }));
}

static const char *const smooth[] = { "bilinear", "bicubic",  "area",         "lanczos3",
                                      "lanczos5", "gaussian", "mitchellcubic" };

/* Whatever the weights are, they sum to 1, at the edges too, and are the same from both sides. */
static void
every_method_keeps_what_is_even_and_what_is_symmetric(void **state)
{
    float even[SIDE], hill[SIDE], to[2 * SIDE];

    (void)state;
    for (int i = 0; i < SIDE; i++) {
        even[i] = 3.25F;
        hill[i] = (float)(i < SIDE / 2 ? i : SIDE - 1 - i);
    }
    for (size_t m = 0; m < sizeof smooth / sizeof *smooth; m++)
        for (int antialias = 0; antialias < 2; antialias++)
            for (int64_t count = 1; count <= 2 * SIDE; count++) {
                resize_row(smooth[m], antialias, SIDE, even, count, to);
                for (int64_t k = 0; k < count; k++)
                    assert_true(fabsf(to[k] - 3.25F) < 1e-5F);
                resize_row(smooth[m], antialias, SIDE, hill, count, to);
                for (int64_t k = 0; k < count; k++)
                    assert_true(fabsf(to[k] - to[count - 1 - k]) < 1e-4F);
            }
}

static void
the_same_size_is_the_same_picture(void **state)
{
    static const char *const exact[] = { "bilinear", "bicubic", "area", "nearest", "lanczos3" };
    float from[SIDE], to[SIDE];

    (void)state;
    for (int i = 0; i < SIDE; i++)
        from[i] = (float)(i * i % 7);
    for (size_t m = 0; m < sizeof exact / sizeof *exact; m++) {
        resize_row(exact[m], false, SIDE, from, SIDE, to);
        for (int i = 0; i < SIDE; i++)
            assert_true(fabsf(to[i] - from[i]) < 1e-5F);
    }
}

/* Bytes are resized as floats are, and row after row as all at once. */
static void
bytes_floats_and_rows_give_the_same(void **state)
{
    enum { HEIGHT = 7, WIDTH = 9, CHANNELS = 3, TO_HEIGHT = 4, TO_WIDTH = 13 };
    static uint8_t bytes[HEIGHT * WIDTH * CHANNELS + SLACK];
    static float floats[HEIGHT * WIDTH * CHANNELS + SLACK];
    float of_bytes[TO_HEIGHT * TO_WIDTH * CHANNELS], of_floats[TO_HEIGHT * TO_WIDTH * CHANNELS];
    float of_rows[TO_HEIGHT * TO_WIDTH * CHANNELS];
    struct resample resample = {
        .from_height = HEIGHT,
        .from_width = WIDTH,
        .to_height = TO_HEIGHT,
        .to_width = TO_WIDTH,
        .channels = CHANNELS,
        .row_values = WIDTH * CHANNELS,
    };

    (void)state;
    for (int i = 0; i < HEIGHT * WIDTH * CHANNELS; i++)
        floats[i] = bytes[i] = (uint8_t)(i * 37 + i / 5);
    for (int m = 0; m < RESAMPLE_METHODS; m++) {
        struct resample_work work = { .scratch = scratch_open() };
        struct resample_rows *rows;

        resample.method = (enum resample_method)m;
        if (m != RESAMPLE_NEAREST) {
            resample_bytes(&resample, &work, bytes, of_bytes);
            resample_floats(&resample, &work, floats, of_floats);
            assert_memory_equal(of_bytes, of_floats, sizeof of_bytes);
        }
        if (m == RESAMPLE_BILINEAR) {
            rows = resample_rows_open(&resample, &work, of_rows, NULL);
            for (int y = 0; y < HEIGHT; y++)
                resample_rows_next(rows, bytes + y * WIDTH * CHANNELS);
            assert_memory_equal(of_rows, of_bytes, sizeof of_rows);
        }
        scratch_close(work.scratch);
    }
}

TEST_FILE(test_resample)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_method_weights_pixels_as_it_does),
        cmocka_unit_test(every_method_keeps_what_is_even_and_what_is_symmetric),
        cmocka_unit_test(the_same_size_is_the_same_picture),
        cmocka_unit_test(bytes_floats_and_rows_give_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
