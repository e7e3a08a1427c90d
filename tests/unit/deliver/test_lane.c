/* test_lane.c - reserve anywhere, publish in order; a trainer that lies gains nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/status.h"
#include "deliver/lane_private.h"
#include "unit/test_file.h"

static const tundish_column_spec columns[] = {
    { .name = "x", .dtype = TUNDISH_UINT8, .kind = TUNDISH_DENSE, .rank = 1, .shape = { -1 } },
};
static const tundish_spec spec = { .column_count = 1,
                                   .column_bytes = sizeof columns[0],
                                   .columns = columns };

static struct lane *
open_lane(uint64_t arena_bytes, uint64_t max_batch_bytes)
{
    struct lane_config config = { .name = "test/0",
                                  .slots = 4,
                                  .arena_bytes = arena_bytes,
                                  .max_batch_bytes = max_batch_bytes,
                                  .spec = &spec };
    struct lane *lane = NULL;

    assert_int_equal(lane_open(&config, &lane), TUNDISH_OK);
    return lane;
}

static tundish_status
reserve(struct lane *lane, struct slot *slot, uint64_t position, uint64_t bytes)
{
    slot->position = slot->step = position;
    slot->columns[0].shape[0] = (int64_t)bytes;
    slot_values(slot, 0)->stored_bytes = bytes;
    return lane_reserve(lane, slot);
}

static uint64_t
published(struct lane *lane)
{
    struct lane_stats stats;

    lane_stats(lane, &stats);
    return stats.published;
}

static void
positions_become_visible_in_order(void **state)
{
    struct lane *lane = open_lane(4096, 0);
    struct slot slots[4];

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        lane_slot_init(lane, &slots[i]);
        assert_int_equal(reserve(lane, &slots[i], 3 - i, 100), TUNDISH_OK);
        memset(slot_values(&slots[i], 0)->data, 1, 100);
    }
    lane_seal(lane, &slots[1]);
    lane_publish(lane, &slots[1]);
    lane_seal(lane, &slots[2]);
    lane_publish(lane, &slots[2]);
    assert_int_equal(published(lane), 0);
    lane_seal(lane, &slots[3]);
    lane_publish(lane, &slots[3]);
    assert_int_equal(published(lane), 3);
    lane_seal(lane, &slots[0]);
    lane_publish(lane, &slots[0]);
    assert_int_equal(published(lane), 4);
    for (unsigned i = 0; i < 4; i++)
        lane_slot_fini(&slots[i]);
    lane_close(lane);
}

static void
a_sealed_position_is_not_shown(void **state)
{
    struct lane *lane = open_lane(4096, 0);
    struct slot slot;

    (void)state;
    lane_slot_init(lane, &slot);
    assert_int_equal(reserve(lane, &slot, 0, 3000), TUNDISH_OK);
    memset(slot_values(&slot, 0)->data, 1, 3000);
    lane_seal(lane, &slot);
    assert_int_equal(published(lane), 0);
    lane_publish(lane, &slot);
    assert_int_equal(published(lane), 1);
    lane_slot_fini(&slot);
    lane_close(lane);
}

static void
no_more_positions_than_slots_are_reserved(void **state)
{
    struct lane *lane = open_lane(4096, 0);
    struct slot slot;

    (void)state;
    lane_slot_init(lane, &slot);
    assert_int_equal(reserve(lane, &slot, 4, 10), TUNDISH_E_TIMEOUT);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(reserve(lane, &slot, i, 10), TUNDISH_OK);
        lane_seal(lane, &slot);
        lane_publish(lane, &slot);
    }
    assert_int_equal(reserve(lane, &slot, 4, 10), TUNDISH_E_TIMEOUT);
    assert_int_equal(lane_publish_end(lane, 4, TND_SLOT_END, 0, 4, TUNDISH_OK, NULL),
                     TUNDISH_E_TIMEOUT);
    lane_slot_fini(&slot);
    lane_close(lane);
}

static void
a_full_arena_is_a_reason_to_wait_and_a_cancelled_slot_makes_room(void **state)
{
    struct lane *lane = open_lane(4096, 0);
    struct slot a, b;

    (void)state;
    lane_slot_init(lane, &a);
    lane_slot_init(lane, &b);
    assert_int_equal(reserve(lane, &a, 1, 3000), TUNDISH_OK);
    assert_int_equal(reserve(lane, &b, 0, 3000), TUNDISH_E_TIMEOUT);
    lane_cancel(lane, &a);
    assert_int_equal(reserve(lane, &b, 0, 3000), TUNDISH_OK);
    assert_int_equal(reserve(lane, &a, 1, 3000), TUNDISH_E_TIMEOUT);
    lane_seal(lane, &b);
    lane_publish(lane, &b);
    lane_slot_fini(&a);
    lane_slot_fini(&b);
    lane_close(lane);
}

static void
a_batch_above_the_arena_has_its_own_segment_once_it_is_next(void **state)
{
    struct lane *lane = open_lane(4096, 1 << 20);
    struct lane_stats stats;
    struct slot slot;

    (void)state;
    lane_slot_init(lane, &slot);
    assert_int_equal(reserve(lane, &slot, 1, 10000), TUNDISH_E_TIMEOUT);
    assert_int_equal(reserve(lane, &slot, 0, 10000), TUNDISH_OK);
    memset(slot_values(&slot, 0)->data, 1, 10000);
    lane_seal(lane, &slot);
    lane_publish(lane, &slot);
    lane_stats(lane, &stats);
    assert_int_equal(stats.own_segment_count, 1);
    assert_int_equal(reserve(lane, &slot, 1, 2 << 20), TUNDISH_E_MEMORY);
    assert_non_null(strstr(tnd_error_text(), "step 1"));
    lane_slot_fini(&slot);
    lane_close(lane);
}

/* Reserve and publish; how much the lane has then, in arena and segments of their own. */
static uint64_t
publish_bytes(struct lane *lane, struct slot *slot, uint64_t position, uint64_t bytes,
              tundish_status expected)
{
    assert_int_equal(reserve(lane, slot, position, bytes), expected);
    if (expected == TUNDISH_OK) {
        lane_seal(lane, slot);
        lane_publish(lane, slot);
    }
    return lane->arena.arena_bytes + lane_own_all_bytes(lane);
}

