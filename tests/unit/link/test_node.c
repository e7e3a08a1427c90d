/* test_node.c - jobs of several nodes, through interleavings that a seed gives.
 *
 * SEED=N runs that one alone, RUNS=N so many. What fails prints its seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "network.h"
#include "unit/test_file.h"

static const int64_t SECOND_NS = 1000000000;
static const int64_t DEADLINE_NS = 6500000000; /* silence, and time to tell and be told */

static void
posts_reach_every_node(void **state)
{
    struct network *network = network_open(3, 1);
    struct link_key key = { .topic = LINK_STEPS, .epoch = 7 };

    (void)state;
    for (uint32_t rank = 0; rank < 3; rank++)
        node_post(network_node(network, rank), &key, &rank, sizeof rank);
    network_run(network, SECOND_NS);
    for (uint32_t at = 0; at < 3; at++)
        for (uint32_t rank = 0; rank < 3; rank++) {
            struct byte_view bytes;

            assert_true(node_find(network_node(network, at), &key, rank, &bytes));
            assert_int_equal(bytes.size, sizeof rank);
            assert_memory_equal(bytes.data, &rank, sizeof rank);
        }
    key.epoch = 8;
    assert_false(node_find(network_node(network, 0), &key, 1, &(struct byte_view){ 0 }));
    network_close(network);
}

static void
large_posts_arrive_whole(void **state)
{
    struct network *network = network_open(2, 2);
    struct link_key key = { .topic = LINK_INDEX };
    size_t bytes = 5 * CHANNEL_MESSAGE_BYTES + 17;
    uint8_t *sent = malloc(bytes);
    struct byte_view found;

    (void)state;
    for (size_t i = 0; i < bytes; i++)
        sent[i] = (uint8_t)(i * 7 + i / 251);
    node_post(network_node(network, 0), &key, sent, bytes);
    network_run(network, SECOND_NS);
    assert_true(node_find(network_node(network, 1), &key, 0, &found));
    assert_int_equal(found.size, bytes);
    assert_memory_equal(found.data, sent, bytes);
    free(sent);
    network_close(network);
}

static void
a_later_post_replaces_the_earlier(void **state)
{
    struct network *network = network_open(2, 3);
    struct link_key key = { .topic = LINK_STEPS };
    struct byte_view found;

    (void)state;
    for (uint32_t i = 0; i < 20; i++)
        node_post(network_node(network, 0), &key, &i, sizeof i);
    network_run(network, SECOND_NS);
    assert_true(node_find(network_node(network, 1), &key, 0, &found));
    assert_int_equal(load_u32(found.data), 19);
    node_forget(network_node(network, 1), &key);
    assert_false(node_find(network_node(network, 1), &key, 0, &found));
    network_close(network);
}

static void
a_message_goes_to_one_whole_and_in_order(void **state)
{
    struct network *network = network_open(3, 6);
    uint8_t bytes[3 * CHANNEL_MESSAGE_BYTES + 5];
    bool in_order;

    (void)state;
    for (uint64_t i = 0; i < 12; i++) {
        struct link_key key = { .topic = LINK_SHARDS, .epoch = i };
        size_t byte_count = i % 3 == 0 ? sizeof bytes : (size_t)i;

        for (size_t k = 0; k < byte_count; k++)
            bytes[k] = (uint8_t)(i + k);
        node_send(network_node(network, 0), 1, &key, bytes, byte_count);
        node_post(network_node(network, 0), &key, bytes, byte_count); /* between the messages */
    }
    network_run(network, 2 * SECOND_NS);
    assert_int_equal(network_messages(network, 1, &in_order), 12);
    assert_true(in_order);
    assert_int_equal(network_messages(network, 2, &in_order), 0);
    assert_int_equal(network_messages(network, 0, &in_order), 0);
    network_close(network);
}

