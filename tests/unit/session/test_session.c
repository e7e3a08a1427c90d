/* test_session.c - what trainers get of a stream: its batches whatever they hold and however they
 * are stored, its errors, its end. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "session/served.h"
#include "unit/test_file.h"

struct served_case {
    const char *stages, *deliver;
    const char *texts[8];
};

static void
columns_of_every_kind_arrive_as_they_were_made(void **state)
{
    static const struct served_case cases[] = {
        { "{range: 5}, {map: {x: 'value * 3'}}, {batch: 2}",
          "epochs: 2",
          { "0.0 value=0,1 x=0,3", "0.1 value=2,3 x=6,9", "0.2 value=4 x=12", "END",
            "1.0 value=0,1 x=0,3" } },
        { "{text_line: words.txt}, {batch: 2}",
          "epochs: 1",
          { "0.0 value=red,", "0.1 value=a long word,x", "END", "END_OF_STREAM" } },
        { "{from_tensor_slices: {t: ['a b', c, 'd e f']}}, {string_split: {columns: t}}, "
          "{ragged_batch: 2}",
          "epochs: 1",
          { "0.0 t=[0,2,3]a,b,c", "0.1 t=[0,3]d,e,f", "END", "END_OF_STREAM" } },
        { "{from_tensor_slices: {t: [[0, 7], [8, 0]]}}, {batch: 2}, {to_sparse: {columns: t}}",
          "epochs: 1",
          { "0.0 t=[0,1,1,0]7,8", "END", "END_OF_STREAM" } },
        { "{from_tensor_slices: {w: [x, y, z], f: [0.5, 1.5, 2.5]}}, {map: {f: f, w: w}}, "
          "{batch: {batch_size: 2, drop_remainder: true}}",
          "epochs: 1",
          { "0.0 w=x,y f=0.5,1.5", "END", "END_OF_STREAM" } },
        { "{fixed_length_record: {filenames: numbers, record_bytes: 4}}, {decode_raw: {out_type: "
          "int32, little_endian: false}}, {window: {size: 2, shift: 1, drop_remainder: true}}, "
          "{batch: 2}",
          "epochs: 2",
          { "0.0 value=16843009,16843010,16843010,16843011",
            "0.1 value=16843011,16843012,16843012,16843013", "END",
            "1.0 value=16843009,16843010,16843010,16843011",
            "1.1 value=16843011,16843012,16843012,16843013", "END", "END_OF_STREAM" } },
    };
    static const char *const stored[] = { "", ", compression: none", ", compression: narrow",
                                          ", compression: zstd, checksums: true",
                                          ", memory: memfd" };

    (void)state;
    served_write("words.txt", "red\n\na long word\nx\n");
    served_write("numbers", "\1\1\1\1\1\1\1\2\1\1\1\3\1\1\1\4\1\1\1\5");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof stored / sizeof *stored; k++) {
            char deliver[128];
            struct served_options options = { .stages = cases[i].stages, .deliver = deliver };
            const char *texts[9] = { NULL };
            struct served *served;
            tundish_reader *reader;

            memcpy(texts, cases[i].texts, sizeof cases[i].texts);
            snprintf(deliver, sizeof deliver, "%s%s", cases[i].deliver, stored[k]);
            served = served_open(&options);
            reader = served_reader(served, &(struct wanted){ 0 });
            served_expect(reader, texts);
            tundish_close(reader);
            served_close(served);
        }
}

/* "step" and its error, of a table whose third line is bad. */
static void
a_bad_row_is_the_error_of_its_step_for_every_replica(void **state)
{
    static const struct served_options options = {
        .stages =
            "{csv: {filenames: rows.csv, record_defaults: [0], column_names: [x]}}, {batch: 2}",
        .distribute = "replicas: 2",
    };
    tundish_reader *readers[2];
    struct served *served;

    (void)state;
    served_write("rows.csv", "1\n2\n3\nfour\n5\n");
    served = served_open(&options);
    for (int i = 0; i < 2; i++)
        readers[i] = served_reader(served, &(struct wanted){ .replica = i });
    served_expect(readers[0], (const char *[]){ "0.0 x=1", NULL });
    served_expect(readers[1], (const char *[]){ "0.0 x=2", NULL });
    for (int i = 0; i < 2; i++) {
        assert_string_equal(served_next(readers[i]), "E_DATA");
        assert_non_null(strstr(tundish_last_error(), "rows.csv"));
        assert_string_equal(served_next(readers[i]), "E_DATA"); /* it is final */
        tundish_close(readers[i]);
    }
    served_close(served);
}

static void
bad_rows_are_skipped_where_the_file_says_so(void **state)
{
    static const struct served_options options = {
        .stages =
            "{csv: {filenames: rows.csv, record_defaults: [0], column_names: [x]}}, {batch: 2}",
        .deliver = "on_error: skip, epochs: 1",
    };
    struct served *served;
    tundish_reader *reader;

    (void)state;
    served_write("rows.csv", "1\n2\n3\nfour\n5\n");
    served = served_open(&options);
    reader = served_reader(served, &(struct wanted){ 0 });
    served_expect(reader, (const char *[]){ "0.0 x=1,2", "0.1 x=3", "0.2 x=5", "END",
                                            "END_OF_STREAM", NULL });
    tundish_close(reader);
    served_close(served);
}

