/* delivery.h - how a lane's batches go to its readers: each to every group, or once, as a queue.
 *
 * A lane takes one of two tables when it opens, and never asks which. The lane's lock is held for
 * all functions.
 */
#ifndef DELIVER_DELIVERY_H
#define DELIVER_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

struct lane;
struct lane_reader;
struct lane_stats;
struct tnd_welcome;

struct delivery_ops {
    uint32_t number; /* as the lane's header tells trainers: TND_DELIVER_... */
    uint64_t span;   /* unpublished positions lie no further from the first that is not released */

    /* A release is progress by itself, without a slot that becomes free. */
    bool counts_releases;
    /* A trainer that begins to wait is progress even if batches are left for it to take. */
    bool hears_each_wait;
    /* Trainers signal each release, whether or not the filling thread waits. */
    bool always_waits;

    /* A reader is opened at this position: set `given` to the number that limits what its trainer
     * may take, and where the trainer begins. */
    void (*open_reader)(struct lane_reader *reader, uint64_t position);

    /* A trainer is being attached: before its page is made, and after that. */
    void (*reset_reader)(struct lane_reader *reader);
    void (*attach_reader)(struct lane_reader *reader);

    /* Where it begins, for the trainer. */
    void (*welcome)(const struct lane_reader *reader, struct tnd_welcome *welcome);

    /* The trainer leaves: what it held is offered again. True: it held something, and once others
     * were offered it tell_holdings logs what nobody takes. */
    bool (*take_holdings)(struct lane_reader *reader);
    void (*tell_holdings)(struct lane *lane);

    /* Read every page, and free the slots that are done. */
    void (*collect)(struct lane *lane);

    /* Slots have been published. */
    void (*published)(struct lane *lane);

    /* Give trainers what they asked for, before those that sleep are woken. */
    void (*grant)(struct lane *lane);

    /* The first position that the reader may still get. */
    uint64_t (*owes_from)(const struct lane_reader *reader);

    /* In stats->taken stands how many slots are published: leave those that trainers have taken. */
    void (*count_taken)(const struct lane *lane, struct lane_stats *stats);
    uint64_t (*count_released)(const struct lane_reader *reader);

    /* The server ends, and grants no more from now on. */
    void (*end)(struct lane *lane);
};

extern const struct delivery_ops delivery_groups, delivery_queue;

#endif
