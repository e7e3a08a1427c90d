/* feed_hub.h - the calls of the hub to a feed, all in the hub's thread. */
#ifndef DELIVER_FEED_HUB_H
#define DELIVER_FEED_HUB_H

#include "deliver/feed.h"
#include "deliver/socket/connection.h"

struct member; /* one trainer of one group, while it is attached */

struct feed_request {
    const char *group; /* not empty */
    uint32_t replica;
    struct feed_start start;
    bool knows_from; /* it understands FROM */
};

/* Let a trainer in and send it its WELCOME and the places of the epochs. The connection lives until
 * feed_detach. Any other status than OK is the refusal to send. */
tundish_status feed_attach(struct feed *feed, const struct feed_request *request,
                           struct connection *connection, struct member **ret_member);
void feed_detach(struct feed *feed, struct member *member, bool died);

void feed_vote_restart(struct feed *feed, struct member *member, uint64_t epoch);

/* A survivor knows that no trainer of the previous server lacks a step before this one. Replicas of
 * that server's groups that are not back yet pass over them: the thread that reads them may wait
 * for this trainer's batch first. */
void feed_pass_kept(struct feed *feed, const struct member *member, uint64_t epoch, uint64_t step);

void feed_answer_queue(struct feed *feed, struct member *member);
void feed_answer_standing(struct feed *feed, struct member *member, uint64_t number);

/* The descriptor on which a queue's trainer signals, or -1 if the feed is not a queue. When it is
 * readable, call feed_queue_signalled. */
int feed_queue_wakeup(const struct feed *feed, const struct member *member);
void feed_queue_signalled(struct feed *feed);

/* End the groups whose time is over. Returns when to call again at the latest (TND_CLOCK_NEVER). */
int64_t feed_tick(struct feed *feed, int64_t now_ns);

/* The server is ending. Trainers that outlive it rely on the group counts of this moment, so freeze
 * them; and keep the batches of a queue that they hold. */
void feed_note_ending(struct feed *feed);

/* Show that the server is alive. Returns whether a trainer is attached. */
bool feed_beat(struct feed *feed, int64_t now_ns);

const char *feed_stream(const struct feed *feed);
const char *feed_session(const struct feed *feed);

#endif
