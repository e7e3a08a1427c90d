/* test_link.c - the links of a job's nodes: their threads post, wait, send, listen, and hear of the
 * lost. */
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

#include "core/clock.h"
#include "link/link.h"
#include "unit/cluster.h"
#include "unit/test_file.h"

static const int64_t SECOND_NS = 1000000000;
static const struct link_key key = { .topic = LINK_STEPS, .stream = 3, .epoch = 7, .part = 9 };

static void
assert_found(struct link *link, uint32_t rank, const char *expected)
{
    size_t byte_count = 0;
    uint8_t *bytes = NULL;

    assert_true(link_find(link, &key, rank, &bytes, &byte_count));
    assert_int_equal(byte_count, strlen(expected));
    assert_memory_equal(bytes, expected, byte_count);
    free(bytes);
}

static bool
has_posted(struct link *link, void *rank)
{
    uint8_t *bytes = NULL;
    size_t byte_count;
    bool found = link_find(link, &key, *(uint32_t *)rank, &bytes, &byte_count);

    free(bytes);
    return found;
}

static tundish_status
wait_for_post(struct link *link, uint32_t rank, int64_t timeout_ns)
{
    return link_wait(link, has_posted, &rank, timeout_ns, NULL);
}

static void
posts_of_all_are_found_on_every_node(void **state)
{
    static const char *const texts[] = { "of the first", "", "of the third" };
    struct link *links[3];
    char name[160];

    (void)state;
    cluster_open(3, links);
    for (uint32_t i = 0; i < 3; i++)
        link_post(links[i], &key, texts[i], strlen(texts[i]));
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(link_size(links[i]), 3);
        for (uint32_t rank = 0; rank < 3; rank++)
            assert_int_equal(wait_for_post(links[i], rank, -1), TUNDISH_OK);
        for (uint32_t rank = 0; rank < 3; rank++)
            assert_found(links[i], rank, texts[rank]);
    }
    link_forget(links[1], &key);
    assert_false(link_find(links[1], &key, 0, &(uint8_t *){ NULL }, &(size_t){ 0 }));
    assert_found(links[2], 1, "");
    link_name(links[0], 2, name, sizeof name);
    assert_non_null(strstr(name, "(rank 2)"));
    cluster_close(3, links);
}

/* What a total of KINDS or EACH says: "0:a 2:b ". */
static const char *
entries_of(const struct link_total *total)
{
    static char text[64];
    struct byte_view rest = { total->bytes, total->byte_count }, bytes;
    size_t used = 0;
    uint32_t rank;

    text[0] = '\0';
    while (link_next_of_each(&rest, &rank, &bytes))
        used += (size_t)snprintf(text + used, sizeof text - used, "%u:%.*s ", rank, (int)bytes.size,
                                 (const char *)bytes.data);
    assert_int_equal(rest.size, 0);
    return text;
}

static void
a_total_is_made_of_the_values_of_all(void **state)
{
    static const char *const values[] = { "b", "a", "b" };
    static const struct {
        enum link_merge merge;
        const char *text;
    } cases[] = { { LINK_LOWEST, "a" },
                  { LINK_HIGHEST, "b" },
                  { LINK_ANY, "c" },
                  { LINK_EACH, "0:b 1:a 2:b " },
                  { LINK_KINDS, "1:a 0:b " } };
    struct link *links[3];

    (void)state;
    cluster_open(3, links);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct link_key of_case = { .topic = LINK_PART, .part = i };
        struct link_total total;

        for (uint32_t rank = 0; rank < 3; rank++) {
            assert_false(link_find_total(links[rank], &of_case, &total));
            link_tally(links[rank], &of_case,
                       &(struct link_tally){ .merge = cases[i].merge,
                                             .bytes = (const uint8_t *)values[rank],
                                             .byte_count = 1 });
        }
        for (uint32_t rank = 0; rank < 3; rank++) {
            assert_int_equal(link_wait_for_total(links[rank], &of_case, -1, NULL, &total),
                             TUNDISH_OK);
            assert_int_equal(total.nodes, 3);
            total.bytes[total.byte_count] = '\0';
            assert_string_equal(cases[i].merge < LINK_EACH ? (const char *)total.bytes
                                                           : entries_of(&total),
                                cases[i].text);
            free(total.bytes);
        }
    }
    cluster_close(3, links);
}

