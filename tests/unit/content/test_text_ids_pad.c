/* test_text_ids_pad.c - lists of ids become rows of the same ids on every processor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../unit_draw.h"
#include "content/text/text_ids.h"
#include "core/cpu.h"
#include "unit/test_file.h"

enum { LISTS = 40, LONGEST = 37, GUARD = -77 };

struct rows {
    int64_t begins[LISTS + 1];
    int64_t *expected; /* and a guard after the last, as in `ids` */
    int64_t *ids;
};

static void
draw_lists(struct id_lists *lists, struct rows *rows)
{
    const int64_t uniform = draw() % 2 ? (int64_t)(draw() % LONGEST) : -1;

    lists->splits[0] = rows->begins[0] = 0;
    for (int l = 0; l < LISTS; l++) {
        lists->splits[l + 1] = lists->splits[l] + (int64_t)(draw() % LONGEST);
        rows->begins[l + 1] =
            rows->begins[l] + (uniform >= 0 ? uniform : (int64_t)(draw() % LONGEST));
    }
    lists->ids = calloc((size_t)lists->splits[LISTS] + 1, sizeof *lists->ids);
    rows->expected = calloc((size_t)rows->begins[LISTS] + 1, sizeof *rows->expected);
    rows->ids = calloc((size_t)rows->begins[LISTS] + 1, sizeof *rows->ids);
    for (int64_t i = 0; i < lists->splits[LISTS]; i++)
        lists->ids[i] = (int64_t)draw();
    for (int l = 0; l < LISTS; l++)
        for (int64_t i = 0; i < rows->begins[l + 1] - rows->begins[l]; i++)
            if (lists->splits[l] + i < lists->splits[l + 1])
                rows->expected[rows->begins[l] + i] = lists->ids[lists->splits[l] + i];
    rows->expected[rows->begins[LISTS]] = GUARD;
}

static void
all_instruction_sets_write_the_same_rows(void **state)
{
    int64_t splits[LISTS + 1];

    (void)state;
    for (int round = 0; round < 500; round++) {
        struct id_lists lists = { .splits = splits };
        struct rows rows;

        draw_lists(&lists, &rows);
        for (int level = TND_CPU_PORTABLE; level < TND_CPU_LEVELS; level++) {
            if (!tnd_cpu_use((enum tnd_cpu_level)level))
                continue;
            memset(rows.ids, 0xAA, (size_t)rows.begins[LISTS] * sizeof *rows.ids);
            rows.ids[rows.begins[LISTS]] = GUARD;
            text_ids_pad(&lists, LISTS, rows.begins, rows.ids);
            assert_memory_equal(rows.ids, rows.expected,
                                ((size_t)rows.begins[LISTS] + 1) * sizeof *rows.ids);
        }
        free(lists.ids);
        free(rows.expected);
        free(rows.ids);
    }
}

TEST_FILE(test_text_ids_pad)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_instruction_sets_write_the_same_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
