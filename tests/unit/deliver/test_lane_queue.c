/* test_lane_queue.c - who is offered a queue's batch, by two made-up readers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include "deliver/lane_private.h"
#include "unit/test_file.h"

enum { READERS = 2 };

static const tundish_column_spec columns[] = {
    { .name = "x", .dtype = TUNDISH_UINT8, .kind = TUNDISH_DENSE, .rank = 1, .shape = { -1 } },
};
static const tundish_spec spec = { .column_count = 1,
                                   .column_bytes = sizeof columns[0],
                                   .columns = columns };

struct queue {
    struct lane *lane;
    struct lane_reader *readers[READERS];
    struct connection clients[READERS];
    int sockets[READERS];
};

static void
attach(struct queue *queue, uint32_t reader)
{
    struct tnd_welcome welcome = { 0 };
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
    connection_open(&queue->clients[reader], pair[0], NULL);
    queue->sockets[reader] = pair[1];
    assert_int_equal(lane_reader_attach(queue->readers[reader], &queue->clients[reader], &welcome),
                     TUNDISH_OK);
}

static void
detach(struct queue *queue, uint32_t reader)
{
    lane_reader_detach(queue->readers[reader]);
    connection_close(&queue->clients[reader]);
    close(queue->sockets[reader]);
}

static void
open_queue(struct queue *queue)
{
    struct lane_config config = {
        .name = "test/0", .slots = 4, .arena_bytes = 4096, .spec = &spec, .queue = true
    };

    assert_int_equal(lane_open(&config, &queue->lane), TUNDISH_OK);
    for (uint32_t i = 0; i < READERS; i++) {
        assert_int_equal(lane_reader_open(queue->lane, i, &queue->readers[i]), TUNDISH_OK);
        attach(queue, i);
    }
}

static void
close_queue(struct queue *queue)
{
    for (uint32_t i = 0; i < READERS; i++)
        if (queue->readers[i]->connection != NULL)
            detach(queue, i);
    lane_close(queue->lane);
}

/* Each epoch has the steps that are published before its end. */
static void
publish_one(struct lane *lane)
{
    struct slot slot;

    lane_slot_init(lane, &slot);
    slot.position = lane->published;
    slot.epoch = lane->next_epoch;
    slot.step = lane->next_step;
    slot.columns[0].shape[0] = 8;
    slot_values(&slot, 0)->stored_bytes = 8;
    assert_int_equal(lane_reserve(lane, &slot), TUNDISH_OK);
    lane_seal(lane, &slot);
    lane_publish(lane, &slot);
    lane_slot_fini(&slot);
}

static void
publish_end(struct lane *lane)
{
    assert_int_equal(lane_publish_end(lane, lane->published, TND_SLOT_END, lane->next_epoch,
                                      lane->next_step, TUNDISH_OK, NULL),
                     TUNDISH_OK);
}

static struct tnd_returns *
page_of(const struct queue *queue, uint32_t reader)
{
    return (struct tnd_returns *)(void *)queue->readers[reader]->returns.bytes;
}

/* `released` counts what is back, as if that came in order. */
static void
give_entry_back(struct queue *queue, uint32_t reader, uint32_t index)
{
    atomic_store(&tnd_returns_slots(page_of(queue, reader))[index],
                 queue->lane->slots[index].position + 1);
    atomic_fetch_add(&page_of(queue, reader)->released, 1);
}

/* The reader waits for one more: the position that it is granted, or -1. */
static int64_t
take(struct queue *queue, uint32_t reader)
{
    struct lane_reader *of = queue->readers[reader];
    uint64_t had = atomic_load(&page_of(queue, reader)->taken);
    uint32_t index;

    atomic_store(&page_of(queue, reader)->wanted, had + 1);
    lane_grant(queue->lane);
    if (of->granted == had)
        return -1;
    assert_int_equal(of->granted, had + 1);
    index = lane_line_slots(queue->lane, of->line)[had % queue->lane->config.slots];
    atomic_store(&page_of(queue, reader)->taken, had + 1);
    /* As the library does, it gives an end back at once. */
    if (queue->lane->slots[index].kind == TND_SLOT_END)
        give_entry_back(queue, reader, index);
    return (int64_t)queue->lane->slots[index].position;
}

