/* test_start_barrier.c - where and when a session begins: at the lowest place that is brought, when
 * all are there whom it waits for. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/memory.h"
#include "session/checkpoint/session_state.h"
#include "session/served.h"
#include "session/session_private.h"
#include "unit/test_file.h"

enum { STEPS = 12 };

static const struct served_options two_replicas = { .stages = "{range: 100}, {batch: 2}",
                                                    .distribute = "replicas: 2",
                                                    .deliver = "slots: 4" };

/* The token of a replica that has taken so many steps of a server like that; the caller frees it.
 */
static char *
token_after(const struct served_options *options, int replica, unsigned steps)
{
    struct served *served = served_open(options);
    tundish_reader *reader = served_reader(served, &(struct wanted){ .replica = replica });
    char *token;

    for (unsigned i = 0; i < steps; i++)
        assert_int_equal(served_next(reader)[0], '0');
    token = tnd_strdup(served_token(reader));
    tundish_close(reader);
    served_close(served);
    return token;
}

static void
expect_one(tundish_reader *reader, const char *text)
{
    served_expect(reader, (const char *[]){ text, NULL });
}

static bool
is_closed(struct session *session)
{
    bool closed;

    tnd_lock_take(&session->control.lock);
    closed = session->control.barrier.closed;
    tnd_lock_release(&session->control.lock);
    return closed;
}

static void
no_batch_is_dealt_before_all_groups_are_there(void **state)
{
    static const struct served_options options = { .stages = "{range: 9}, {batch: 2}",
                                                   .distribute = "groups: 3" };
    struct served *served = served_open(&options);
    tundish_reader *readers[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        static const char *const groups[] = { "a", "b", "c" };

        readers[i] = served_reader(served, &(struct wanted){ .group = groups[i] });
        /* That a group has joined is known for certain when the next has come. */
        assert_true(i == 2 || is_closed(served->session));
        for (int k = 0; k < i && i < 2; k++)
            assert_true(served_is_quiet(readers[k]));
    }
    for (int i = 0; i < 3; i++) {
        expect_one(readers[i], "0.0 value=0,1");
        tundish_close(readers[i]);
    }
    served_close(served);
}

static void
groups_that_do_not_come_are_waited_for_only_so_long(void **state)
{
    static const struct served_options options = {
        .stages = "{range: 9}, {batch: 2}",
        .distribute = "groups: 3",
        .deliver = "group_wait: 1ms",
    };
    struct served *served = served_open(&options);
    tundish_reader *reader = served_reader(served, &(struct wanted){ .group = "alone" });

    (void)state;
    expect_one(reader, "0.0 value=0,1");
    tundish_close(reader);
    served_close(served);
}