static void
a_lane_grows_by_the_batch_that_is_next_as_far_as_it_may(void **state)
{
    enum { MIB = 1 << 20 };
    struct lane_config config = { .name = "test/0",
                                  .slots = 4,
                                  .arena_bytes = 4096,
                                  .most_bytes = 4096 + 2 * MIB,
                                  .spec = &spec };
    struct lane *lane = NULL;
    struct slot slot;

    (void)state;
    assert_int_equal(lane_open(&config, &lane), TUNDISH_OK);
    lane_slot_init(lane, &slot);
    assert_int_equal(publish_bytes(lane, &slot, 0, 4000, TUNDISH_OK), 4096);
    assert_int_equal(publish_bytes(lane, &slot, 2, 4000, TUNDISH_E_TIMEOUT), 4096);
    assert_int_equal(publish_bytes(lane, &slot, 1, 4000, TUNDISH_OK), 4096 + MIB);
    assert_int_equal(publish_bytes(lane, &slot, 2, 4000, TUNDISH_OK), 4096 + 2 * MIB);
    assert_int_equal(publish_bytes(lane, &slot, 3, 4000, TUNDISH_E_TIMEOUT), 4096 + 2 * MIB);
    lane_slot_fini(&slot);
    lane_close(lane);
}

static void
a_limit_holds_and_under_it_positions_are_reserved_in_order(void **state)
{
    struct lane_config config = { .name = "test/0",
                                  .slots = 4,
                                  .arena_bytes = 4096,
                                  .most_bytes = 4096,
                                  .limit_bytes = 4096 * 3,
                                  .spec = &spec };
    struct lane *lane = NULL;
    struct slot slot;

    (void)state;
    assert_int_equal(lane_open(&config, &lane), TUNDISH_OK);
    lane_slot_init(lane, &slot);
    assert_int_equal(publish_bytes(lane, &slot, 1, 10, TUNDISH_E_TIMEOUT), 4096);
    assert_int_equal(publish_bytes(lane, &slot, 0, 5000, TUNDISH_OK), 4096 * 3);
    assert_int_equal(publish_bytes(lane, &slot, 1, 4000, TUNDISH_OK), 4096 * 3);
    /* The trainers that come may give room back. */
    assert_int_equal(publish_bytes(lane, &slot, 2, 5000, TUNDISH_E_TIMEOUT), 4096 * 3);
    lane_slot_fini(&slot);
    lane_close(lane);
    assert_int_equal(lane_open(&config, &lane), TUNDISH_OK);
    lane_slot_init(lane, &slot);
    assert_int_equal(publish_bytes(lane, &slot, 0, 8193, TUNDISH_E_MEMORY), 4096);
    assert_non_null(strstr(tnd_error_text(), "memory_limit leaves the lane 8192"));
    lane_slot_fini(&slot);
    lane_close(lane);
}