/* Some have forgotten it, others not: a session that goes back gives its values again. */
static void
a_value_that_is_given_again_is_answered(void **state)
{
    struct link_tally own = { .merge = LINK_KINDS, .bytes = (const uint8_t *)"x", .byte_count = 1 };
    struct link *links[3];

    (void)state;
    cluster_open(3, links);
    for (uint32_t forgets = 0; forgets < 8; forgets++) {
        for (uint32_t rank = 0; rank < 3; rank++)
            if (forgets >> rank & 1)
                link_forget(links[rank], &key);
        for (uint32_t rank = 0; rank < 3; rank++)
            link_tally(links[rank], &key, &own);
        for (uint32_t rank = 0; rank < 3; rank++) {
            struct link_total total;

            assert_int_equal(link_wait_for_total(links[rank], &key, -1, NULL, &total), TUNDISH_OK);
            assert_true(link_are_same(&total));
            free(total.bytes);
        }
    }
    cluster_close(3, links);
}

static bool
never(struct link *link, void *calls)
{
    (void)link;
    ++*(unsigned *)calls;
    return false;
}

static void
a_wait_ends_at_its_deadline_or_when_it_is_stopped(void **state)
{
    const _Atomic int stop = 1;
    struct link_stats stats;
    struct link *links[2];
    unsigned calls = 0;

    (void)state;
    cluster_open(2, links);
    assert_int_equal(link_wait(links[0], never, &calls, 0, NULL), TUNDISH_E_TIMEOUT);
    assert_non_null(strstr(tnd_error_text(), "not answered in time"));
    assert_int_equal(link_wait(links[0], never, &calls, -1, &stop), TUNDISH_E_TIMEOUT);
    assert_non_null(strstr(tnd_error_text(), "stopping"));
    assert_int_equal(link_wait_for_one(links[0], 1, never, &calls, SECOND_NS / 50, NULL),
                     TUNDISH_E_TIMEOUT);
    assert_true(calls >= 3);
    link_stats(links[0], &stats);
    assert_int_equal(stats.waits, 3);
    assert_true(stats.waited_ns >= (uint64_t)SECOND_NS / 50);
    link_stats(links[1], &stats);
    assert_int_equal(stats.waits, 0);
    cluster_close(2, links);
}

/* What a wait that goes on has added to the count. */
static bool
has_been_counted(struct link *link, void *before_ns)
{
    struct link_stats stats;

    link_stats(link, &stats);
    return stats.waits == 1 && stats.waited_ns > *(uint64_t *)before_ns + 1;
}

static void
a_wait_is_counted_while_it_goes_on(void **state)
{
    struct link_stats stats;
    uint64_t before_ns = 0;
    struct link *links[2];

    (void)state;
    cluster_open(2, links);
    assert_int_equal(link_wait(links[0], has_been_counted, &before_ns, -1, NULL), TUNDISH_OK);
    link_stats(links[0], &stats);
    before_ns = stats.waited_ns;
    link_stats(links[0], &stats);
    assert_int_equal(stats.waited_ns, before_ns); /* none goes on */
    cluster_close(2, links);
}

/* What came for a mailbox; answered if it asks for that. */
struct mail {
    struct link *link;
    _Atomic unsigned count;
    uint64_t epochs[8];
    size_t byte_counts[8];
    uint32_t from;
};

