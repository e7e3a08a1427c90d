/* test_session_figures.c - what a session shows of itself, its lanes, its trainers, and of how its
 * columns are stored and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "session/served.h"
#include "session/session_private.h"
#include "unit/test_file.h"
#include "watch/snapshot.h"

struct look {
    struct tnd_stats_file file;
    struct watch_snapshot snapshot;
};

static void
look_at(struct served *served, struct look *ret_look)
{
    *ret_look = (struct look){ .file = TND_STATS_FILE_NONE };
    session_show(served->session);
    assert_int_equal(tnd_stats_open_server(served->path, &ret_look->file), TUNDISH_OK);
    assert_int_equal(watch_snapshot_open(&ret_look->file, &ret_look->snapshot), TUNDISH_OK);
}

static void
look_away(struct look *look)
{
    watch_snapshot_close(&look->snapshot);
    tnd_stats_close(&look->file);
}

/* The only set of its kind. */
static const struct watch_set *
only(const struct look *look, const char *kind)
{
    const struct watch_set *set = watch_next(&look->snapshot, kind, NULL);

    assert_non_null(set);
    assert_null(watch_next(&look->snapshot, kind, set));
    return set;
}

/* A step is counted after its batches are published. */
static void
look_at_steps(struct served *served, uint64_t count, struct look *ret_look)
{
    look_at(served, ret_look);
    while (watch_value(only(ret_look, "stream"), "steps") < count) {
        look_away(ret_look);
        look_at(served, ret_look);
    }
}

static void
what_trainers_took_is_counted(void **state)
{
    static const struct served_options options = {
        .stages =
            "{text_line: terms.txt}, {string_lookup: {columns: value, vocabulary: terms.txt}}, "
            "{batch: 1}",
        .deliver = "epochs: 1, slots: 5, rejoin: 1ms",
    };
    struct served *served;
    tundish_reader *reader;
    const tundish_batch *held;
    struct look look;

    (void)state;
    served_write("terms.txt", "a\nb\nc\n");
    served = served_open(&options);
    reader = served_reader(served, &(struct wanted){ .group = "g" });
    served_expect(reader, (const char *[]){ "0.0 value=1", "0.1 value=2", NULL });
    assert_int_equal(tundish_next(reader, PATIENCE_NS, &held), TUNDISH_OK);
    look_at_steps(served, 3, &look);
    assert_int_equal(watch_value(only(&look, "reader"), "attached"), 1);
    assert_int_equal(watch_value(only(&look, "reader"), "taken"), 3);
    assert_int_equal(watch_value(only(&look, "reader"), "released"), 2);
    assert_int_equal(watch_value(only(&look, "group"), "attached"), 1);
    assert_int_equal(watch_value(only(&look, "lane"), "slots"), 5);
    assert_int_equal(watch_value(only(&look, "lane"), "taken"), 3);
    assert_int_equal(watch_value(only(&look, "lane"), "occupied"), 1);
    assert_int_equal(watch_value(only(&look, "vocabulary"), "terms"), 3);
    assert_in_range(watch_value(only(&look, "stream"), "steps"), 3, 4);
    assert_in_range(watch_value(only(&look, "stream"), "rows"), 3, 3);
    look_away(&look);
    tundish_release(reader, held);
    served_expect(reader, (const char *[]){ "END", "END_OF_STREAM", NULL });
    tundish_close(reader);
    while (!session_is_abandoned(served->session))
        ;
    look_at(served, &look);
    assert_null(watch_next(&look.snapshot, "reader", NULL));
    assert_null(watch_next(&look.snapshot, "group", NULL));
    assert_int_equal(watch_value(only(&look, "lane"), "published"), 5); /* with both ends */
    assert_int_equal(watch_value(only(&look, "stream"), "trainers_lost"), 0);
    look_away(&look);
    served_close(served);
}

static void
bad_rows_are_counted(void **state)
{
    static const struct served_options options = {
        .stages =
            "{csv: {filenames: rows.csv, record_defaults: [0], column_names: [x]}}, {batch: 2}",
        .deliver = "on_error: skip, epochs: 1",
    };
    struct served *served;
    tundish_reader *reader;
    struct look look;

    (void)state;
    served_write("rows.csv", "1\nx\n3\ny\n5\n");
    served = served_open(&options);
    reader = served_reader(served, &(struct wanted){ 0 });
    served_expect(
        reader, (const char *[]){ "0.0 x=1", "0.1 x=3", "0.2 x=5", "END", "END_OF_STREAM", NULL });
    look_at(served, &look);
    assert_int_equal(watch_value(only(&look, "stream"), "rows_skipped"), 2);
    assert_int_equal(watch_value(only(&look, "stream"), "failed"), 0);
    look_away(&look);
    tundish_close(reader);
    served_close(served);
}

