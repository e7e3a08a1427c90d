/* test_example_runs.c - records that are alike, but for a few: parsed many entries at once, they
 * give what the plain parser finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../unit_draw.h"
#include "content/records/example.h"
#include "core/cpu.h"
#include "core/memory.h"
#include "record_builder.h"
#include "unit/test_file.h"

/* More features than one word of marks has bits. */
enum { STRINGS = 40, FLOATS = 30, INTEGERS = 10, FEATURES = STRINGS + FLOATS + INTEGERS };
enum { RECORDS = 300, RECORD_ROOM = 4096 + 64 };

static tundish_dtype
dtype_of(int f)
{
    return f < STRINGS ? TUNDISH_STRING : f < STRINGS + FLOATS ? TUNDISH_FLOAT32 : TUNDISH_INT64;
}

/* Some names are longer than a comparison of one vector. */
static void
name_of(int f, char name[64])
{
    snprintf(name, 64, f % 9 == 4 ? "a feature with a name of many bytes, %d" : "f%d", f);
}

static struct example_parser *
open_parser(void)
{
    struct example_feature *features = tnd_zalloc(FEATURES, sizeof *features);

    for (int f = 0; f < FEATURES; f++) {
        char name[64];

        name_of(f, name);
        features[f] = (struct example_feature){
            .name = tnd_strdup(name),
            .name_bytes = strlen(name),
            .dtype = dtype_of(f),
            .value_count = 1,
            .features_shape_text = tnd_strdup("[]"),
            .fallback = f == 3 ? NULL : tnd_zalloc(1, sizeof(struct byte_view)),
        };
    }
    return example_parser_open(features, FEATURES);
}

static void
put_value(struct record *to, int f, tundish_dtype dtype, bool is_usual)
{
    const float number = (float)draw() / 3;
    const int64_t integer = is_usual ? (int64_t)(draw() % 128) : (int64_t)(draw() >> draw() % 64);
    char name[64], text[16];

    name_of(f, name);
    switch (dtype) {
    case TUNDISH_FLOAT32:
        put_floats(to, name, &number, 1, is_usual || draw() % 2);
        break;
    case TUNDISH_INT64:
        put_int64s(to, name, &integer, 1, is_usual || draw() % 2);
        break;
    default:
        snprintf(text, sizeof text, is_usual ? "%08x" : "%x", (unsigned)draw() >> draw() % 32);
        put_string(to, name, is_usual || draw() % 2 ? text : "");
        break;
    }
}

/* The features in their usual order; one in `oddness` is something else. */
static struct record
draw_record(uint64_t oddness)
{
    struct record features = { 0 }, record;

    for (int f = 0; f < FEATURES; f++) {
        if (draw() % oddness > 0) {
            put_value(&features, f, dtype_of(f), true);
            continue;
        }
        switch (draw() % 8) {
        case 0: /* missing */
            break;
        case 1: /* twice */
            put_value(&features, f, dtype_of(f), true);
            put_value(&features, f, dtype_of(f), draw() % 2);
            break;
        case 2: /* of another feature, or not wanted at all */
            put_value(&features, (int)(draw() % (FEATURES + 5)), TUNDISH_INT64, true);
            break;
        case 3: /* of another kind */
            put_value(&features, f, dtype_of((int)(draw() % FEATURES)), true);
            break;
        default:
            put_value(&features, f, dtype_of(f), false);
            break;
        }
    }
    record = whole(&features);
    if (draw() % (4 * oddness) == 0)
        record.size = draw() % record.size;
    if (draw() % (4 * oddness) == 0)
        record.bytes[draw() % record.size] = (uint8_t)draw();
    return record;
}

struct outcome {
    struct scratch *scratch;
    struct frame_errors errors;
    struct example_values values[FEATURES];
};

static void
parse(const struct example_parser *parser, const struct byte_view *records, bool is_plain,
      struct outcome *outcome)
{
    const struct example_input input = { .records = records, .count = RECORDS };
    struct frame frame = { .count = RECORDS, .errors = &outcome->errors };

    outcome->scratch = frame.scratch = scratch_open();
    for (int f = 0; f < FEATURES; f++)
        outcome->values[f].values = scratch_array(frame.scratch, RECORDS, sizeof(struct byte_view));
    (is_plain ? example_parse_plainly : example_parse)(parser, &input, &frame, outcome->values);
}

static void
compare(const struct outcome *found, const struct outcome *expected)
{
    assert_int_equal(found->errors.bad_count, expected->errors.bad_count);
    assert_string_equal(found->errors.text, expected->errors.text);
    for (int f = 0; f < FEATURES; f++) {
        const void *a = found->values[f].values, *b = expected->values[f].values;

        if (dtype_of(f) == TUNDISH_FLOAT32)
            assert_memory_equal(a, b, RECORDS * sizeof(float));
        else if (dtype_of(f) == TUNDISH_INT64)
            assert_memory_equal(a, b, RECORDS * sizeof(int64_t));
        else
            for (int i = 0; i < RECORDS; i++)
                assert_true(bytes_are_equal(((const struct byte_view *)a)[i],
                                            ((const struct byte_view *)b)[i]));
    }
}

static void
runs_give_what_the_plain_parser_finds(void **state)
{
    static const uint64_t oddness[] = { 30, 300, 3000, 3 };
    static struct byte_view records[RECORDS];
    uint8_t *bytes = calloc(RECORDS, RECORD_ROOM);

    (void)state;
    for (int round = 0; round < 24; round++) {
        /* Learned from the first records, the runs meet others later. */
        for (int i = 0; i < RECORDS; i++) {
            const struct record record = draw_record(oddness[i < 200 ? round % 4 : 0]);

            memcpy(bytes + (size_t)i * RECORD_ROOM, record.bytes, record.size);
            records[i] = (struct byte_view){ bytes + (size_t)i * RECORD_ROOM, record.size };
        }
        for (int level = TND_CPU_PORTABLE; level < TND_CPU_LEVELS; level++) {
            struct outcome expected = { 0 }, found = { 0 }, again = { 0 };
            struct example_parser *parser;

            if (!tnd_cpu_use((enum tnd_cpu_level)level))
                continue;
            parser = open_parser();
            parse(parser, records, true, &expected);
            parse(parser, records, false, &found);
            parse(parser, records, false, &again); /* what was learned is known from the start */
            compare(&found, &expected);
            compare(&again, &expected);
            scratch_close(expected.scratch);
            scratch_close(found.scratch);
            scratch_close(again.scratch);
            example_parser_close(parser);
        }
    }
    free(bytes);
}

TEST_FILE(test_example_runs)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_give_what_the_plain_parser_finds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