static void
receive(void *user, const struct link_message *message)
{
    struct mail *mail = user;
    unsigned count = mail->count;

    assert_true(count < 8);
    mail->epochs[count] = message->key.epoch;
    mail->byte_counts[count] = message->byte_count;
    mail->from = message->from;
    if (message->byte_count > 0 && message->bytes[0] == '?') {
        struct link_key answer = { .topic = LINK_ROWS, .epoch = message->key.epoch + 100 };

        link_send(mail->link, message->from, &answer, "!", 1);
    }
    free(message->bytes);
    mail->count = count + 1;
}

static bool
both_have_come(struct link *link, void *mail)
{
    (void)link;
    return ((struct mail *)mail)->count == 2;
}

static void
messages_wait_for_their_mailbox_and_are_answered(void **state)
{
    struct link_key shards = { .topic = LINK_SHARDS }, rows = { .topic = LINK_ROWS };
    struct link *links[2];
    struct mail asked = { 0 }, answers = { 0 };
    struct link_stats stats;

    (void)state;
    cluster_open(2, links);
    asked.link = links[1];
    link_open_mailbox(links[0], LINK_ROWS, receive, &answers);
    for (shards.epoch = 0; shards.epoch < 3; shards.epoch++)
        link_send(links[0], 1, &shards, "?x", shards.epoch);
    link_send(links[0], 1, &rows, "nobody opens it", 15); /* is freed with the link */
    shards.topic = LINK_MAILBOX_COUNT;
    link_send(links[0], 1, &shards, "?", 1); /* no such mailbox */
    link_open_mailbox(links[1], LINK_SHARDS, receive, &asked);
    assert_int_equal(link_wait(links[0], both_have_come, &answers, -1, NULL), TUNDISH_OK);
    link_open_mailbox(links[1], LINK_SHARDS, NULL, NULL);
    link_open_mailbox(links[0], LINK_ROWS, NULL, NULL);
    /* In order: so the last answer tells that all that was asked before it has come. */
    assert_int_equal(asked.count, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(asked.epochs[i], i);
        assert_int_equal(asked.byte_counts[i], i);
    }
    assert_int_equal(asked.from, 0);
    assert_true(answers.epochs[0] == 101 && answers.byte_counts[0] == 1);
    assert_true(answers.epochs[1] == 102 && answers.byte_counts[1] == 1);
    assert_int_equal(link_queued(links[0], 1), 0);
    link_stats(links[0], &stats);
    assert_int_equal(stats.mail_sent, 5);
    cluster_close(2, links);
}

/* What a subscriber is told. */
struct heard {
    _Atomic unsigned posts, failures;
    char texts[4][32];
    uint32_t from[4];
    char failure[256];
};

static void
hear(void *user, uint32_t from, const struct link_key *about, struct byte_view bytes)
{
    struct heard *heard = user;

    if (about == NULL) {
        snprintf(heard->failure, sizeof heard->failure, "%.*s", (int)bytes.size,
                 (const char *)bytes.data);
        heard->failures++;
    } else if (about->topic == LINK_STEPS) {
        assert_true(heard->posts < 4);
        snprintf(heard->texts[heard->posts], 32, "%.*s", (int)bytes.size, (const char *)bytes.data);
        heard->from[heard->posts] = from;
        heard->posts++;
    }
}

static bool
is_told(const struct heard *heard, unsigned posts, unsigned failures)
{
    for (int64_t until_ns = tnd_clock_deadline_ns(300 * SECOND_NS); tnd_clock_left_ns(until_ns) > 0;
         usleep(100))
        if (heard->posts >= posts && heard->failures >= failures)
            return heard->posts == posts && heard->failures == failures;
    return false;
}