static void
every_loss_is_noticed_and_messages_for_the_lost_are_dropped(void **state)
{
    struct network *network = network_open(4, 7);
    struct link_key key = { .topic = LINK_SHARDS };
    bool in_order;

    (void)state;
    network_kill(network, 2);
    network_run(network, DEADLINE_NS);
    assert_true(node_is_lost(network_node(network, 0), 2));
    network_kill(network, 3);
    network_run(network, DEADLINE_NS);
    assert_true(node_is_lost(network_node(network, 0), 3));
    assert_true(node_is_lost(network_node(network, 1), 3));
    assert_false(node_is_lost(network_node(network, 0), 1));
    for (int i = 0; i < 1000; i++)
        node_send(network_node(network, 0), 3, &key, &i, sizeof i);
    node_send(network_node(network, 0), 1, &key, NULL, 0);
    network_run(network, SECOND_NS);
    assert_int_equal(network_messages(network, 1, &in_order), 1);
    network_close(network);
}

/* These two are not next to each other in the tree, so nobody looks until one needs the other. */
static void
a_broken_way_is_noticed_when_mail_takes_it(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 50; seed++) {
        struct network *network = network_open(4, seed);
        struct link_key key = { .topic = LINK_SHARDS };
        bool in_order;

        network_cut(network, 1, 2);
        network_run(network, 2 * DEADLINE_NS);
        for (uint32_t rank = 0; rank < 4; rank++)
            assert_null(node_failure(network_node(network, rank)));
        node_send(network_node(network, 1), 3, &key, "", 0); /* it lives, and need not answer */
        network_run(network, 2 * DEADLINE_NS);
        assert_int_equal(network_messages(network, 3, &in_order), 1);
        assert_null(node_failure(network_node(network, 1)));
        node_send(network_node(network, 1), 2, &key, "", 0);
        network_run(network, DEADLINE_NS);
        for (uint32_t rank = 0; rank < 4; rank++)
            assert_non_null(node_failure(network_node(network, rank)));
        assert_true(node_is_lost(network_node(network, 0), 2));
        network_close(network);
    }
}

/* What the root of the tree was to hand on is lost with it. */
static void
mail_through_the_tree_comes_once_and_in_order_though_a_node_on_its_way_is_lost(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 20; seed++) {
        struct network *network = network_open(4, seed);
        bool in_order;

        for (uint64_t i = 0; i < 40; i++) {
            struct link_key key = { .topic = LINK_SHARDS, .epoch = i };
            uint8_t bytes[] = { (uint8_t)i, (uint8_t)(i + 1) };

            node_send_by_tree(network_node(network, 2), 3, &key, bytes, sizeof bytes);
            node_send_by_tree(network_node(network, 3), 1, &key, bytes, sizeof bytes);
            network_run(network, 2000000);
            if (i == 20)
                network_kill(network, 0);
        }
        assert_true(node_is_unheard(network_node(network, 2)));
        network_run(network, DEADLINE_NS + 3 * SECOND_NS);
        assert_int_equal(network_messages(network, 3, &in_order), 40);
        assert_true(in_order);
        assert_int_equal(network_messages(network, 1, &in_order), 40);
        assert_true(in_order);
        assert_int_equal(network_messages(network, 2, &in_order), 0);
        assert_false(node_is_unheard(network_node(network, 2)));
        network_close(network);
    }
}

static void
mail_for_a_lost_node_is_not_waited_for(void **state)
{
    struct link_key key = { .topic = LINK_SHARDS };
    struct network *network = network_open(4, 10);

    (void)state;
    network_kill(network, 3);
    node_send_by_tree(network_node(network, 2), 3, &key, "abc", 3);
    network_run(network, SECOND_NS);
    assert_true(node_is_unheard(network_node(network, 2)));
    network_run(network, DEADLINE_NS);
    assert_false(node_is_unheard(network_node(network, 2)));
    network_close(network);
}

static void
nodes_are_named_by_their_hosts(void **state)
{
    struct network *network = network_open(2, 4);
    char name[NODE_NAME_BYTES];

    (void)state;
    assert_string_equal(node_name(network_node(network, 0), 1, name), "the node of rank 1");
    network_run(network, SECOND_NS);
    assert_string_equal(node_name(network_node(network, 0), 1, name), "node b (rank 1)");
    network_close(network);
}

static void
quiet_nodes_beat_and_are_not_lost(void **state)
{
    struct network *network = network_open(4, 5);
    struct link_stats stats;

    (void)state;
    network_run(network, 60 * SECOND_NS);
    for (uint32_t rank = 0; rank < 4; rank++) {
        assert_null(node_failure(network_node(network, rank)));
        node_stats(network_node(network, rank), &stats);
        assert_in_range(stats.beats_sent, 60, 3 * 121);
    }
    network_close(network);
}

