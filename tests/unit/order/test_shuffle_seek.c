/* test_shuffle_seek.c - what a window holds, against a window that is drawn from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/memory.h"
#include "order/shuffle/shuffle_draws.h"
#include "order/shuffle/shuffle_seek.h"
#include "unit/test_file.h"

/* The ring after so many draws, as tf.data would have it; the free slot holds what was drawn. */
static uint64_t *
drawn_from(uint32_t size, uint64_t draws)
{
    uint64_t *ring = tnd_alloc(size * sizeof *ring);
    struct shuffle_draws numbers = shuffle_draws_of(7, 9, 0);

    for (uint32_t i = 0; i < size; i++)
        ring[i] = i;
    for (uint64_t draw = 0; draw < draws; draw++) {
        uint64_t head = draw % size;
        uint64_t at = (head + shuffle_draw(&numbers) % size) % size;

        ring[at] = ring[head];
        ring[head] = size + draw;
    }
    return ring;
}

static void
assert_seek(uint32_t size, uint64_t draws)
{
    uint64_t *ring = drawn_from(size, draws);
    struct shuffle_held *held = shuffle_seek(7, 9, size, draws);
    bool *seen = tnd_zalloc(size, sizeof *seen);

    for (uint32_t i = 0; i + 1 < size; i++) {
        assert_in_range(held[i].slot, 0, size - 1);
        assert_false(seen[held[i].slot]);
        seen[held[i].slot] = true;
        assert_int_equal(held[i].number, ring[held[i].slot]);
        if (i > 0)
            assert_true(held[i].number < held[i - 1].number);
    }
    assert_false(seen[(draws - 1) % size]);
    free(seen);
    free(held);
    free(ring);
}

static void
it_holds_what_draws_leave(void **state)
{
    static const uint32_t sizes[] = { 1, 2, 3, 5, 64, 65, 1000 };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint64_t draws = 1; draws < 40; draws++)
            assert_seek(sizes[i], draws);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint64_t draws = 4090; draws < 4100; draws++)
            assert_seek(sizes[i], draws);
    assert_seek(1000, 50000);
}

static void
draws_can_be_begun_anywhere(void **state)
{
    struct shuffle_draws all = shuffle_draws_of(3, 4, 0);

    (void)state;
    for (uint64_t first = 0; first < 200; first++) {
        struct shuffle_draws from = shuffle_draws_of(3, 4, first);

        assert_int_equal(shuffle_draw(&from), shuffle_draw(&all));
    }
}

TEST_FILE(test_shuffle_seek)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_holds_what_draws_leave),
        cmocka_unit_test(draws_can_be_begun_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