static void
a_paused_session_goes_on_where_it_was(void **state)
{
    static const struct served_options options = {
        .stages = "{range: 8}, {batch: 1}",
        .deliver = "epochs: 1, slots: 3",
    };
    static char expected[8][16];
    const char *texts[9] = { NULL };
    struct served *served = served_open(&options);
    tundish_reader *reader = served_reader(served, &(struct wanted){ 0 });

    (void)state;
    for (int i = 0; i < 8; i++) {
        snprintf(expected[i], sizeof expected[i], "0.%d value=%d", i, i);
        texts[i] = expected[i];
    }
    session_pause(served->session, true);
    session_pause(served->session, false);
    served_expect(reader, texts);
    tundish_close(reader);
    served_close(served);
}

static void *
stop(void *session)
{
    session_stop(session);
    return NULL;
}

static void
a_trainer_is_told_that_the_server_stops_after_what_is_made(void **state)
{
    static const struct served_options options = { .stages = "{range: 1000000000}, {batch: 1}",
                                                   .deliver = "slots: 3" };
    struct served *served = served_open(&options);
    tundish_reader *reader = served_reader(served, &(struct wanted){ 0 });
    pthread_t stopping;
    const char *text;
    int batches = 0;

    (void)state;
    served_expect(reader, (const char *[]){ "0.0 value=0", NULL });
    /* It waits for a slot that is free, so the trainer has to go on. */
    assert_int_equal(pthread_create(&stopping, NULL, stop, served->session), 0);
    for (text = served_next(reader); strcmp(text, "STOPPED") != 0; text = served_next(reader)) {
        char expected[32];

        batches++;
        snprintf(expected, sizeof expected, "0.%d value=%d", batches, batches);
        assert_string_equal(text, expected);
    }
    pthread_join(stopping, NULL);
    tundish_close(reader);
    served_close(served);
}

/* The next batches of two replicas, which wait for each other. */
static void
expect_of_both(tundish_reader *const readers[2], const char *const texts[2])
{
    bool has[2] = { false };

    while (!has[0] || !has[1])
        for (int i = 0; i < 2; i++) {
            const tundish_batch *batch;
            tundish_status status =
                has[i] ? TUNDISH_E_TIMEOUT : tundish_next(readers[i], 1000000, &batch);

            if (status == TUNDISH_E_TIMEOUT)
                continue;
            assert_int_equal(status, TUNDISH_OK);
            assert_string_equal(served_text(batch), texts[i]);
            tundish_release(readers[i], batch);
            has[i] = true;
        }
}

static void
every_replica_that_wants_the_next_epoch_ends_this_one(void **state)
{
    static const struct served_options options = {
        .stages = "{range: 1000}, {batch: 2}",
        .distribute = "replicas: 2",
        .deliver = "slots: 3",
    };
    struct served *served = served_open(&options);
    tundish_reader *readers[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        readers[i] = served_reader(served, &(struct wanted){ .replica = i });
    served_expect(readers[0], (const char *[]){ "0.0 value=0", "0.1 value=2", NULL });
    served_expect(readers[1], (const char *[]){ "0.0 value=1", NULL });
    for (int i = 0; i < 2; i++)
        assert_int_equal(tundish_restart(readers[i]), TUNDISH_OK);
    expect_of_both(readers, (const char *[]){ "1.0 value=0", "1.0 value=1" });
    expect_of_both(readers, (const char *[]){ "1.1 value=2", "1.1 value=3" });
    for (int i = 0; i < 2; i++)
        tundish_close(readers[i]);
    served_close(served);
}

/* Its place is that of an epoch's beginning, with the state of the one before, which has no end. */
static void
a_trainer_that_has_left_an_endless_epoch_survives_its_server(void **state)
{
    static const struct served_options options = {
        .stages = "{range: 10}, {shuffle: {buffer_size: 10}}, {repeat: {}}, {batch: 2}",
        .deliver = "slots: 3",
        .name = "endless",
        .seed = 5,
    };
    struct served *served = served_open(&options);
    tundish_reader *reader = served_reader(served, &(struct wanted){ 0 });
    char first[64];
    const char *second;

    (void)state;
    snprintf(first, sizeof first, "%s", served_next(reader));
    served_kill(served);
    assert_int_equal(tundish_restart(reader), TUNDISH_OK);
    served = served_open(&options);
    assert_string_equal(served_next(reader), "E_SERVER_GONE");
    second = served_next(reader);
    assert_memory_equal(second, "1.0 value=", 10);
    assert_string_not_equal(second + 10, first + 10); /* shuffled anew */
    tundish_close(reader);
    served_close(served);
}

static void
readers_of_a_queue_share_its_batches(void **state)
{
    static const struct served_options options = {
        .stages = "{range: 6}, {batch: 1}",
        .distribute = "delivery: queue",
        .deliver = "epochs: 1, slots: 4",
    };
    struct served *served = served_open(&options);
    tundish_reader *readers[2];
    const tundish_batch *held;
    int seen[6] = { 0 };

    (void)state;
    for (int i = 0; i < 2; i++)
        readers[i] = served_reader(served, &(struct wanted){ .replica = i });
    for (int i = 0; i < 6; i++) {
        assert_int_equal(tundish_next(readers[i % 2], PATIENCE_NS, &held), TUNDISH_OK);
        seen[atoi(strchr(served_text(held), '=') + 1)]++;
        tundish_release(readers[i % 2], held);
    }
    for (int i = 0; i < 6; i++)
        assert_int_equal(seen[i], 1);
    served_expect(readers[0], (const char *[]){ "END", "END_OF_STREAM", NULL });
    for (int i = 0; i < 2; i++)
        tundish_close(readers[i]);
    served_close(served);
}

static void
what_cannot_be_served_is_refused(void **state)
{
    static const struct {
        struct served_options options;
        tundish_status status;
        const char *words;
    } cases[] = {
        { { .stages = "{rnage: 3}" }, TUNDISH_E_PIPELINE, "rnage" },
        { { .stages = "{text_line: none.txt}, {batch: 1}" }, TUNDISH_E_DATA, "none.txt" },
        { { .stages = "{text_line: none.jpg}, {decode_image: {columns: value}}" },
          TUNDISH_E_PIPELINE,
          "expand_animations: false" },
        { { .stages = "{range: 100000}, {batch: 1000}",
            .deliver = "memory_limit: 10000, compression: none" },
          TUNDISH_E_MEMORY,
          "memory_limit" },
    };
    struct served *served = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(served_try(&cases[i].options, &served), cases[i].status);
        if (strstr(tnd_error_text(), cases[i].words) == NULL)
            fail_msg("'%s' is not in: %s", cases[i].words, tnd_error_text());
    }
    assert_null(served);
}