static void
a_node_that_left_is_not_missed(void **state)
{
    struct network *network = network_open(3, 6);

    (void)state;
    node_leave(network_node(network, 1));
    network_run(network, SECOND_NS);
    assert_int_equal(node_first_left(network_node(network, 0)), 1);
    assert_false(node_is_done(network_node(network, 1)));
    network_kill(network, 1);
    network_run(network, 20 * SECOND_NS);
    assert_null(node_failure(network_node(network, 0)));
    assert_null(node_failure(network_node(network, 2)));
    network_close(network);
}

/* It stays to answer those that go on, and looks after them as they do. */
static void
those_that_left_and_those_that_go_on_do_not_lose_each_other(void **state)
{
    struct network *network = network_open(NETWORK_NODES, 6);
    static const uint32_t leaving[] = { 1, 0, 5 };

    (void)state;
    for (int i = 0; i < 3; i++) {
        node_leave(network_node(network, leaving[i]));
        network_run(network, 20 * SECOND_NS);
        for (uint32_t rank = 0; rank < NETWORK_NODES; rank++)
            assert_null(node_failure(network_node(network, rank)));
    }
    network_kill(network, 4);
    network_run(network, 20 * SECOND_NS);
    for (uint32_t rank = 0; rank < NETWORK_NODES; rank++)
        if (rank != 4)
            assert_non_null(strstr(node_failure(network_node(network, rank)), "(rank 4)"));
    network_close(network);
}

static void
all_that_leave_are_done(void **state)
{
    struct network *network = network_open(3, 7);

    (void)state;
    for (uint32_t rank = 0; rank < 3; rank++) {
        node_leave(network_node(network, rank));
        network_run(network, SECOND_NS);
        assert_int_equal(node_is_done(network_node(network, 0)), rank == 2);
    }
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_true(node_is_done(network_node(network, rank)));
    network_close(network);
}

static void
a_node_that_stood_still_hears_that_it_was_given_up(void **state)
{
    struct network *network = network_open(2, 8);

    (void)state;
    network_run(network, SECOND_NS);
    network_pause(network, 1);
    network_run(network, 10 * SECOND_NS);
    assert_non_null(strstr(node_failure(network_node(network, 0)), "node b (rank 1)"));
    network_resume(network, 1);
    network_run(network, SECOND_NS);
    assert_non_null(strstr(node_failure(network_node(network, 1)), "treats it as lost"));
    network_close(network);
}

/* A job whose every process stands still for a while (a paused machine) goes on. */
static void
a_job_that_stood_still_as_a_whole_goes_on(void **state)
{
    struct network *network = network_open(3, 9);

    (void)state;
    network_run(network, SECOND_NS);
    for (uint32_t rank = 0; rank < 3; rank++)
        network_pause(network, rank);
    network_run(network, 60 * SECOND_NS);
    for (uint32_t rank = 0; rank < 3; rank++)
        network_resume(network, rank);
    network_run(network, 10 * SECOND_NS);
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_null(node_failure(network_node(network, rank)));
    network_close(network);
}

/* A message that lay there meanwhile was not heard later than now. */
static void
a_node_that_stood_still_finds_the_lost_in_time(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct network *network = network_open(2, seed);

        network_run(network, SECOND_NS);
        network_pause(network, 0);
        network_run(network, 2 * SECOND_NS); /* the other says that it is there */
        network_kill(network, 1);
        network_run(network, 600 * SECOND_NS);
        network_resume(network, 0);
        network_run(network, 10 * SECOND_NS);
        assert_true(node_is_lost(network_node(network, 0), 1));
        network_close(network);
    }
}

/* any interleaving:
 * Every node posts now and then; at some moment one dies, stands still, or loses its way to
 * another. Whoever lives must know the job's failure within the deadline, and before that every
 * post must have come to every node in the end, exactly once. */

enum { POSTS = 12, TROUBLES = 4 };

struct story {
    struct network *network;
    uint32_t size;
    uint64_t posted[NETWORK_NODES];
};

