/* test_departure.c - trainers leave in each way, from each kind of feed, and what follows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/must.h"
#include "deliver/feed_delivery.h"
#include "unit/test_file.h"

enum kind { REPLICAS, QUEUE, EVALUATION };

/* What the session is told. */
struct told {
    uint32_t left, ended;
    const struct departure *departure;
};

static tundish_status
admit(void *user, struct feed *feed, const char *group, uint32_t replica,
      const struct feed_start *start)
{
    (void)user, (void)feed, (void)group, (void)replica, (void)start;
    return TUNDISH_OK;
}

static void
joined(void *user, struct feed *feed, const char *group, uint32_t replica, uint32_t present,
       uint32_t full_group_count)
{
    (void)user, (void)feed, (void)group, (void)replica, (void)present, (void)full_group_count;
}

static void
left(void *user, struct feed *feed, const char *group, uint32_t replica,
     const struct departure *departure)
{
    struct told *told = user;

    (void)feed, (void)group, (void)replica;
    told->left++;
    told->departure = departure;
}

static void
refused(void *user, struct feed *feed)
{
    (void)user, (void)feed;
}

static void
group_ended(void *user, struct feed *feed, const char *group, bool lost)
{
    (void)feed, (void)group, (void)lost;
    ((struct told *)user)->ended++;
}

static void
restart(void *user, struct feed *feed, uint64_t epoch)
{
    (void)user, (void)feed, (void)epoch;
}

static int64_t
tick(void *user, struct feed *feed, int64_t now_ns)
{
    (void)user, (void)feed, (void)now_ns;
    return TND_CLOCK_NEVER;
}

static const struct feed_ops ops = { .admit = admit,
                                     .joined = joined,
                                     .left = left,
                                     .refused = refused,
                                     .group_ended = group_ended,
                                     .restart = restart,
                                     .tick = tick };

static struct feed *
open_feed(enum kind kind, struct told *told)
{
    static const tundish_column_spec column = {
        .name = "x", .dtype = TUNDISH_INT8, .kind = TUNDISH_DENSE, .rank = 1, .shape = { -1 }
    };
    static const tundish_spec spec = { 1, sizeof column, &column };
    struct feed_config config = { .stream = "s",
                                  .session = "s",
                                  .replica_count = kind == REPLICAS ? 2 : 1,
                                  .total_replica_count = kind == REPLICAS ? 2 : 1,
                                  .rejoin_ns = -1,
                                  .forgets = kind == EVALUATION,
                                  .ops = &ops,
                                  .user = told };
    struct feed *feed;

    config.lane = (struct lane_config){
        .slots = 4, .arena_bytes = 4096, .memory = LANE_MEMFD, .queue = kind == QUEUE, .spec = &spec
    };
    assert_int_equal(feed_open(&config, &feed), TUNDISH_OK);
    return feed;
}

/* A trainer's end of the socket is not read: what is sent fits in. */
struct trainer {
    struct connection connection;
    struct member *member;
    int other_end;
};

static void
attach(struct feed *feed, struct trainer *trainer, uint32_t replica)
{
    const struct feed_request request = { .group = "g", .replica = replica };
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
    connection_open(&trainer->connection, ends[0], NULL);
    trainer->other_end = ends[1];
    assert_int_equal(feed_attach(feed, &request, &trainer->connection, &trainer->member),
                     TUNDISH_OK);
}

static void
detach(struct feed *feed, struct trainer *trainer, bool died)
{
    feed_detach(feed, trainer->member, died);
    connection_close(&trainer->connection);
    close(trainer->other_end);
}

/* Is the trainer told that one of its group is lost? */
static bool
is_warned(const struct trainer *trainer)
{
    struct tnd_message_head head;
    char bytes[4096];
    bool found = false;

    for (;;) {
        ssize_t count = recv(trainer->other_end, bytes, sizeof bytes, 0);

        if (count < (ssize_t)sizeof head)
            return found;
        memcpy(&head, bytes, sizeof head);
        found |= head.type == TND_LOST;
    }
}