static void
a_subscriber_is_told_of_posts_before_and_after_it_came(void **state)
{
    struct heard heard = { 0 };
    struct link *links[2];

    (void)state;
    cluster_open(2, links);
    link_post(links[1], &key, "before", 6);
    assert_int_equal(wait_for_post(links[0], 0, 0), TUNDISH_E_TIMEOUT);
    link_post(links[0], &key, "own", 3); /* not told */
    assert_int_equal(wait_for_post(links[0], 1, -1), TUNDISH_OK);
    link_subscribe(links[0], hear, &heard);
    link_post(links[1], &key, "after", 5);
    assert_true(is_told(&heard, 2, 0));
    assert_string_equal(heard.texts[0], "before");
    assert_string_equal(heard.texts[1], "after");
    assert_true(heard.from[0] == 1 && heard.from[1] == 1);
    link_subscribe(links[0], NULL, NULL);
    cluster_close(2, links);
}

static void
a_failure_found_elsewhere_ends_the_waits_of_its_node(void **state)
{
    struct heard heard = { 0 };
    struct link *links[2];
    unsigned calls = 0;

    (void)state;
    cluster_open(2, links);
    link_subscribe(links[1], hear, &heard);
    assert_int_equal(link_check(links[1]), TUNDISH_OK);
    link_fail(links[1], "the disk is full");
    link_fail(links[1], "again"); /* the first reason stays */
    assert_int_equal(link_check(links[1]), TUNDISH_E_PEER_LOST);
    assert_string_equal(tnd_error_text(), "the disk is full");
    assert_int_equal(link_wait(links[1], never, &calls, -1, NULL), TUNDISH_E_PEER_LOST);
    assert_true(is_told(&heard, 0, 1));
    assert_string_equal(heard.failure, "the disk is full");
    assert_int_equal(link_check(links[0]), TUNDISH_OK);
    link_subscribe(links[1], NULL, NULL);
    link_close(links[1]);
    link_close(links[0]); /* at once: the other has not said that it leaves */
}

static void
a_silent_node_is_lost_for_all_and_only_it(void **state)
{
    struct link *links[3];
    unsigned calls = 0;

    (void)state;
    cluster_stop_clock();
    cluster_open(3, links);
    cluster_pass(3, links, SECOND_NS);
    cluster_cut(2);
    cluster_pass(3, links, 4 * SECOND_NS);
    assert_int_equal(link_check(links[0]), TUNDISH_OK);
    cluster_pass(3, links, 4 * SECOND_NS);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(link_check(links[i]), TUNDISH_E_PEER_LOST);
        assert_true(link_is_lost(links[i], 2));
        assert_false(link_is_lost(links[i], 1 - i));
        /* Who needs only the other goes on. */
        assert_int_equal(link_wait_for_one(links[i], 1 - i, never, &calls, 0, NULL),
                         TUNDISH_E_TIMEOUT);
        assert_int_equal(link_wait_for_one(links[i], 2, never, &calls, -1, NULL),
                         TUNDISH_E_PEER_LOST);
        assert_int_equal(link_wait(links[i], never, &calls, -1, NULL), TUNDISH_E_PEER_LOST);
    }
    assert_int_equal(link_check(links[2]), TUNDISH_E_PEER_LOST); /* it hears nobody */
    cluster_close(3, links);
    cluster_start_clock();
}

/* Some networks' sends to a lost node never return. */
static void
a_node_that_cannot_be_sent_to_is_named_where_the_call_hangs(void **state)
{
    struct link *links[2];

    (void)state;
    cluster_stop_clock();
    cluster_open(2, links);
    cluster_pass(2, links, SECOND_NS);
    cluster_hold(1);
    link_post(links[0], &key, "never sent", 10);
    cluster_await(1); /* else it would rather see that the other is silent */
    for (int seconds = 0; link_check(links[0]) == TUNDISH_OK; seconds++) {
        assert_true(seconds < 100000);
        cluster_pass(1, &links[1], SECOND_NS); /* it hears nothing, but goes on */
        usleep(1000);
    }
    assert_non_null(strstr(tnd_error_text(), "has not returned from sending to"));
    assert_non_null(strstr(tnd_error_text(), "(rank 1)"));
    cluster_let_go(1);
    cluster_start_clock(); /* the other may have heard nothing of it, and would wait for ever */
    cluster_close(2, links);
}