/* Of the last batch one replica would get no row. */
static void
a_step_with_an_empty_batch_can_be_left_out(void **state)
{
    static const struct served_options options = {
        .stages = "{range: 9}, {batch: 4}",
        .distribute = "replicas: 2, drop_remainder_step: true",
        .deliver = "epochs: 2",
    };
    struct served *served = served_open(&options);
    tundish_reader *readers[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        readers[i] = served_reader(served, &(struct wanted){ .replica = i });
    for (int i = 0; i < 2; i++) {
        static const char *const texts[2][7] = {
            { "0.0 value=0,1", "0.1 value=4,5", "END", "1.0 value=0,1", "1.1 value=4,5", "END",
              NULL },
            { "0.0 value=2,3", "0.1 value=6,7", "END", "1.0 value=2,3", "1.1 value=6,7", "END",
              NULL },
        };

        served_expect(readers[i], texts[i]);
    }
    for (int i = 0; i < 2; i++)
        tundish_close(readers[i]);
    served_close(served);
}

static void
more_columns_than_a_batch_has_are_refused(void **state)
{
    enum { COLUMNS = 4097, COLUMN_BYTES = 16 };
    char *stages = malloc(COLUMNS * COLUMN_BYTES), *at = stages;
    const struct served_options options = { .stages = stages };
    struct served *served = NULL;

    (void)state;
    assert_non_null(stages);
    at += sprintf(at, "{from_tensors: {c0: 1");
    for (int i = 1; i < COLUMNS; i++)
        at += sprintf(at, ", c%d: 1", i);
    strcpy(at, "}}");
    assert_int_equal(served_try(&options, &served), TUNDISH_E_PIPELINE);
    if (strstr(tnd_error_text(), "4097 columns are delivered after this stage") == NULL)
        fail_msg("%s", tnd_error_text());
    free(stages);
}

TEST_FILE(test_session)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_of_every_kind_arrive_as_they_were_made),
        cmocka_unit_test(a_bad_row_is_the_error_of_its_step_for_every_replica),
        cmocka_unit_test(bad_rows_are_skipped_where_the_file_says_so),
        cmocka_unit_test(a_paused_session_goes_on_where_it_was),
        cmocka_unit_test(a_trainer_is_told_that_the_server_stops_after_what_is_made),
        cmocka_unit_test(every_replica_that_wants_the_next_epoch_ends_this_one),
        cmocka_unit_test(a_trainer_that_has_left_an_endless_epoch_survives_its_server),
        cmocka_unit_test(readers_of_a_queue_share_its_batches),
        cmocka_unit_test(what_cannot_be_served_is_refused),
        cmocka_unit_test(a_step_with_an_empty_batch_can_be_left_out),
        cmocka_unit_test(more_columns_than_a_batch_has_are_refused),
    };

    return cmocka_run_group_tests(tests, served_make_folder, served_remove_folder);
}
