/* test_named_sessions.c - sessions that trainers ask for, and those of an evaluation's readers. */
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
#include "unit/cluster.h"
#include "unit/test_file.h"

static void
a_named_session_begins_by_itself_and_is_shared_by_its_name(void **state)
{
    static const struct served_options options = { .stages = "{range: 100}, {batch: 1}",
                                                   .deliver = "slots: 4" };
    struct served *served = served_open(&options);
    tundish_reader *own = served_reader(served, &(struct wanted){ 0 });
    tundish_reader *first, *second;

    (void)state;
    for (int i = 0; i < 10; i++)
        (void)served_next(own);
    first = served_reader(served, &(struct wanted){ .session = "mine", .group = "a" });
    second = served_reader(served, &(struct wanted){ .session = "mine", .group = "b" });
    served_expect(first, (const char *[]){ "0.0 value=0", "0.1 value=1", NULL });
    served_expect(second, (const char *[]){ "0.0 value=0", NULL });
    served_expect(own, (const char *[]){ "0.10 value=10", NULL });
    tundish_close(first);
    tundish_close(second);
    tundish_close(own);
    served_close(served);
}

/* Its first batch, of an order that no seed in the file gives. */
static void
first_of(const char *session, uint64_t seed, char text[64])
{
    struct served_options options = {
        .stages = "{range: 1000}, {shuffle: {buffer_size: 1000}}, {batch: 4}",
        .seed = seed,
    };
    struct served *served = served_open(&options);
    tundish_reader *reader = served_reader(served, &(struct wanted){ .session = session });

    snprintf(text, 64, "%s", served_next(reader));
    tundish_close(reader);
    served_close(served);
}

static void
its_seed_follows_from_the_job_s_and_its_name(void **state)
{
    char a[64], again[64], b[64], own[64], of_other_job[64];

    (void)state;
    first_of("a", 1, a);
    first_of("a", 1, again);
    first_of("b", 1, b);
    first_of("s", 1, own);
    first_of("a", 2, of_other_job);
    assert_string_equal(a, again);
    assert_true(strcmp(a, b) != 0 && strcmp(a, own) != 0 && strcmp(a, of_other_job) != 0);
}

static void
it_ends_with_its_last_reader(void **state)
{
    static const struct served_options options = { .stages = "{range: 100}, {batch: 1}",
                                                   .deliver = "slots: 4, rejoin: 1ms" };
    struct served *served = served_open(&options);
    tundish_reader *reader = served_reader(served, &(struct wanted){ .session = "mine" });

    (void)state;
    served_expect(reader, (const char *[]){ "0.0 value=0", "0.1 value=1", NULL });
    named_sessions_reap(served->named); /* it is read */
    served_expect(reader, (const char *[]){ "0.2 value=2", NULL });
    tundish_close(reader);
    while (served->abandoned == 0)
        usleep(100);
    named_sessions_reap(served->named);
    reader = served_reader(served, &(struct wanted){ .session = "mine" });
    served_expect(reader, (const char *[]){ "0.0 value=0", NULL });
    tundish_close(reader);
    served_close(served);
}

/* They are left in the midst of an epoch, and would be kept for those who come back. */
static void
those_that_were_left_make_room_for_others(void **state)
{
    static const struct served_options options = { .stages = "{range: 100}, {batch: 1}",
                                                   .deliver = "slots: 3, rejoin: 600s" };
    struct served *served = served_open(&options);
    tundish_reader *stays = served_reader(served, &(struct wanted){ .session = "stays" });

    (void)state;
    for (int i = 0; i < 70; i++) {
        char name[16];
        tundish_reader *reader;

        snprintf(name, sizeof name, "%d", i);
        reader = served_reader(served, &(struct wanted){ .session = name });
        served_expect(reader, (const char *[]){ "0.0 value=0", NULL });
        tundish_close(reader);
        named_sessions_reap(served->named);
    }
    served_expect(stays, (const char *[]){ "0.0 value=0", NULL });
    tundish_close(stays);
    served_close(served);
}

/* Of one session. Each keeps a cursor in its lanes. */
static void
groups_that_were_left_make_room_for_others(void **state)
{
    static const struct served_options options = { .stages = "{range: 100}, {batch: 1}",
                                                   .deliver = "slots: 3, rejoin: 600s" };
    struct served *served = served_open(&options);
    tundish_reader *stays = served_reader(served, &(struct wanted){ .group = "stays" });

    (void)state;
    for (int i = 0; i < 70; i++) {
        char name[16];
        tundish_reader *reader;

        snprintf(name, sizeof name, "%d", i);
        reader = served_reader(served, &(struct wanted){ .group = name });
        served_expect(reader, (const char *[]){ "0.0 value=0", NULL });
        tundish_close(reader);
    }
    served_expect(stays, (const char *[]){ "0.0 value=0", NULL });
    tundish_close(stays);
    served_close(served);
}