static uint32_t
count_readers(struct feed *feed)
{
    return feed_stats(feed, NULL, 0);
}

struct expected {
    const char *name;
    enum kind kind;
    bool with_other; /* a second trainer, of the same name, stays */
    bool reads_all;  /* the stream's end is next for the one that leaves */
    bool died;

    bool in_order, warns, awaits, warning; /* of its departure */
    uint32_t readers;                      /* left, with the cursors that wait */
};

static const struct expected table[] = {
    { "a replica that has finished", REPLICAS, true, true, false, true, false, false, false, 2 },
    { "a replica killed at the end", REPLICAS, true, true, true, true, false, false, false, 2 },
    { "the last replica closes", REPLICAS, false, false, false, true, false, false, false, 2 },
    { "a replica closes early", REPLICAS, true, false, false, true, false, true, true, 2 },
    { "a replica is killed", REPLICAS, true, false, true, false, true, true, true, 2 },
    { "the last replica is killed", REPLICAS, false, false, true, false, true, true, true, 2 },
    { "one of a queue closes", QUEUE, true, false, false, true, false, false, false, 1 },
    { "one of a queue is killed", QUEUE, true, false, true, false, false, false, true, 1 },
    { "one of a queue is killed at the end", QUEUE, true, true, true, false, false, false, true,
      1 },
    { "an evaluation's closes", EVALUATION, false, false, false, true, false, false, false, 0 },
    { "an evaluation's is killed", EVALUATION, false, false, true, false, false, false, true, 0 },
    { "an evaluation's, at the end", EVALUATION, false, true, true, false, false, false, true, 0 },
};

static void
end_stream(struct feed *feed, uint32_t lanes)
{
    for (uint32_t i = 0; i < lanes; i++)
        assert_int_equal(
            lane_publish_end(feed_lane(feed, i), 0, TND_SLOT_END_OF_STREAM, 0, 0, TUNDISH_OK, NULL),
            TUNDISH_OK);
}

static void
check(const struct expected *expected)
{
    struct told told = { 0 };
    struct feed *feed = open_feed(expected->kind, &told);
    struct trainer leaves, stays;
    struct feed_losses losses;

    print_message("  %s\n", expected->name);
    attach(feed, &leaves, 0);
    if (expected->with_other) {
        attach(feed, &stays, 1);
        assert_false(is_warned(&stays));
    }
    if (expected->reads_all)
        end_stream(feed, expected->kind == REPLICAS ? 2 : 1);
    detach(feed, &leaves, expected->died);

    assert_int_equal(told.left, 1);
    assert_int_equal(told.departure->in_order, expected->in_order);
    assert_int_equal(told.departure->warns_group, expected->warns);
    assert_int_equal(told.departure->awaits, expected->awaits);
    assert_int_equal(told.departure->warning != NULL, expected->warning);
    feed_losses(feed, &losses);
    assert_int_equal(losses.trainers, !expected->in_order);
    assert_int_equal(count_readers(feed), expected->readers);
    if (expected->with_other) {
        assert_int_equal(is_warned(&stays), expected->warns);
        detach(feed, &stays, false);
    }
    feed_close(feed);
}

static void
what_follows_depends_on_who_left_how(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        check(&table[i]);
}

/* Its trainers are told so as long as they are there. */
static void
a_group_that_moves_is_lost_here(void **state)
{
    struct told told = { 0 };
    struct feed *feed = open_feed(REPLICAS, &told);
    struct trainer trainer;

    (void)state;
    attach(feed, &trainer, 0);
    assert_false(is_warned(&trainer));
    feed_end_group(feed, "g", "the job goes on elsewhere");
    assert_true(is_warned(&trainer));
    detach(feed, &trainer, true);
    assert_int_equal(count_readers(feed), 0);
    feed_close(feed);
}

TEST_FILE(test_departure)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_follows_depends_on_who_left_how),
        cmocka_unit_test(a_group_that_moves_is_lost_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