static void
give_back(struct queue *queue, uint32_t reader, uint64_t position)
{
    for (uint32_t i = 0; i < queue->lane->config.slots; i++)
        if (queue->lane->slots[i].state == SLOT_PUBLISHED &&
            queue->lane->slots[i].position == position)
            give_entry_back(queue, reader, i);
    lane_grant(queue->lane);
}

/* Each reader asks for a batch, the first of them first. */
static void
ask(struct queue *queue)
{
    for (uint32_t i = 0; i < READERS; i++) {
        atomic_store(&page_of(queue, i)->wanted, 1);
        lane_grant(queue->lane);
    }
}

static uint64_t
granted(const struct queue *queue, uint32_t reader)
{
    return atomic_load(&lane_line(queue->lane, queue->readers[reader]->line)->granted);
}

static void
a_batch_goes_to_the_next_reader_once_its_holder_is_gone(void **state)
{
    struct queue queue;

    (void)state;
    open_queue(&queue);
    publish_one(queue.lane);
    ask(&queue);
    assert_int_equal(granted(&queue, 0), 1);
    assert_int_equal(granted(&queue, 1), 0);
    detach(&queue, 0);
    assert_int_equal(granted(&queue, 1), 1);
    close_queue(&queue);
}

/* The holder outlives the server and works on. */
static void
a_server_that_ends_offers_no_batch_again(void **state)
{
    struct queue queue;

    (void)state;
    open_queue(&queue);
    publish_one(queue.lane);
    ask(&queue);
    lane_note_ending(queue.lane);
    detach(&queue, 0);
    assert_int_equal(granted(&queue, 1), 0);
    close_queue(&queue);
}

static void
a_batch_is_taken_once_it_has_a_holder(void **state)
{
    struct lane_stats stats;
    struct lane_reader_stats reader;
    struct queue queue;

    (void)state;
    open_queue(&queue);
    for (int i = 0; i < 3; i++)
        publish_one(queue.lane);
    lane_stats(queue.lane, &stats);
    assert_int_equal(stats.taken, 0);
    ask(&queue);
    lane_stats(queue.lane, &stats);
    assert_int_equal(stats.published, 3);
    assert_int_equal(stats.taken, 2);
    assert_int_equal(stats.released, 0);
    lane_reader_stats(queue.readers[1], &reader);
    assert_int_equal(reader.published, 1);
    close_queue(&queue);
}

static void
a_reader_gets_the_end_while_it_holds_a_batch(void **state)
{
    struct queue queue;

    (void)state;
    open_queue(&queue);
    publish_one(queue.lane);
    publish_end(queue.lane);
    publish_one(queue.lane);
    assert_int_equal(take(&queue, 0), 0);
    assert_int_equal(take(&queue, 0), 1);
    assert_int_equal(take(&queue, 0), 2);
    close_queue(&queue);
}

static void
a_reader_gets_the_end_while_another_holds_a_batch(void **state)
{
    struct queue queue;

    (void)state;
    open_queue(&queue);
    publish_one(queue.lane);
    publish_end(queue.lane);
    assert_int_equal(take(&queue, 0), 0);
    assert_int_equal(take(&queue, 1), 1);
    publish_one(queue.lane);
    assert_int_equal(take(&queue, 1), 2);
    give_back(&queue, 0, 0);
    assert_int_equal(take(&queue, 0), 1);
    assert_int_equal(take(&queue, 0), -1);
    close_queue(&queue);
}

static void
a_reader_that_has_not_had_the_end_gets_what_a_dead_one_held(void **state)
{
    struct queue queue;

    (void)state;
    open_queue(&queue);
    publish_one(queue.lane);
    publish_one(queue.lane);
    publish_end(queue.lane);
    assert_int_equal(take(&queue, 0), 0);
    assert_int_equal(take(&queue, 0), 1);
    assert_int_equal(take(&queue, 0), 2);
    detach(&queue, 0);
    assert_int_equal(take(&queue, 1), 0);
    assert_int_equal(take(&queue, 1), 1);
    assert_int_equal(take(&queue, 1), 2);
    close_queue(&queue);
}

