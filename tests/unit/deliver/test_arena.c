/* test_arena.c - which bytes are in use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "deliver/arena.h"
#include "unit/test_file.h"

static void
room_is_aligned_and_never_shared(void **state)
{
    struct arena arena;
    uint64_t offset;

    (void)state;
    arena_open(&arena, 1024, 8);
    for (uint64_t i = 0; i < 4; i++) {
        assert_true(arena_take(&arena, 200, &offset));
        assert_int_equal(offset, i * 256);
    }
    assert_false(arena_take(&arena, 1, &offset));
    assert_int_equal(arena.used_bytes, 1024);
    arena_close(&arena);
}

static void
gaps_are_used_again_first(void **state)
{
    struct arena arena;
    uint64_t offset;

    (void)state;
    arena_open(&arena, 1024, 8);
    for (int i = 0; i < 4; i++)
        arena_take(&arena, 256, &offset);
    arena_put(&arena, 256);
    arena_put(&arena, 512);
    assert_true(arena_take(&arena, 512, &offset));
    assert_int_equal(offset, 256);
    arena_put(&arena, 0);
    assert_false(arena_take(&arena, 257, &offset));
    assert_true(arena_take(&arena, 256, &offset));
    assert_int_equal(offset, 0);
    arena_close(&arena);
}

static void
more_than_there_is_finds_no_room(void **state)
{
    struct arena arena;
    uint64_t offset;

    (void)state;
    arena_open(&arena, 1000, 2);
    assert_false(arena_take(&arena, 1001, &offset));
    assert_false(arena_take(&arena, UINT64_MAX, &offset));
    assert_false(arena_take(&arena, 1000, &offset));
    assert_true(arena_take(&arena, 960, &offset));
    arena_put(&arena, offset);
    assert_true(arena_take(&arena, 64, &offset));
    assert_true(arena_take(&arena, 64, &offset));
    assert_false(arena_take(&arena, 64, &offset));
    arena_close(&arena);
}

TEST_FILE(test_arena)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_is_aligned_and_never_shared),
        cmocka_unit_test(gaps_are_used_again_first),
        cmocka_unit_test(more_than_there_is_finds_no_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
