/* test_widen.c - every dtype against arithmetic one value at a time, every path, lists and ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../unit_draw.h"
#include "core/cpu.h"
#include "core/dtype.h"
#include "core/half.h"
#include "core/widen.h"
#include "unit/test_file.h"

enum { VALUES = 1000, LIST_MAX = 300 };

static const tundish_dtype inputs[] = { TUNDISH_BOOL,    TUNDISH_UINT8,    TUNDISH_INT8,
                                        TUNDISH_UINT16,  TUNDISH_INT16,    TUNDISH_UINT32,
                                        TUNDISH_INT32,   TUNDISH_UINT64,   TUNDISH_INT64,
                                        TUNDISH_FLOAT16, TUNDISH_BFLOAT16, TUNDISH_FLOAT32,
                                        TUNDISH_FLOAT64 };

static const tundish_dtype outputs[] = { TUNDISH_FLOAT16, TUNDISH_BFLOAT16, TUNDISH_FLOAT32,
                                         TUNDISH_FLOAT64 };

enum { INPUTS = sizeof inputs / sizeof *inputs, OUTPUTS = sizeof outputs / sizeof *outputs };

/* Bits that are a finite value of every dtype. */
static void
fill(tundish_dtype dtype, uint8_t *values)
{
    for (int i = 0; i < VALUES; i++) {
        uint64_t random = draw();
        float small;
        uint16_t half;
        double wide;

        small = (float)((int64_t)(random >> 40) - (1 << 23)) / 512;
        wide = (double)small + 1e-9;
        half = dtype == TUNDISH_FLOAT16 ? tnd_half_from_float(small / 1000)
                                        : tnd_bfloat_from_float(small);
        if (dtype == TUNDISH_FLOAT32)
            memcpy(values + i * 4, &small, 4);
        else if (dtype == TUNDISH_FLOAT64)
            memcpy(values + i * 8, &wide, 8);
        else if (dtype == TUNDISH_FLOAT16 || dtype == TUNDISH_BFLOAT16)
            memcpy(values + i * 2, &half, 2);
        else if (dtype == TUNDISH_BOOL)
            values[i] = (uint8_t)(random >> 63);
        else
            memcpy(values + (size_t)i * tnd_dtype_bytes(dtype), &random, tnd_dtype_bytes(dtype));
    }
}

#define VALUE(type) (*(const type *)(const void *)(values + (size_t)i * sizeof(type)))
#define AS(real)                                                                                   \
    switch (dtype) {                                                                               \
    case TUNDISH_BOOL:                                                                             \
    case TUNDISH_UINT8:                                                                            \
        return (real)VALUE(uint8_t);                                                               \
    case TUNDISH_INT8:                                                                             \
        return (real)VALUE(int8_t);                                                                \
    case TUNDISH_UINT16:                                                                           \
        return (real)VALUE(uint16_t);                                                              \
    case TUNDISH_INT16:                                                                            \
        return (real)VALUE(int16_t);                                                               \
    case TUNDISH_UINT32:                                                                           \
        return (real)VALUE(uint32_t);                                                              \
    case TUNDISH_INT32:                                                                            \
        return (real)VALUE(int32_t);                                                               \
    case TUNDISH_UINT64:                                                                           \
        return (real)VALUE(uint64_t);                                                              \
    case TUNDISH_INT64:                                                                            \
        return (real)VALUE(int64_t);                                                               \
    case TUNDISH_FLOAT16:                                                                          \
        return (real)tnd_half_to_float(VALUE(uint16_t));                                           \
    case TUNDISH_BFLOAT16:                                                                         \
        return (real)tnd_bfloat_to_float(VALUE(uint16_t));                                         \
    case TUNDISH_FLOAT32:                                                                          \
        return (real)VALUE(float);                                                                 \
    default:                                                                                       \
        return (real)VALUE(double);                                                                \
    }

static float
as_float(tundish_dtype dtype, const uint8_t *values, int i)
{
    AS(float)
}

static double
as_double(tundish_dtype dtype, const uint8_t *values, int i)
{
    AS(double)
}

static void
expect(const struct tnd_widening *widening, tundish_dtype dtype, const uint8_t *values, int i,
       const uint8_t *made)
{
    double scale = widening->scale[i % (int)widening->scale_count];
    double offset = widening->offset[i % (int)widening->offset_count];
    double wide = as_double(dtype, values, i) * scale;
    float narrow = as_float(dtype, values, i) * (float)scale;
    uint16_t half;

    wide += offset;
    narrow += (float)offset;
    switch (widening->dtype) {
    case TUNDISH_FLOAT64:
        assert_memory_equal(made + i * 8, &wide, 8);
        break;
    case TUNDISH_FLOAT32:
        assert_memory_equal(made + i * 4, &narrow, 4);
        break;
    default:
        half = widening->dtype == TUNDISH_FLOAT16 ? tnd_half_from_float(narrow)
                                                  : tnd_bfloat_from_float(narrow);
        assert_memory_equal(made + i * 2, &half, 2);
    }
}

