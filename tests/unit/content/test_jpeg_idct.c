/* test_jpeg_idct.c - blocks between the eighths, next to the library's own routines. */
#include "content/images/turbo2/jpeg_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jpegint.h>

#include "../unit_draw.h"
#include "core/cpu.h"
#include "jpeg_fixture.h"
#include "unit/test_file.h"

enum { PLACES = 16, BLOCKS = 400 };

/* A picture whose blocks of luma are to be of `eighths` pixels. */
static void
open_picture(const struct jpeg_made *made, unsigned eighths, struct jpeg_error_mgr *errors,
             struct jpeg_decompress_struct *info)
{
    info->err = jpeg_std_error(errors);
    jpeg_create_decompress(info);
    jpeg_mem_src(info, made->bytes, made->size);
    jpeg_read_header(info, TRUE);
    info->scale_num = eighths;
    info->scale_denom = 8;
    jpeg_start_decompress(info);
}

struct routine {
    inverse_DCT_method_ptr call;
    void *table;
};

static struct routine
routine_of(struct jpeg_decompress_struct *info, int component)
{
    return (struct routine){ info->idct->inverse_DCT[component],
                             info->comp_info[component].dct_table };
}

static void
make_block(struct jpeg_decompress_struct *info, int component, const struct routine *routine,
           JCOEF *block, uint8_t pixels[PLACES][PLACES])
{
    JSAMPROW rows[PLACES];

    memset(pixels, 0xA5, PLACES * PLACES);
    for (int y = 0; y < PLACES; y++)
        rows[y] = pixels[y];
    info->comp_info[component].dct_table = routine->table;
    routine->call(info, &info->comp_info[component], block, rows, 1);
}

/* About as large as in a picture: the finer the smaller, many of them 0. */
static void
draw_honest(const UINT16 *factors, JCOEF *block)
{
    memset(block, 0, DCTSIZE2 * sizeof *block);
    block[0] = (JCOEF)((int)(draw() % 1601) - 800) / (JCOEF)factors[0];
    for (int i = 1; i < DCTSIZE2; i++)
        if (draw() % 4 == 0)
            block[i] = (JCOEF)(((int)(draw() % 401) - 200) / (i % 8 + i / 8) / factors[i]);
    if (draw() % 3 == 0)
        for (int i = 0; i < DCTSIZE2; i++)
            block[i] = i % 8 < 4 && i / 8 < 4 ? block[i] : 0;
}

static void
draw_hostile(JCOEF *block)
{
    static const JCOEF extremes[] = { -32768, 32767, -1, 1, 0, 16384, -16384, 1024 };

    for (int i = 0; i < DCTSIZE2; i++)
        block[i] = extremes[draw() % (sizeof extremes / sizeof *extremes)];
}

static void
assert_near(int size, uint8_t ours[PLACES][PLACES], uint8_t librarys[PLACES][PLACES])
{
    for (int y = 0; y < PLACES; y++)
        for (int x = 0; x < PLACES; x++) {
            bool is_inside = y < size && x > 0 && x <= size;

            if (abs(ours[y][x] - librarys[y][x]) > (is_inside ? 1 : 0))
                fail_msg("size %d, (%d, %d): %d, the library's is %d", size, x, y, ours[y][x],
                         librarys[y][x]);
        }
}

static void
compare_component(struct jpeg_decompress_struct *info, int component,
                  const struct routine routines[3])
{
    int size = info->comp_info[component].DCT_scaled_size;
    const UINT16 *factors = info->comp_info[component].quant_table->quantval;

    for (int i = 0; i < BLOCKS; i++) {
        uint8_t pixels[3][PLACES][PLACES];
        JCOEF block[DCTSIZE2];
        bool is_hostile = i % 4 == 0;

        if (is_hostile)
            draw_hostile(block);
        else
            draw_honest(factors, block);
        for (int k = is_hostile ? 1 : 0; k < 3; k++)
            make_block(info, component, &routines[k], block, pixels[k]);
        assert_memory_equal(pixels[1], pixels[2], sizeof pixels[1]);
        if (!is_hostile)
            assert_near(size, pixels[1], pixels[0]);
    }
}

static void
compare(const struct jpeg_made *made, unsigned eighths, bool seen[PLACES])
{
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct routine routines[2][3];

    open_picture(made, eighths, &errors, &info);
    for (int c = 0; c < 2; c++)
        routines[c][0] = routine_of(&info, c);
    jpeg_idct_install(&info);
    for (int c = 0; c < 2; c++)
        routines[c][1] = routine_of(&info, c);
    assert_true(tnd_cpu_use(TND_CPU_PORTABLE));
    jpeg_idct_install(&info);
    tnd_cpu_use(tnd_cpu_best());
    for (int c = 0; c < 2; c++) {
        routines[c][2] = routine_of(&info, c);
        assert_ptr_not_equal(routines[c][0].call, routines[c][1].call);
        compare_component(&info, c, routines[c]);
        seen[info.comp_info[c].DCT_scaled_size] = true;
    }
    jpeg_destroy_decompress(&info);
}

static void
blocks_are_the_librarys_within_one(void **state)
{
    static const unsigned eighths[] = { 3, 5, 6, 7 };
    static const int sizes[] = { 3, 5, 6, 7, 10, 12, 14 };
    bool seen[PLACES] = { false };

    (void)state;
    for (int quality = 10; quality <= 100; quality += 45) {
        struct jpeg_make make = {
            .width = 32, .height = 32, .luma_across = 2, .luma_down = 2, .quality = quality
        };
        struct jpeg_made made = jpeg_fixture_make(&make, 1);

        for (size_t i = 0; i < sizeof eighths / sizeof *eighths; i++)
            compare(&made, eighths[i], seen);
        jpeg_fixture_free(&made);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        assert_true(seen[sizes[i]]);
}

TEST_FILE(test_jpeg_idct)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_the_librarys_within_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