struct leaving {
    struct link *link;
    pthread_t thread;
};

static void *
leave(void *argument)
{
    link_leave(((struct leaving *)argument)->link, -1);
    return NULL;
}

static void
a_node_that_left_is_not_waited_for_long(void **state)
{
    struct link *links[2];
    struct leaving leaving;
    unsigned calls = 0;

    (void)state;
    cluster_stop_clock();
    cluster_open(2, links);
    leaving.link = links[1];
    assert_false(link_has_left(links[0], 1));
    assert_int_equal(pthread_create(&leaving.thread, NULL, leave, &leaving), 0);
    assert_int_equal(link_wait(links[0], never, &calls, -1, NULL), TUNDISH_E_PEER_LOST);
    assert_non_null(strstr(tnd_error_text(), "has stopped while this node still needed it"));
    assert_true(link_has_left(links[0], 1));
    assert_false(link_is_lost(links[0], 1));
    /* It may still answer for a while. */
    assert_int_equal(link_wait_for_one(links[0], 1, never, &calls, 0, NULL), TUNDISH_E_TIMEOUT);
    assert_int_equal(link_check(links[0]), TUNDISH_OK);
    link_leave(links[0], -1);
    pthread_join(leaving.thread, NULL);
    link_close(links[0]);
    link_close(links[1]);
    cluster_start_clock();
}

static void
leaving_does_not_wait_longer_than_it_was_told_to(void **state)
{
    struct link *links[2];

    (void)state;
    cluster_open(2, links);
    link_leave(links[0], 0);
    link_leave(links[0], 0); /* it has left */
    link_close(links[1]);    /* as if at once */
    link_close(links[0]);
    link_close(NULL);
}

static void
a_single_node_has_nobody_to_wait_for(void **state)
{
    struct mail mail = { 0 };
    struct link_stats stats;
    struct link *link;

    (void)state;
    cluster_pretend(0);
    assert_int_equal(link_open(&(struct link_options){ 0 }, &link), TUNDISH_OK);
    assert_true(link_rank(link) == 0 && link_size(link) == 1);
    link_post(link, &key, "alone", 5);
    assert_int_equal(wait_for_post(link, 0, -1), TUNDISH_OK);
    assert_found(link, 0, "alone");
    link_fail(link, "nothing to fail");
    assert_int_equal(link_check(link), TUNDISH_OK);
    link_open_mailbox(link, LINK_ROWS, receive, &mail);
    link_stats(link, &stats);
    assert_true(stats.messages_sent == 0 && stats.waits == 0);
    link_leave(link, -1);
    link_close(link);
}

TEST_FILE(test_link)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posts_of_all_are_found_on_every_node),
        cmocka_unit_test(a_total_is_made_of_the_values_of_all),
        cmocka_unit_test(a_value_that_is_given_again_is_answered),
        cmocka_unit_test(a_wait_ends_at_its_deadline_or_when_it_is_stopped),
        cmocka_unit_test(a_wait_is_counted_while_it_goes_on),
        cmocka_unit_test(messages_wait_for_their_mailbox_and_are_answered),
        cmocka_unit_test(a_subscriber_is_told_of_posts_before_and_after_it_came),
        cmocka_unit_test(a_failure_found_elsewhere_ends_the_waits_of_its_node),
        cmocka_unit_test(a_silent_node_is_lost_for_all_and_only_it),
        cmocka_unit_test(a_node_that_cannot_be_sent_to_is_named_where_the_call_hangs),
        cmocka_unit_test(a_node_that_left_is_not_waited_for_long),
        cmocka_unit_test(leaving_does_not_wait_longer_than_it_was_told_to),
        cmocka_unit_test(a_single_node_has_nobody_to_wait_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