static void
what_a_trainer_cannot_have_is_refused(void **state)
{
    static const struct served_options options = { .stages = "{range: 100}, {batch: 1}" };
    struct served *served = served_open(&options);
    tundish_options wanted = TUNDISH_OPTIONS_INIT;
    tundish_reader *reader = NULL;

    (void)state;
    wanted.server = served->path;
    wanted.stream = "other";
    assert_int_equal(tundish_open(&wanted, &reader), TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tundish_last_error(), "other"));
    wanted.stream = "s";
    wanted.session = "mine";
    wanted.server_timeout_ns = 1; /* it asks again until then */
    named_sessions_stop(served->named);
    assert_int_equal(tundish_open(&wanted, &reader), TUNDISH_E_SERVER_GONE);
    assert_null(reader);
    served_close(served);
}

enum { ROWS = 30 };

/* Read until the epoch ends: how often each row came, and how many shards ended. */
static unsigned
read_epoch(tundish_reader *const readers[2], unsigned counts[ROWS])
{
    bool over[2] = { false };
    unsigned shards = 0;

    while (!over[0] || !over[1])
        for (int i = 0; i < 2; i++) {
            const tundish_batch *batch;
            const tundish_tensor *tensor;
            tundish_status status =
                over[i] ? TUNDISH_E_TIMEOUT : tundish_next(readers[i], 1000000, &batch);

            over[i] |= status == TUNDISH_END;
            if (status == TUNDISH_E_TIMEOUT || status == TUNDISH_END)
                continue;
            assert_int_equal(status, TUNDISH_OK);
            assert_int_equal(tundish_tensor_at(batch, 0, &tensor), TUNDISH_OK);
            for (uint64_t k = 0; k < tensor->element_count; k++)
                counts[((const int64_t *)tensor->data)[k]]++;
            shards += (batch->flags & TUNDISH_BATCH_SHARD_END) != 0;
            tundish_release(readers[i], batch);
        }
    return shards;
}

static void
assert_each_once(const unsigned counts[ROWS])
{
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(counts[i], 1);
}

static void
readers_of_an_evaluation_get_every_shard_once(void **state)
{
    static const struct {
        const char *distribute;
        unsigned shards; /* 0: as many as the server takes */
    } cases[] = { { "evaluation_shards: 5", 5 }, { "evaluation_shards: auto", 0 } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct served_options options = {
            .stages = "{range: 30}, {shuffle: {buffer_size: 30}}, {batch: 4}",
            .distribute = cases[i].distribute,
            .deliver = "epochs: 2",
        };
        struct served *served = served_open(&options);
        tundish_reader *readers[2];

        for (int r = 0; r < 2; r++)
            readers[r] = served_reader(served, &(struct wanted){ .group = r == 0 ? "a" : "b" });
        for (int epoch = 0; epoch < 2; epoch++) {
            unsigned counts[ROWS] = { 0 };
            unsigned shards = read_epoch(readers, counts);

            assert_each_once(counts);
            assert_true(cases[i].shards == 0 ? shards >= 5 : shards == cases[i].shards);
        }
        assert_string_equal(served_next(readers[0]), "END_OF_STREAM");
        for (int r = 0; r < 2; r++)
            tundish_close(readers[r]);
        named_sessions_reap(served->named);
        served_close(served);
    }
}

static void
shards_of_a_reader_that_left_go_to_another(void **state)
{
    static const struct served_options options = {
        .stages = "{range: 30}, {batch: 4}",
        .distribute = "evaluation_shards: 3",
    };
    struct served *served = served_open(&options);
    tundish_reader *readers[2];
    unsigned counts[ROWS] = { 0 };

    (void)state;
    readers[0] = served_reader(served, &(struct wanted){ .group = "leaves" });
    (void)served_next(readers[0]); /* some of a shard */
    tundish_close(readers[0]);
    for (int r = 0; r < 2; r++)
        readers[r] = served_reader(served, &(struct wanted){ .group = r == 0 ? "a" : "b" });
    assert_int_equal(read_epoch(readers, counts), 3);
    assert_each_once(counts);
    for (int r = 0; r < 2; r++)
        tundish_close(readers[r]);
    served_close(served);
}