static void
too_few_slots_and_a_bad_spec_are_refused(void **state)
{
    tundish_column_spec bad = {
        .name = "x", .dtype = TUNDISH_INT8, .kind = TUNDISH_RAGGED, .rank = 1, .ragged_rank = 1
    };
    tundish_spec bad_spec = { 1, sizeof bad, &bad };
    struct lane_config config = { .name = "t", .slots = 2, .arena_bytes = 1, .spec = &spec };
    struct lane *lane = NULL;

    (void)state;
    assert_int_equal(lane_open(&config, &lane), TUNDISH_E_ARGUMENT);
    config.slots = 3;
    config.spec = &bad_spec;
    assert_int_equal(lane_open(&config, &lane), TUNDISH_E_ARGUMENT);
    assert_null(lane);
}

/* A trainer of our own making, which writes into its page what it likes. */
struct liar {
    struct lane *lane;
    struct lane_reader *reader;
    struct connection client;
    int socket;
    struct tnd_returns *page;
};

static void
open_liar(struct liar *liar)
{
    struct tnd_welcome welcome = { 0 };
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    liar->socket = pair[1];
    liar->lane = open_lane(4096, 0);
    connection_open(&liar->client, pair[0], NULL);
    assert_int_equal(lane_reader_open(liar->lane, 0, &liar->reader), TUNDISH_OK);
    assert_int_equal(lane_reader_attach(liar->reader, &liar->client, &welcome), TUNDISH_OK);
    liar->page = (struct tnd_returns *)(void *)liar->reader->returns.bytes;
}

static void
close_liar(struct liar *liar)
{
    lane_reader_detach(liar->reader);
    connection_close(&liar->client);
    close(liar->socket);
    lane_close(liar->lane);
}

static void
a_trainer_cannot_release_what_it_was_not_given(void **state)
{
    struct lane_stats stats;
    struct liar liar;
    struct slot slot;

    (void)state;
    open_liar(&liar);
    lane_slot_init(liar.lane, &slot);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(reserve(liar.lane, &slot, i, 10), TUNDISH_OK);
        lane_seal(liar.lane, &slot);
        lane_publish(liar.lane, &slot);
    }
    atomic_store(&liar.page->released, UINT64_MAX);
    atomic_store(&liar.page->taken, 0);
    lane_stats(liar.lane, &stats);
    assert_int_equal(stats.released, 2);
    atomic_store(&liar.page->released, 0);
    lane_stats(liar.lane, &stats);
    assert_int_equal(stats.released, 2);
    atomic_store(&liar.page->waiting_since_ns, UINT64_MAX);
    lane_stats(liar.lane, &stats);
    assert_int_equal(stats.published, 2);
    lane_slot_fini(&slot);
    close_liar(&liar);
}

static void
publish_steps(struct lane *lane, uint64_t first, uint64_t count)
{
    struct slot slot;

    lane_slot_init(lane, &slot);
    for (uint64_t i = first; i < first + count; i++) {
        assert_int_equal(reserve(lane, &slot, i, 10), TUNDISH_OK);
        slot.epoch = 1;
        lane_seal(lane, &slot);
        lane_publish(lane, &slot);
    }
    lane_slot_fini(&slot);
}

/* Its trainer read these steps in the memory of a server that is gone. */
static void
an_absent_trainer_passes_over_what_it_has_had(void **state)
{
    struct lane *lane = open_lane(4096, 0);
    struct lane_reader *reader;

    (void)state;
    assert_int_equal(lane_reader_open(lane, 0, &reader), TUNDISH_OK);
    publish_steps(lane, 0, 2);
    lane_reader_pass(reader, (struct lane_until){ 1, 3 });
    assert_int_equal(lane_lowest(lane), 2);
    publish_steps(lane, 2, 3); /* more than the lane holds beside the first two */
    assert_int_equal(lane_lowest(lane), 3);
    lane_reader_pass(reader, (struct lane_until){ 1, 2 }); /* an older message */
    publish_steps(lane, 5, 2);
    assert_int_equal(lane_lowest(lane), 3);
    lane_close(lane);
}

/* A group whose first trainer comes goes back to its lowest step, while lanes go on. */
static void
what_an_absent_trainer_has_passed_over_does_not_come_back(void **state)
{
    struct lane *lane = open_lane(4096, 0);
    struct lane_reader *reader;

    (void)state;
    assert_int_equal(lane_reader_open(lane, 0, &reader), TUNDISH_OK);
    lane_reader_pass(reader, (struct lane_until){ 1, 3 });
    publish_steps(lane, 0, 2);
    assert_int_equal(lane_lowest(lane), 2);
    lane_reader_move(reader, 0);
    assert_int_equal(lane_lowest(lane), 2);
    publish_steps(lane, 2, 3);
    assert_int_equal(lane_lowest(lane), 3);
    lane_close(lane);
}