/* Slices of a padded batch are as wide as the batch, so they are cut from it. */
static void
a_batch_that_is_cut_is_made_once(void **state)
{
    static const struct served_options options = {
        .stages =
            "{text_line: rows.txt}, {decode_json: {features: {a: {type: Ragged, dtype: int64}}}}, "
            "{padded_batch: 6}",
        .distribute = "replicas: 3",
        .deliver = "epochs: 1",
        .threads = 2,
    };
    static const char *const expected[3][4] = {
        { "0.0 a=1,0,2,3", "0.1 a=7,0,8,9", "END", NULL },
        { "0.0 a=4,0,5,0", "0.1 a=10,0,11,0", "END", NULL },
        { "0.0 a=6,0,0,0", "0.1 a=12,0,0,0", "END", NULL },
    };
    const struct watch_set *stage = NULL;
    struct served *served;
    tundish_reader *readers[3];
    uint64_t rows = 0;
    struct look look;

    (void)state;
    served_write("rows.txt", "{\"a\": [1]}\n{\"a\": [2, 3]}\n{\"a\": [4]}\n{\"a\": [5]}\n"
                             "{\"a\": [6]}\n{\"a\": []}\n{\"a\": [7]}\n{\"a\": [8, 9]}\n"
                             "{\"a\": [10]}\n{\"a\": [11]}\n{\"a\": [12]}\n{\"a\": []}\n");
    served = served_open(&options);
    for (int r = 0; r < 3; r++)
        readers[r] = served_reader(served, &(struct wanted){ .replica = r });
    for (int r = 0; r < 3; r++)
        served_expect(readers[r], expected[r]);
    look_at_steps(served, 2, &look);
    while ((stage = watch_next(&look.snapshot, "stage", stage)) != NULL) {
        char name[64];

        watch_label(stage, "stage", name, sizeof name);
        if (strcmp(name, "decode_json") == 0)
            rows = watch_value(stage, "rows");
    }
    assert_int_equal(rows, 12);
    look_away(&look);
    for (int r = 0; r < 3; r++)
        tundish_close(readers[r]);
    served_close(served);
}

/* The lane has room for one of these batches. One thread fills it with the first; of two threads
 * that of the second batch may be quicker. */
static void
a_stream_that_is_stopped_without_room_has_not_failed(void **state)
{
    static const struct served_options options = {
        .stages = "{range: 1000000}, {batch: 512}",
        .deliver = "on_error: skip, slots: 4, lane_bytes: 4096, compression: none",
        .threads = 1,
    };
    struct served *served = served_open(&options);
    struct session *session = served->session;
    bool is_being_made = false;
    struct look look;

    (void)state;
    while (!is_being_made) {
        ring_lock(session);
        is_being_made = ring_next_position(session) > 1 && ring_step(session, 0)->position == 1 &&
                        ring_step(session, 0)->state == STEP_OPEN;
        ring_unlock(session);
    }
    session_stop(session);
    look_at(served, &look);
    assert_int_equal(watch_value(only(&look, "lane"), "published"), 2); /* STOPPED, too */
    assert_int_equal(watch_value(only(&look, "stream"), "failed"), 0);
    look_away(&look);
    served_close(served);
}

/* Numbers that fit into two bits each, in int64: 4000 rows, 32 kB a batch. */
#define NARROW "{range: 40000}, {map: {value: 'value % 4'}}, {batch: 4000}"

static void
columns_are_stored_smaller_where_memory_is_short(void **state)
{
    static const struct {
        const char *deliver, *how, *why;
        bool is_less;
    } cases[] = {
        { "compression: none, slots: 3", "columns as they are", "as the file says", false },
        { "compression: zstd, slots: 3", "value by zstd", "as the file says", true },
        { "compression: auto, slots: 3", "columns as they are", "since there is memory for that",
          false },
        /* Three slots of 32 kB do not fit. */
        { "compression: auto, slots: 3, memory_limit: 90000", "value by zstd",
          "since memory is scarce", true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct served_options options = { .stages = NARROW, .deliver = cases[i].deliver };
        struct served *served = served_open(&options);
        tundish_reader *reader = served_reader(served, &(struct wanted){ 0 });
        const tundish_batch *batch;
        const tundish_tensor *tensor;
        char how[192], why[192];
        struct look look;

        assert_int_equal(tundish_next(reader, PATIENCE_NS, &batch), TUNDISH_OK);
        assert_int_equal(tundish_tensor_at(batch, 0, &tensor), TUNDISH_OK);
        assert_int_equal(tensor->element_count, 4000);
        for (int64_t k = 0; k < 4000; k++)
            assert_int_equal(((const int64_t *)tensor->data)[k], k % 4);
        look_at(served, &look);
        watch_label(only(&look, "compression"), "how", how, sizeof how);
        watch_label(only(&look, "compression"), "why", why, sizeof why);
        assert_string_equal(how, cases[i].how);
        assert_string_equal(why, cases[i].why);
        assert_int_equal(watch_value(only(&look, "lane"), "stored") <
                             watch_value(only(&look, "lane"), "decoded"),
                         cases[i].is_less);
        look_away(&look);
        tundish_release(reader, batch);
        tundish_close(reader);
        served_close(served);
    }
}

TEST_FILE(test_session_figures)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_trainers_took_is_counted),
        cmocka_unit_test(bad_rows_are_counted),
        cmocka_unit_test(a_batch_that_is_cut_is_made_once),
        cmocka_unit_test(a_stream_that_is_stopped_without_room_has_not_failed),
        cmocka_unit_test(columns_are_stored_smaller_where_memory_is_short),
    };

    return cmocka_run_group_tests(tests, served_make_folder, served_remove_folder);
}
