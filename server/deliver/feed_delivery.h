/* feed_delivery.h - how the trainers of a feed form groups: by replica, under their group's name;
 * in a queue, each by itself; or as readers of an evaluation, of which nothing is kept.
 *
 * A feed takes one of three tables when it opens, and never asks which. The feed's lock is held for
 * all functions but `wakeup` and `find_standing`.
 */
#ifndef DELIVER_FEED_DELIVERY_H
#define DELIVER_FEED_DELIVERY_H

#include "deliver/departure.h"
#include "deliver/feed_private.h"

struct feed_delivery {
    const struct departure *departures; /* by enum departed */

    /* A group outlives its trainers, and the next of them begin where it says (feed_begin.h). */
    bool outlives_trainers;
    /* A slot is free only when every group has given it back: a slow group holds up the others, and
     * the lanes have room for a limited number of groups. */
    bool holds_up_others;

    /* May this trainer have this replica? */
    tundish_status (*check)(struct feed *feed, const struct feed_request *request);

    /* The group that trainers of this name join; NULL: each is one by itself, or it is the first.
     */
    struct group *(*find_group)(struct feed *feed, const char *name);

    /* The same, or a group that was awaited and takes this name. */
    struct group *(*take_group)(struct feed *feed, const struct feed_request *request);

    /* A group has been made: let its readers begin at one step. */
    void (*align)(struct group *group);

    /* A trainer has come to a group that was made for it: is that worth a line of the log? */
    void (*tell_new_group)(struct feed *feed, const struct group *group,
                           const struct tnd_welcome *welcome);

    /* Has it taken all that there is, so that it needs no successor? */
    bool (*has_read_all)(struct feed *feed, const struct member *member);

    /* The position that stands for where a trainer is, in the figures. */
    uint64_t (*position)(const struct lane_stats *lane, const struct lane_reader_stats *reader);

    /* See feed_queue_wakeup and feed_standing. */
    int (*wakeup)(const struct member *member);
    bool (*find_standing)(struct feed *feed, uint64_t *ret_epoch, uint64_t *ret_step,
                          struct lane_queue_state *ret_queue);
};

extern const struct feed_delivery feed_replicas, feed_queue, feed_evaluation;

#endif