static void
one_that_comes_after_the_end_gets_what_a_dead_one_held(void **state)
{
    struct queue queue;

    (void)state;
    open_queue(&queue);
    publish_one(queue.lane);
    publish_end(queue.lane);
    publish_one(queue.lane);
    assert_int_equal(take(&queue, 0), 0);
    assert_int_equal(take(&queue, 1), 1);
    detach(&queue, 0);
    /* The other has had the end: nothing before that is for it any more. */
    assert_int_equal(take(&queue, 1), 2);
    publish_one(queue.lane);
    attach(&queue, 0);
    assert_int_equal(take(&queue, 0), 0);
    assert_int_equal(lane_slot_memory(queue.lane, 0)->visits, 1);
    assert_int_equal(take(&queue, 0), 1);
    assert_int_equal(take(&queue, 0), 3);
    close_queue(&queue);
}

static void
one_that_comes_after_the_end_does_not_get_that(void **state)
{
    struct queue queue;

    (void)state;
    open_queue(&queue);
    detach(&queue, 1);
    publish_one(queue.lane);
    publish_end(queue.lane);
    publish_one(queue.lane);
    assert_int_equal(take(&queue, 0), 0);
    assert_int_equal(take(&queue, 0), 1);
    attach(&queue, 1);
    assert_int_equal(take(&queue, 1), 2);
    close_queue(&queue);
}

static void
a_batch_that_nobody_came_for_gives_way(void **state)
{
    struct queue queue;

    (void)state;
    open_queue(&queue);
    publish_one(queue.lane);
    publish_end(queue.lane);
    assert_int_equal(take(&queue, 0), 0);
    assert_int_equal(take(&queue, 1), 1);
    detach(&queue, 0);
    publish_one(queue.lane);
    publish_one(queue.lane);
    assert_int_equal(take(&queue, 1), 2);
    assert_int_equal(take(&queue, 1), 3);
    assert_true(lane_can_publish(queue.lane) == false);
    /* It waits, and there is no other slot. */
    assert_int_equal(take(&queue, 1), -1);
    publish_one(queue.lane);
    assert_int_equal(take(&queue, 1), 4);
    close_queue(&queue);
}

static void
a_reader_that_never_asks_holds_up_no_other(void **state)
{
    struct queue queue;

    (void)state;
    open_queue(&queue);
    for (int64_t epoch = 0; epoch < 10; epoch++) {
        assert_int_equal(take(&queue, 0), -1);
        publish_one(queue.lane);
        assert_int_equal(take(&queue, 0), 2 * epoch);
        give_back(&queue, 0, (uint64_t)(2 * epoch));
        assert_int_equal(take(&queue, 0), -1);
        publish_end(queue.lane);
        assert_int_equal(take(&queue, 0), 2 * epoch + 1);
    }
    close_queue(&queue);
}

static void
the_place_has_what_is_held_after_the_end(void **state)
{
    struct lane_queue_state place;
    struct queue queue;

    (void)state;
    open_queue(&queue);
    publish_one(queue.lane);
    publish_one(queue.lane);
    publish_end(queue.lane);
    publish_one(queue.lane);
    assert_int_equal(take(&queue, 0), 0);
    assert_int_equal(take(&queue, 0), 1);
    give_back(&queue, 0, 0);
    for (uint32_t i = 0; i < READERS; i++)
        assert_int_equal(take(&queue, i), 2);
    assert_int_equal(take(&queue, 1), 3);
    give_back(&queue, 1, 3);
    assert_true(lane_queue_state(queue.lane, &place));
    assert_int_equal(place.epoch, 0);
    assert_int_equal(place.step, 1);
    /* The batch and the end of its epoch are to come again, what is after them was given back. */
    assert_int_equal(place.bit_count, 3);
    assert_int_equal(place.bits[0] & 7, 4);
    close_queue(&queue);
}

TEST_FILE(test_lane_queue)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_goes_to_the_next_reader_once_its_holder_is_gone),
        cmocka_unit_test(a_server_that_ends_offers_no_batch_again),
        cmocka_unit_test(a_batch_is_taken_once_it_has_a_holder),
        cmocka_unit_test(a_reader_gets_the_end_while_it_holds_a_batch),
        cmocka_unit_test(a_reader_gets_the_end_while_another_holds_a_batch),
        cmocka_unit_test(a_reader_that_has_not_had_the_end_gets_what_a_dead_one_held),
        cmocka_unit_test(one_that_comes_after_the_end_gets_what_a_dead_one_held),
        cmocka_unit_test(one_that_comes_after_the_end_does_not_get_that),
        cmocka_unit_test(a_batch_that_nobody_came_for_gives_way),
        cmocka_unit_test(a_reader_that_never_asks_holds_up_no_other),
        cmocka_unit_test(the_place_has_what_is_held_after_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