static void
the_lowest_place_is_the_start(void **state)
{
    static const struct {
        unsigned steps[2];    /* after which the tokens of both replicas were taken */
        const char *texts[2]; /* what comes first */
    } cases[] = {
        { { 3, 1 }, { "0.3 value=6", "0.1 value=3" } },
        { { 1, 3 }, { "0.1 value=2", "0.3 value=7" } },
        { { 2, 2 }, { "0.2 value=4", "0.2 value=5" } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct served *served;
        tundish_reader *readers[2];
        char *tokens[2];

        for (int r = 0; r < 2; r++)
            tokens[r] = token_after(&two_replicas, r, cases[i].steps[r]);
        served = served_open(&two_replicas);
        for (int r = 0; r < 2; r++)
            readers[r] =
                served_reader(served, &(struct wanted){ .token = tokens[r], .replica = r });
        for (int r = 0; r < 2; r++)
            expect_one(readers[r], cases[i].texts[r]);
        for (int r = 0; r < 2; r++) {
            tundish_close(readers[r]);
            free(tokens[r]);
        }
        served_close(served);
    }
}

/* The text of each step; the caller frees them. */
static void
read_all(tundish_reader *reader, unsigned count, char *ret_texts[STEPS])
{
    for (unsigned i = 0; i < count; i++)
        ret_texts[i] = tnd_strdup(served_next(reader));
}

static void
a_place_brings_the_seed_of_its_run(void **state)
{
    struct served_options options = {
        .stages = "{range: 24}, {shuffle: {buffer_size: 24}}, {batch: 2}",
        .seed = 7,
    };
    struct served *served = served_open(&options);
    tundish_reader *reader = served_reader(served, &(struct wanted){ 0 });
    char *first[STEPS], *again[STEPS], *token = NULL;
    bool differs = false;

    (void)state;
    for (unsigned i = 0; i < STEPS; i++) {
        if (i == 5)
            token = tnd_strdup(served_token(reader));
        first[i] = tnd_strdup(served_next(reader));
    }
    tundish_close(reader);
    served_close(served);
    options.seed = 8;
    served = served_open(&options);
    reader = served_reader(served, &(struct wanted){ .token = token });
    read_all(reader, STEPS - 5, again);
    for (unsigned i = 0; i < STEPS - 5; i++) {
        assert_string_equal(again[i], first[i + 5]);
        free(again[i]);
    }
    tundish_close(reader);
    served_close(served);
    served = served_open(&options);
    reader = served_reader(served, &(struct wanted){ 0 });
    read_all(reader, STEPS, again);
    for (unsigned i = 0; i < STEPS; i++) {
        differs |= strcmp(again[i], first[i]) != 0;
        free(again[i]);
        free(first[i]);
    }
    assert_true(differs); /* else the seed of the run would not matter */
    tundish_close(reader);
    served_close(served);
    free(token);
}

static void
places_that_cannot_be_taken_up_are_refused(void **state)
{
    static const struct served_options drawn = { .stages =
                                                     "{range: 100}, {shuffle: 50}, {batch: 2}",
                                                 .distribute = "replicas: 2",
                                                 .deliver = "slots: 4" };
    struct served_options other_seed = drawn;
    static const struct served_options other_batches = { .stages = "{range: 100}, {batch: 4}",
                                                         .distribute = "replicas: 2" };
    char *token = token_after(&drawn, 0, 2), *of_other = token_after(&other_batches, 0, 1);
    char *of_other_seed;
    tundish_reader *reader, *refused = NULL;
    struct served *served;

    (void)state;
    other_seed.seed = 5;
    of_other_seed = token_after(&other_seed, 1, 2);
    served = served_open(&drawn);
    assert_int_equal(served_try_reader(served, &(struct wanted){ .token = of_other }, &refused),
                     TUNDISH_E_PLACE);
    assert_non_null(strstr(tundish_last_error(), "another pipeline"));
    reader = served_reader(served, &(struct wanted){ .token = token });
    assert_int_equal(served_try_reader(served,
                                       &(struct wanted){ .token = of_other_seed, .replica = 1 },
                                       &refused),
                     TUNDISH_E_PLACE);
    assert_null(refused);
    tundish_close(reader);
    served_close(served);
    free(token);
    free(of_other);
    free(of_other_seed);
}

/* Then the root seed decides nothing, and each server draws one. */
static void
a_place_of_another_root_seed_is_as_good_where_no_stage_draws_from_it(void **state)
{
    struct served_options other_seed = two_replicas;
    char *token;
    struct served *served = served_open(&two_replicas);
    tundish_reader *first = served_reader(served, &(struct wanted){ 0 }), *second;

    (void)state;
    other_seed.seed = 5;
    token = token_after(&other_seed, 1, 2);
    expect_one(first, "0.0 value=0");
    second = served_reader(served, &(struct wanted){ .token = token, .replica = 1 });
    expect_one(second, "0.2 value=5");
    tundish_close(first);
    tundish_close(second);
    served_close(served);
    free(token);
}

/* At its next call; it may take a batch before the word is there. */
static void
expect_refusal(tundish_reader *reader, const char *text)
{
    const char *next;

    do
        next = served_next(reader);
    while (next[0] == '0');
    assert_string_equal(next, "E_PLACE");
    assert_non_null(strstr(tundish_last_error(), text));
}

/* A replica that comes without a place gets no batch. */
static void
expect_refused(struct served *served, uint32_t replica, const char *text)
{
    tundish_reader *reader = served_reader(served, &(struct wanted){ .replica = (int)replica });

    assert_string_equal(served_next(reader), "E_PLACE");
    assert_non_null(strstr(tundish_last_error(), text));
    tundish_close(reader);
}

/* Whether it has taken batches or not: nothing says that it has had those before the place. */
static void
a_replica_without_a_place_is_told_of_its_siblings_place(void **state)
{
    char *token = token_after(&two_replicas, 0, 3);

    (void)state;
    for (int taken = 0; taken < 2; taken++) {
        struct served *served = served_open(&two_replicas);
        tundish_reader *without = served_reader(served, &(struct wanted){ .replica = 1 }), *with;

        if (taken > 0)
            expect_one(without, "0.0 value=1");
        with = served_reader(served, &(struct wanted){ .token = token });
        expect_refusal(without, "replica 0 of group \"default\" opened at its place, epoch 0, step "
                                "3, and replica 1 has none");
        tundish_close(without);
        expect_refused(served, 1, "replica 1 has none");
        without = served_reader(served, &(struct wanted){ .token = token, .replica = 1 });
        expect_one(with, "0.3 value=6");
        expect_one(without, "0.3 value=7");
        tundish_close(with);
        tundish_close(without);
        served_close(served);
    }
    free(token);
}

/* Both open, and then both load their places, one after the other. */
static void
replicas_that_load_their_places_late_are_not_disturbed(void **state)
{
    char *token = token_after(&two_replicas, 0, 3);
    struct served *served = served_open(&two_replicas);
    tundish_reader *readers[2];

    (void)state;
    for (int r = 0; r < 2; r++)
        readers[r] = served_reader(served, &(struct wanted){ .replica = r });
    for (int r = 0; r < 2; r++) {
        tundish_close(readers[r]);
        readers[r] = served_reader(served, &(struct wanted){ .token = token, .replica = r });
    }
    expect_one(readers[0], "0.3 value=6");
    expect_one(readers[1], "0.3 value=7");
    for (int r = 0; r < 2; r++)
        tundish_close(readers[r]);
    served_close(served);
    free(token);
}

/* One has loaded its place before the other has come, which opens without one to load it then. */
static void
a_replica_that_comes_late_may_load_its_place_late(void **state)
{
    char *token = token_after(&two_replicas, 0, 3);

    (void)state;
    for (int lived = 0; lived < 2; lived++) {
        struct served *served = served_open(&two_replicas);
        tundish_reader *readers[2];

        for (int r = 0; r < 2 && lived; r++)
            readers[r] = served_reader(served, &(struct wanted){ .replica = r });
        for (int r = 0; r < 2 && lived; r++) {
            (void)served_next(readers[r]);
            tundish_close(readers[r]);
        }
        readers[0] = served_reader(served, &(struct wanted){ .token = token });
        tundish_close(served_reader(served, &(struct wanted){ .replica = 1 }));
        readers[1] = served_reader(served, &(struct wanted){ .token = token, .replica = 1 });
        for (int step = 3; step < 12; step++)
            for (int r = 0; r < 2; r++) {
                char expected[64];

                snprintf(expected, sizeof expected, "0.%d value=%d", step, 2 * step + r);
                expect_one(readers[r], expected);
            }
        for (int r = 0; r < 2; r++)
            tundish_close(readers[r]);
        served_close(served);
    }
    free(token);
}

/* Its sibling lives on, and the place is behind all that it took. */
static void
a_successor_at_its_predecessor_s_place_disturbs_nobody(void **state)
{
    struct served *served = served_open(&two_replicas);
    tundish_reader *with = served_reader(served, &(struct wanted){ .replica = 0 });
    tundish_reader *without = served_reader(served, &(struct wanted){ .replica = 1 });
    char token[4096];

    (void)state;
    served_expect(with, (const char *[]){ "0.0 value=0", "0.1 value=2", "0.2 value=4", NULL });
    strcpy(token, served_token(with));
    tundish_close(with);
    with = served_reader(served, &(struct wanted){ .token = token });
    expect_one(with, "0.3 value=6");
    served_expect(without, (const char *[]){ "0.0 value=1", "0.1 value=3", NULL });
    tundish_close(without);
    without = served_reader(served, &(struct wanted){ .replica = 1 });
    expect_one(without, "0.2 value=5");
    tundish_close(with);
    tundish_close(without);
    served_close(served);
}

/* A place that is brought moves the start, and its replica waits for the other's place or not. */
static void
beside_a_place_a_replica_without_one_is_refused(void **state)
{
    char *token = token_after(&two_replicas, 0, 2);

    (void)state;
    for (int begun = 0; begun < 2; begun++) {
        struct served *served = served_open(&two_replicas);
        tundish_reader *with = served_reader(served, &(struct wanted){ .token = token });

        if (begun)
            expect_one(with, "0.2 value=4");
        expect_refused(served, 1,
                       "replica 0 of group \"default\" opened at its place, epoch 0, step 2, and "
                       "replica 1 has none and may lack what was before");
        tundish_close(with);
        served_close(served);
    }
    free(token);
}

/* Both have left a server that lives on. One comes back at a place beyond that. */
static void
beside_a_place_a_replica_is_refused_where_both_have_been(void **state)
{
    static const struct served_options one_replica = { .stages = "{range: 100}, {batch: 2}",
                                                       .deliver = "slots: 4" };
    char *token = token_after(&one_replica, 0, 7);
    struct served *served = served_open(&two_replicas);
    tundish_reader *readers[2];

    (void)state;
    for (int r = 0; r < 2; r++)
        readers[r] = served_reader(served, &(struct wanted){ .replica = r });
    for (int r = 0; r < 2; r++) {
        (void)served_next(readers[r]);
        tundish_close(readers[r]);
    }
    readers[0] = served_reader(served, &(struct wanted){ .token = token });
    expect_refused(served, 1, "epoch 0, step 7, and replica 1 has none");
    readers[1] = served_reader(served, &(struct wanted){ .token = token, .replica = 1 });
    expect_one(readers[1], "0.7 value=15");
    for (int r = 0; r < 2; r++)
        tundish_close(readers[r]);
    served_close(served);
    free(token);
}

static void
a_place_that_others_have_passed_is_refused(void **state)
{
    static const struct served_options options = { .stages = "{range: 100}, {batch: 1}",
                                                   .deliver = "slots: 3" };
    char *token = token_after(&options, 0, 1);
    struct served *served = served_open(&options);
    tundish_reader *ahead = served_reader(served, &(struct wanted){ .group = "ahead" });
    tundish_reader *late = NULL;

    (void)state;
    for (int i = 0; i < 20; i++)
        (void)served_next(ahead);
    assert_int_equal(
        served_try_reader(served, &(struct wanted){ .group = "late", .token = token }, &late),
        TUNDISH_E_PLACE);
    assert_non_null(strstr(tundish_last_error(), "have passed epoch 0, step 1"));
    late = served_reader(served, &(struct wanted){ .group = "late" });
    tundish_close(late);
    tundish_close(ahead);
    served_close(served);
    free(token);
}

/* Nobody else reads: the session goes back for it. */
static void
a_place_moves_a_session_that_nobody_reads(void **state)
{
    static const struct served_options options = { .stages = "{range: 100}, {batch: 1}",
                                                   .deliver = "slots: 3, rejoin: 1ms" };
    char *token = token_after(&options, 0, 1);
    struct served *served = served_open(&options);
    tundish_reader *reader = served_reader(served, &(struct wanted){ .group = "before" });

    (void)state;
    for (int i = 0; i < 20; i++)
        (void)served_next(reader);
    tundish_close(reader);
    while (!session_is_abandoned(served->session))
        ;
    reader = served_reader(served, &(struct wanted){ .group = "after", .token = token });
    served_expect(reader, (const char *[]){ "0.1 value=1", "0.2 value=2", NULL });
    tundish_close(reader);
    served_close(served);
    free(token);
}

/* Until the new server is there, and after what was published: E_SERVER_GONE. */
static void
expect_after_loss(tundish_reader *reader, const char *expected)
{
    const char *text;

    do
        text = served_next(reader);
    while (strcmp(text, "E_SERVER_GONE") == 0);
    assert_string_equal(text, expected);
}

static void
survivors_go_on_where_they_were(void **state)
{
    static const struct served_options options = { .stages = "{range: 100}, {batch: 1}",
                                                   .deliver = "slots: 4",
                                                   .name = "restarted" };
    struct served *served = served_open(&options);
    tundish_reader *reader = served_reader(served, &(struct wanted){ 0 });
    char text[32];

    (void)state;
    for (int i = 0; i < 9; i++) {
        if (i == 3) {
            served_kill(served);
            served = served_open(&options);
        }
        snprintf(text, sizeof text, "0.%d value=%d", i, i);
        expect_after_loss(reader, text);
    }
    tundish_close(reader);
    served_close(served);
}

static void
a_server_that_keeps_its_place_goes_on_there(void **state)
{
    struct served_options options = { .stages = "{range: 24}, {shuffle: {buffer_size: 9}}, "
                                                "{batch: 2}",
                                      .deliver = "slots: 4",
                                      .seed = 3,
                                      .state = served_folder };
    char *texts[STEPS];
    struct served *served = served_open(&options);
    tundish_reader *reader = served_reader(served, &(struct wanted){ 0 });
    const tundish_batch *batch;

    (void)state;
    read_all(reader, 5, texts);
    assert_int_equal(tundish_next(reader, PATIENCE_NS, &batch), TUNDISH_OK); /* not given back */
    texts[5] = tnd_strdup(served_text(batch));
    session_state_keep(served->session);
    served_kill(served);
    tundish_close(reader);
    options.seed = 4; /* the place brings the seed */
    served = served_open(&options);
    reader = served_reader(served, &(struct wanted){ 0 });
    expect_one(reader, texts[5]);
    tundish_close(reader);
    served_close(served);
    for (int i = 0; i < 6; i++)
        free(texts[i]);
}

/* The first batch that comes to `reader`, for which `other` may have to pass over some: it is at
 * its own place, whose batch it does not get yet. */
static void
expect_beside(tundish_reader *reader, tundish_reader *other, const char *text)
{
    const tundish_batch *batch;
    tundish_status status;

    while ((status = tundish_next(reader, 0, &batch)) == TUNDISH_E_TIMEOUT)
        assert_true(served_is_quiet(other));
    assert_int_equal(status, TUNDISH_OK);
    assert_string_equal(served_text(batch), text);
    tundish_release(reader, batch);
}

/* With a folder of its own. */
static struct served_options
kept_replicas(char folder[128])
{
    snprintf(folder, 128, "%s/XXXXXX", served_folder);
    assert_non_null(mkdtemp(folder));
    return (struct served_options){ .stages = "{range: 100}, {batch: 2}",
                                    .distribute = "replicas: 2",
                                    .deliver = "slots: 4",
                                    .state = folder };
}

/* Both replicas take so many steps of a server that keeps its place, and the survivor lives on. The
 * file says that nobody has had a step. */
static tundish_reader *
outlive(const struct served_options *options, unsigned steps, char *ret_token)
{
    struct served *served;
    tundish_reader *readers[2];

    served = served_open(options);
    for (int r = 0; r < 2; r++)
        readers[r] = served_reader(served, &(struct wanted){ .replica = r });
    for (unsigned i = 0; i < steps; i++)
        for (int r = 0; r < 2; r++)
            assert_int_equal(served_next(readers[r])[0], '0');
    if (ret_token != NULL)
        strcpy(ret_token, served_token(readers[0]));
    served_kill(served);
    tundish_close(readers[1]);
    return readers[0];
}

static void
read_until_gone(tundish_reader *reader)
{
    const char *text;

    while ((text = served_next(reader))[0] == '0')
        ;
    assert_string_equal(text, "E_SERVER_GONE");
}

static void
survivors_of_several_servers_go_on_where_the_last_one_began(void **state)
{
    char folder[128];
    struct served_options options = kept_replicas(folder);
    struct served *served;
    tundish_reader *first, *second;

    (void)state;
    options.name = "kept";
    first = outlive(&options, 8, NULL);
    served = served_open(&options);
    second = served_reader(served, &(struct wanted){ .replica = 1 });
    /* All slots: the other replica has given back none. */
    served_expect(second, (const char *[]){ "0.0 value=1", "0.1 value=3", "0.2 value=5",
                                            "0.3 value=7", NULL });
    served_kill(served);
    served = served_open(&options);
    read_until_gone(first);
    assert_true(served_is_quiet(first)); /* and is at the server */
    read_until_gone(second);
    expect_beside(second, first, "0.4 value=9");
    tundish_close(first);
    tundish_close(second);
    served_close(served);
}

/* The server hears what was given back when it needs the room. */
static void
keep_step(struct session *session, uint64_t step)
{
    struct lane_queue_state queue = { 0 };
    uint64_t epoch, standing;

    while (!feed_standing(session->feed, &epoch, &standing, &queue) || standing != step)
        sched_yield();
    (void)session_state_keep(session); /* it may be in the file already */
}

/* A survivor stands at this step, of a server whose memory had all from the beginning on. Returns
 * the step that the session is to begin with. */
static uint64_t
step_after_survivor(struct session *session, uint64_t step)
{
    const struct feed_start start = { .survivor = true, .step = step, .has_kept = true };
    tundish_status status;
    struct place place;
    uint64_t begin;

    place_ready(session->plan, &session->place_files, &place);
    tnd_lock_take(&session->control.lock);
    status = start_barrier_lower(session, "default", &place, &start);
    begin = session->control.barrier.step;
    tnd_lock_release(&session->control.lock);
    assert_int_equal(status, TUNDISH_OK);
    return begin;
}

static void
what_the_file_says_was_given_back_does_not_come_again(void **state)
{
    char folder[128];
    struct served_options options = kept_replicas(folder);
    struct served *served = served_open(&options);
    tundish_reader *readers[2];

    (void)state;
    for (int r = 0; r < 2; r++)
        readers[r] = served_reader(served, &(struct wanted){ .replica = r });
    for (int i = 0; i < 2; i++)
        for (int r = 0; r < 2; r++)
            assert_int_equal(served_next(readers[r])[0], '0');
    keep_step(served->session, 2);
    served_kill(served);
    for (int r = 0; r < 2; r++)
        tundish_close(readers[r]);
    options.distribute = "replicas: 2, groups: 2"; /* so it waits, with its start not yet fixed */
    served = served_open(&options);
    assert_int_equal(step_after_survivor(served->session, 3), 2);
    assert_int_equal(step_after_survivor(served->session, 2), 2);
    assert_int_equal(step_after_survivor(served->session, 1), 0); /* from before the file's */
    served_close(served);
}

static void
beside_a_place_ahead_of_the_kept_one_a_replica_without_one_is_refused(void **state)
{
    char folder[128], token[4096];
    const struct served_options options = kept_replicas(folder);
    struct served *served;
    tundish_reader *reader;

    (void)state;
    tundish_close(outlive(&options, 8, token));
    served = served_open(&options);
    reader = served_reader(served, &(struct wanted){ .token = token });
    expect_refused(served, 1, "replica 1 has none");
    tundish_close(reader);
    served_close(served);
}

/* The file is so far behind that a lane would be full of what one replica has had, before the other
 * is read. Nothing is lost, and nothing comes twice. */
static void
replicas_that_all_bring_places_do_not_begin_at_the_kept_one(void **state)
{
    char folder[128], token[4096];
    const struct served_options options = kept_replicas(folder);
    struct served *served;
    tundish_reader *readers[2];

    (void)state;
    tundish_close(outlive(&options, 8, token));
    served = served_open(&options);
    for (int r = 0; r < 2; r++)
        readers[r] = served_reader(served, &(struct wanted){ .token = token, .replica = r });
    for (int step = 8; step < 50; step++)
        for (int r = 0; r < 2; r++) {
            char text[64];

            snprintf(text, sizeof text, "0.%d value=%d", step, 2 * step + r);
            expect_one(readers[r], text);
        }
    for (int r = 0; r < 2; r++) {
        assert_string_equal(served_next(readers[r]), "END");
        tundish_close(readers[r]);
    }
    served_close(served);
}

/* Of a group that does not wait. */
struct hasty {
    tundish_reader *reader;
    pthread_t thread;
    _Atomic bool *is_over;
};

static void *
read_on(void *argument)
{
    struct hasty *hasty = argument;
    const tundish_batch *batch;

    while (!atomic_load(hasty->is_over))
        if (tundish_next(hasty->reader, 10000000, &batch) == TUNDISH_OK)
            tundish_release(hasty->reader, batch);
    return NULL;
}

static uint64_t
first_step_of(struct served *served, const char *group, int replica, tundish_reader **ret_reader)
{
    const tundish_batch *batch;
    uint64_t step;

    *ret_reader = served_reader(served, &(struct wanted){ .group = group, .replica = replica });
    assert_int_equal(tundish_next(*ret_reader, PATIENCE_NS, &batch), TUNDISH_OK);
    step = batch->step;
    tundish_release(*ret_reader, batch);
    return step;
}

static void
replicas_of_a_group_that_joins_others_begin_at_one_step(void **state)
{
    static const struct served_options options = { .stages = "{range: 1000000000}, {batch: 2}",
                                                   .distribute = "replicas: 2",
                                                   .deliver = "slots: 4, rejoin: 1ms" };
    struct served *served = served_open(&options);
    _Atomic bool is_over = false;
    struct hasty hasty[2];

    (void)state;
    for (int r = 0; r < 2; r++) {
        hasty[r] = (struct hasty){ .is_over = &is_over };
        hasty[r].reader = served_reader(served, &(struct wanted){ .group = "hasty", .replica = r });
    }
    for (int r = 0; r < 2; r++)
        assert_int_equal(pthread_create(&hasty[r].thread, NULL, read_on, &hasty[r]), 0);
    for (int i = 0; i < 300; i++) {
        tundish_reader *readers[2];
        uint64_t steps[2];
        char group[16];

        snprintf(group, sizeof group, "%d", i);
        for (int r = 0; r < 2; r++)
            steps[r] = first_step_of(served, group, r, &readers[r]);
        assert_int_equal(steps[0], steps[1]);
        for (int r = 0; r < 2; r++)
            tundish_close(readers[r]);
    }
    atomic_store(&is_over, true);
    for (int r = 0; r < 2; r++) {
        pthread_join(hasty[r].thread, NULL);
        tundish_close(hasty[r].reader);
    }
    served_close(served);
}

static void
a_queue_without_its_server_s_memory_is_not_gone_on_with(void **state)
{
    static const struct served_options options = { .stages = "{range: 100}, {batch: 1}",
                                                   .distribute = "delivery: queue",
                                                   .deliver = "slots: 3",
                                                   .name = "queue" };
    struct served *served = served_open(&options);
    tundish_reader *reader = served_reader(served, &(struct wanted){ 0 });
    const char *text;

    (void)state;
    (void)served_next(reader);
    served_kill(served);
    served = served_open(&options);
    do
        text = served_next(reader);
    while (text[0] == '0' || strcmp(text, "E_SERVER_GONE") == 0);
    assert_string_equal(text, "E_PLACE");
    assert_non_null(strstr(tundish_last_error(), "does not know which batches were visited"));
    tundish_close(reader);
    served_close(served);
}

TEST_FILE(test_start_barrier)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_batch_is_dealt_before_all_groups_are_there),
        cmocka_unit_test(groups_that_do_not_come_are_waited_for_only_so_long),
        cmocka_unit_test(the_lowest_place_is_the_start),
        cmocka_unit_test(a_place_brings_the_seed_of_its_run),
        cmocka_unit_test(places_that_cannot_be_taken_up_are_refused),
        cmocka_unit_test(a_place_of_another_root_seed_is_as_good_where_no_stage_draws_from_it),
        cmocka_unit_test(a_replica_without_a_place_is_told_of_its_siblings_place),
        cmocka_unit_test(replicas_that_load_their_places_late_are_not_disturbed),
        cmocka_unit_test(a_replica_that_comes_late_may_load_its_place_late),
        cmocka_unit_test(a_successor_at_its_predecessor_s_place_disturbs_nobody),
        cmocka_unit_test(beside_a_place_a_replica_without_one_is_refused),
        cmocka_unit_test(beside_a_place_a_replica_is_refused_where_both_have_been),
        cmocka_unit_test(a_place_that_others_have_passed_is_refused),
        cmocka_unit_test(a_place_moves_a_session_that_nobody_reads),
        cmocka_unit_test(survivors_go_on_where_they_were),
        cmocka_unit_test(a_server_that_keeps_its_place_goes_on_there),
        cmocka_unit_test(survivors_of_several_servers_go_on_where_the_last_one_began),
        cmocka_unit_test(what_the_file_says_was_given_back_does_not_come_again),
        cmocka_unit_test(replicas_that_all_bring_places_do_not_begin_at_the_kept_one),
        cmocka_unit_test(beside_a_place_ahead_of_the_kept_one_a_replica_without_one_is_refused),
        cmocka_unit_test(replicas_of_a_group_that_joins_others_begin_at_one_step),
        cmocka_unit_test(a_queue_without_its_server_s_memory_is_not_gone_on_with),
    };

    return cmocka_run_group_tests(tests, served_make_folder, served_remove_folder);
}