static void
post_now_and_then(struct story *story)
{
    uint32_t rank = (uint32_t)network_draw(story->network, story->size);
    struct link_key key = { .topic = LINK_EPOCH_STATE, .epoch = story->posted[rank] };
    uint64_t value = rank * UINT64_C(1000) + story->posted[rank];

    if (story->posted[rank] == POSTS || !network_is_alive(story->network, rank))
        return;
    node_post(network_node(story->network, rank), &key, &value, sizeof value);
    story->posted[rank]++;
}

static bool
is_all_known(struct story *story, uint32_t at)
{
    for (uint32_t rank = 0; rank < story->size; rank++)
        for (uint64_t i = 0; i < story->posted[rank]; i++) {
            struct link_key key = { .topic = LINK_EPOCH_STATE, .epoch = i };
            struct byte_view bytes;

            if (!node_find(network_node(story->network, at), &key, rank, &bytes) ||
                load_u64(bytes.data) != rank * 1000 + i)
                return false;
        }
    return true;
}

static bool
play(uint64_t seed)
{
    struct story story = { .size = 2 + (uint32_t)(seed % (NETWORK_NODES - 1)) };
    uint64_t trouble = seed / 7 % TROUBLES;
    uint32_t victim = (uint32_t)(seed / 31 % story.size);
    uint32_t other = victim == 0 ? 1 : 0; /* next to it in the tree */
    bool good = true;

    story.network = network_open(story.size, seed);
    for (uint32_t i = 0; i < POSTS * story.size * 3; i++) {
        post_now_and_then(&story);
        for (uint64_t k = network_draw(story.network, 10); k > 0; k--)
            network_step(story.network);
    }
    network_run(story.network, SECOND_NS);
    for (uint32_t rank = 0; rank < story.size; rank++) {
        uint64_t expected = 0;

        for (uint32_t from = 0; from < story.size; from++)
            expected += from != rank ? story.posted[from] : 0;
        good &= is_all_known(&story, rank) && network_arrivals(story.network, rank) == expected &&
                node_failure(network_node(story.network, rank)) == NULL;
    }
    if (trouble == 0)
        network_kill(story.network, victim);
    else if (trouble == 1)
        network_pause(story.network, victim);
    else if (trouble == 2)
        network_cut(story.network, victim, other);
    network_run(story.network, DEADLINE_NS);
    for (uint32_t rank = 0; rank < story.size; rank++)
        if (network_is_alive(story.network, rank))
            good &= (node_failure(network_node(story.network, rank)) != NULL) == (trouble < 3);
    network_close(story.network);
    return good;
}

static void
every_interleaving_keeps_posts_and_finds_the_lost(void **state)
{
    const char *one = getenv("SEED"), *many = getenv("RUNS");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    uint64_t count = one != NULL ? 1 : many != NULL ? strtoull(many, NULL, 10) : 600;

    (void)state;
    for (uint64_t seed = first; seed < first + count; seed++)
        if (!play(seed))
            fail_msg("SEED=%llu", (unsigned long long)seed);
}

TEST_FILE(test_node)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posts_reach_every_node),
        cmocka_unit_test(large_posts_arrive_whole),
        cmocka_unit_test(a_later_post_replaces_the_earlier),
        cmocka_unit_test(a_message_goes_to_one_whole_and_in_order),
        cmocka_unit_test(every_loss_is_noticed_and_messages_for_the_lost_are_dropped),
        cmocka_unit_test(a_broken_way_is_noticed_when_mail_takes_it),
        cmocka_unit_test(
            mail_through_the_tree_comes_once_and_in_order_though_a_node_on_its_way_is_lost),
        cmocka_unit_test(mail_for_a_lost_node_is_not_waited_for),
        cmocka_unit_test(nodes_are_named_by_their_hosts),
        cmocka_unit_test(quiet_nodes_beat_and_are_not_lost),
        cmocka_unit_test(a_node_that_left_is_not_missed),
        cmocka_unit_test(those_that_left_and_those_that_go_on_do_not_lose_each_other),
        cmocka_unit_test(all_that_leave_are_done),
        cmocka_unit_test(a_node_that_stood_still_hears_that_it_was_given_up),
        cmocka_unit_test(a_job_that_stood_still_as_a_whole_goes_on),
        cmocka_unit_test(a_node_that_stood_still_finds_the_lost_in_time),
        cmocka_unit_test(every_interleaving_keeps_posts_and_finds_the_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