/* It shares the flags of whatever it was sent. */
static void
a_trainer_cannot_make_the_server_wait_for_its_event(void **state)
{
    const uint64_t most = UINT64_MAX - 1;
    struct tnd_descriptors sent;
    struct tnd_message welcome;
    struct lane_stats stats;
    struct liar liar;
    struct slot slot;

    (void)state;
    open_liar(&liar);
    lane_slot_init(liar.lane, &slot);
    assert_int_equal(tnd_channel_receive(liar.socket, &welcome, &sent), TUNDISH_OK);
    for (int i = 0; i < TND_DESCRIPTORS_MAX; i++)
        assert_int_equal(fcntl(sent.at[i], F_SETFL, 0), 0);
    if (write(sent.at[TND_DESCRIPTORS_MAX - 1], &most, sizeof most) < 0)
        assert_int_equal(errno, EINVAL);
    atomic_store(&liar.page->polling, 1);
    assert_int_equal(reserve(liar.lane, &slot, 0, 10), TUNDISH_OK);
    lane_seal(liar.lane, &slot);
    lane_publish(liar.lane, &slot);
    lane_stats(liar.lane, &stats);
    assert_int_equal(stats.published, 1);
    tnd_channel_close_descriptors(&sent);
    lane_slot_fini(&slot);
    close_liar(&liar);
}

static void
a_starved_trainer_gets_the_next_batch_though_the_arena_is_full(void **state)
{
    struct lane_stats stats;
    struct liar liar;
    struct slot next, later;

    (void)state;
    open_liar(&liar);
    lane_slot_init(liar.lane, &next);
    lane_slot_init(liar.lane, &later);
    assert_int_equal(reserve(liar.lane, &later, 1, 3000), TUNDISH_OK);
    assert_int_equal(reserve(liar.lane, &next, 0, 3000), TUNDISH_E_TIMEOUT);
    atomic_store(&liar.page->waiting_since_ns, 1);
    assert_int_equal(reserve(liar.lane, &next, 0, 3000), TUNDISH_OK);
    lane_seal(liar.lane, &next);
    lane_publish(liar.lane, &next);
    lane_stats(liar.lane, &stats);
    assert_int_equal(stats.published, 1);
    assert_int_equal(stats.own_segment_count, 1);
    lane_cancel(liar.lane, &later);
    lane_slot_fini(&next);
    lane_slot_fini(&later);
    close_liar(&liar);
}

static void
a_batch_awaited_at_another_lane_is_not_held_up_by_a_full_arena(void **state)
{
    struct lane *lane = open_lane(4096, 0);
    struct slot next, later;

    (void)state;
    lane_slot_init(lane, &next);
    lane_slot_init(lane, &later);
    assert_int_equal(reserve(lane, &later, 1, 3000), TUNDISH_OK);
    assert_int_equal(reserve(lane, &next, 0, 3000), TUNDISH_E_TIMEOUT);
    assert_true(next.lacks_room);
    next.is_awaited = true;
    assert_int_equal(reserve(lane, &next, 0, 3000), TUNDISH_OK);
    lane_seal(lane, &next);
    lane_publish(lane, &next);
    lane_cancel(lane, &later);
    next.is_awaited = true;
    assert_int_equal(reserve(lane, &later, 1, 3000), TUNDISH_OK);
    assert_int_equal(reserve(lane, &next, 2, 3000), TUNDISH_E_TIMEOUT); /* it is not the next */
    assert_false(next.lacks_room);
    lane_cancel(lane, &later);
    lane_slot_fini(&next);
    lane_slot_fini(&later);
    lane_close(lane);
}

TEST_FILE(test_lane)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_become_visible_in_order),
        cmocka_unit_test(a_sealed_position_is_not_shown),
        cmocka_unit_test(no_more_positions_than_slots_are_reserved),
        cmocka_unit_test(a_full_arena_is_a_reason_to_wait_and_a_cancelled_slot_makes_room),
        cmocka_unit_test(a_batch_above_the_arena_has_its_own_segment_once_it_is_next),
        cmocka_unit_test(a_lane_grows_by_the_batch_that_is_next_as_far_as_it_may),
        cmocka_unit_test(a_limit_holds_and_under_it_positions_are_reserved_in_order),
        cmocka_unit_test(too_few_slots_and_a_bad_spec_are_refused),
        cmocka_unit_test(a_trainer_cannot_release_what_it_was_not_given),
        cmocka_unit_test(an_absent_trainer_passes_over_what_it_has_had),
        cmocka_unit_test(what_an_absent_trainer_has_passed_over_does_not_come_back),
        cmocka_unit_test(a_trainer_cannot_make_the_server_wait_for_its_event),
        cmocka_unit_test(a_starved_trainer_gets_the_next_batch_though_the_arena_is_full),
        cmocka_unit_test(a_batch_awaited_at_another_lane_is_not_held_up_by_a_full_arena),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