static void
an_evaluation_has_no_places(void **state)
{
    static const struct served_options stream = { .stages = "{range: 30}, {batch: 4}" };
    static const struct served_options evaluation = { .stages = "{range: 30}, {batch: 4}",
                                                      .distribute = "evaluation_shards: 3" };
    struct served *served = served_open(&stream);
    tundish_reader *reader = served_reader(served, &(struct wanted){ 0 });
    tundish_reader *refused = NULL;
    char token[2048];

    (void)state;
    (void)served_next(reader);
    snprintf(token, sizeof token, "%s", served_token(reader));
    tundish_close(reader);
    served_close(served);
    served = served_open(&evaluation);
    assert_int_equal(served_try_reader(served, &(struct wanted){ .token = token }, &refused),
                     TUNDISH_E_PLACE);
    assert_non_null(strstr(tundish_last_error(), "an evaluation has no places"));
    assert_null(refused);
    served_close(served);
}

static void
readers_on_several_nodes_share_an_evaluation(void **state)
{
    struct served_options options = {
        .stages = "{range: 30}, {batch: 4}",
        .distribute = "evaluation_shards: 7",
        .deliver = "epochs: 2",
    };
    struct link *links[2];
    struct served *served[2];
    tundish_reader *readers[2];

    (void)state;
    cluster_open(2, links);
    served_open_all(2, &options, links, served);
    for (int r = 0; r < 2; r++)
        readers[r] = served_reader(served[r], &(struct wanted){ 0 });
    for (int epoch = 0; epoch < 2; epoch++) {
        unsigned counts[ROWS] = { 0 };

        assert_int_equal(read_epoch(readers, counts), 7);
        assert_each_once(counts);
    }
    for (int r = 0; r < 2; r++)
        tundish_close(readers[r]);
    for (int r = 1; r >= 0; r--)
        served_close(served[r]);
    cluster_close(2, links);
}

static void
a_stream_that_nodes_share_has_no_session_of_one_trainer(void **state)
{
    struct served_options options = { .stages = "{range: 30}, {batch: 4}" };
    struct link *links[2];
    struct served *served[2];
    tundish_reader *reader = NULL;

    (void)state;
    cluster_open(2, links);
    served_open_all(2, &options, links, served);
    assert_int_equal(served_try_reader(served[0], &(struct wanted){ .session = "mine" }, &reader),
                     TUNDISH_E_ARGUMENT);
    assert_non_null(strstr(tundish_last_error(), "only with from_function: true"));
    for (int i = 0; i < 2; i++)
        served_close(served[i]);
    cluster_close(2, links);
    options.distribute = "from_function: true";
    cluster_open(2, links);
    served_open_all(2, &options, links, served);
    reader = served_reader(served[1], &(struct wanted){ .session = "mine" });
    served_expect(reader, (const char *[]){ "0.0 value=0,1,2,3", NULL });
    tundish_close(reader);
    for (int i = 0; i < 2; i++)
        served_close(served[i]);
    cluster_close(2, links);
}

static void
a_session_is_not_begun_in_a_job_that_has_failed(void **state)
{
    static const struct served_options options = { .stages = "{range: 30}, {batch: 4}",
                                                   .distribute = "from_function: true" };
    struct link *links[2];
    struct served *served[2];
    tundish_reader *reader = NULL;

    (void)state;
    cluster_open(2, links);
    served_open_all(2, &options, links, served);
    link_fail(links[1], "the cable was pulled");
    assert_int_equal(served_try_reader(served[1], &(struct wanted){ .session = "mine" }, &reader),
                     TUNDISH_E_PEER_LOST);
    assert_non_null(strstr(tundish_last_error(), "the cable was pulled"));
    for (int i = 0; i < 2; i++)
        served_close(served[i]);
    link_close(links[1]);
    link_close(links[0]);
}

TEST_FILE(test_named_sessions)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_named_session_begins_by_itself_and_is_shared_by_its_name),
        cmocka_unit_test(its_seed_follows_from_the_job_s_and_its_name),
        cmocka_unit_test(it_ends_with_its_last_reader),
        cmocka_unit_test(those_that_were_left_make_room_for_others),
        cmocka_unit_test(groups_that_were_left_make_room_for_others),
        cmocka_unit_test(what_a_trainer_cannot_have_is_refused),
        cmocka_unit_test(readers_of_an_evaluation_get_every_shard_once),
        cmocka_unit_test(shards_of_a_reader_that_left_go_to_another),
        cmocka_unit_test(an_evaluation_has_no_places),
        cmocka_unit_test(readers_on_several_nodes_share_an_evaluation),
        cmocka_unit_test(a_stream_that_nodes_share_has_no_session_of_one_trainer),
        cmocka_unit_test(a_session_is_not_begun_in_a_job_that_has_failed),
    };

    return cmocka_run_group_tests(tests, served_make_folder, served_remove_folder);
}