static void
check(tundish_dtype from, tundish_dtype to, uint32_t list, int count)
{
    static uint8_t values[VALUES * 8], made[VALUES * 8 + 1];
    static double scale[LIST_MAX], offset[LIST_MAX];
    struct tnd_widening widening = {
        .dtype = to, .scale_count = list, .offset_count = 1, .scale = scale, .offset = offset
    };
    size_t bytes = (size_t)count * tnd_dtype_bytes(to);

    for (uint32_t i = 0; i < list; i++) {
        scale[i] = 1 / (3.0 + i);
        offset[i] = 0.1 - i;
    }
    fill(from, values);
    for (int both = 0; both < 2; both++) {
        widening.offset_count = both ? list : 1;
        made[bytes] = 0xa5;
        assert_int_equal(tnd_widen(&widening, from, values, (uint64_t)count, made), TUNDISH_OK);
        assert_int_equal(made[bytes], 0xa5);
        for (int i = 0; i < count; i++)
            expect(&widening, from, values, i, made);
    }
}

static void
check_all(void)
{
    const uint32_t lists[] = { 1, 3, 16, 17, LIST_MAX };
    const int counts[] = { 0, 1, 15, 16, 17, 600, VALUES };

    for (int from = 0; from < INPUTS; from++)
        for (int to = 0; to < OUTPUTS; to++)
            for (int list = 0; list < 5; list++)
                for (int count = 0; count < 7; count++)
                    check(inputs[from], outputs[to], lists[list], counts[count]);
}

static void
every_dtype_widens_to_every_float_by_every_list(void **state)
{
    (void)state;
    check_all();
}

static void
a_machine_without_vectors_makes_the_same(void **state)
{
    (void)state;
    assert_true(tnd_cpu_use(TND_CPU_PORTABLE));
    check_all();
    tnd_cpu_use(tnd_cpu_best());
}

/* Images of 5 x 7 and so many channels, more or fewer than a chunk of the loop. */
static void
check_planes(tundish_dtype to, uint32_t channels, uint32_t images)
{
    enum { PLANE = 35 };
    static uint8_t values[VALUES * 8], as_stored[VALUES * 8], planes[VALUES * 8];
    static double scale[LIST_MAX];
    const double offset = -0.7;
    struct tnd_widening widening = {
        .dtype = to, .scale_count = channels, .offset_count = 1, .scale = scale, .offset = &offset
    };
    uint64_t count = (uint64_t)images * PLANE * channels;
    size_t bytes = tnd_dtype_bytes(to);

    assert_true(count <= VALUES);
    for (uint32_t i = 0; i < channels; i++)
        scale[i] = 1 / (7.0 + i);
    fill(TUNDISH_UINT8, values);
    assert_int_equal(tnd_widen(&widening, TUNDISH_UINT8, values, count, as_stored), TUNDISH_OK);
    widening.channels = channels;
    widening.plane = PLANE;
    assert_int_equal(tnd_widen(&widening, TUNDISH_UINT8, values, count, planes), TUNDISH_OK);
    for (uint64_t n = 0; n < images; n++)
        for (uint64_t p = 0; p < PLANE; p++)
            for (uint64_t c = 0; c < channels; c++)
                assert_memory_equal(planes + ((n * channels + c) * PLANE + p) * bytes,
                                    as_stored + ((n * PLANE + p) * channels + c) * bytes, bytes);
}

static void
channels_go_to_planes_of_their_own(void **state)
{
    (void)state;
    for (int to = 0; to < OUTPUTS; to++) {
        check_planes(outputs[to], 1, 3);
        check_planes(outputs[to], 3, 4);
        check_planes(outputs[to], 3, 0);
        check_planes(outputs[to], 20, 1);
    }
}

static void
strings_and_integers_are_no_floats(void **state)
{
    (void)state;
    assert_true(tnd_widen_allowed(TUNDISH_UINT8, TUNDISH_BFLOAT16));
    assert_false(tnd_widen_allowed(TUNDISH_STRING, TUNDISH_FLOAT32));
    assert_false(tnd_widen_allowed(TUNDISH_UINT8, TUNDISH_INT32));
    assert_false(tnd_widen_allowed((tundish_dtype)77, TUNDISH_FLOAT32));
}

TEST_FILE(test_widen)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_widens_to_every_float_by_every_list),
        cmocka_unit_test(a_machine_without_vectors_makes_the_same),
        cmocka_unit_test(channels_go_to_planes_of_their_own),
        cmocka_unit_test(strings_and_integers_are_no_floats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
