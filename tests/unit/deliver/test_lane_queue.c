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
open_queue(struct queue *queue)
{
    struct lane_config config = {
        .name = "test/0", .slots = 4, .arena_bytes = 4096, .spec = &spec, .queue = true
    };

    assert_int_equal(lane_open(&config, &queue->lane), TUNDISH_OK);
    for (uint32_t i = 0; i < READERS; i++) {
        struct tnd_welcome welcome = { 0 };
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
        connection_open(&queue->clients[i], pair[0], NULL);
        queue->sockets[i] = pair[1];
        assert_int_equal(lane_reader_open(queue->lane, i, &queue->readers[i]), TUNDISH_OK);
        assert_int_equal(lane_reader_attach(queue->readers[i], &queue->clients[i], &welcome),
                         TUNDISH_OK);
    }
}

static void
close_queue(struct queue *queue)
{
    for (uint32_t i = 0; i < READERS; i++) {
        lane_reader_detach(queue->readers[i]);
        connection_close(&queue->clients[i]);
        close(queue->sockets[i]);
    }
    lane_close(queue->lane);
}

static void
publish_one(struct lane *lane)
{
    struct slot slot;

    slot_init(lane, &slot);
    slot.position = lane->published;
    slot.columns[0].shape[0] = 8;
    slot_values(&slot, 0)->stored_bytes = 8;
    assert_int_equal(lane_reserve(lane, &slot), TUNDISH_OK);
    lane_seal(lane, &slot);
    lane_publish(lane, &slot);
    slot_fini(&slot);
}

/* Each reader asks for a batch, the first of them first. */
static void
ask(struct queue *queue)
{
    for (uint32_t i = 0; i < READERS; i++) {
        struct tnd_returns *page = (struct tnd_returns *)(void *)queue->readers[i]->returns.bytes;

        atomic_store(&page->wanted, 1);
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
    lane_reader_detach(queue.readers[0]);
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
    lane_reader_detach(queue.readers[0]);
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

TEST_FILE(test_lane_queue)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_goes_to_the_next_reader_once_its_holder_is_gone),
        cmocka_unit_test(a_server_that_ends_offers_no_batch_again),
        cmocka_unit_test(a_batch_is_taken_once_it_has_a_holder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
