/* feed_hub.h - what the hub does with a feed. All of it in the hub's thread. */
#ifndef DELIVER_FEED_HUB_H
#define DELIVER_FEED_HUB_H

#include "deliver/feed.h"
#include "deliver/socket/connection.h"

struct member; /* one trainer of one group, while it is attached */

struct feed_request {
    const char *group; /* not empty */
    uint32_t replica;
    struct feed_start start;
};

/* Let a trainer in: it has been sent its WELCOME and all it needs to know. The connection lives
 * until feed_detach. Anything else than OK is the refusal to send. */
tundish_status feed_attach(struct feed *feed, const struct feed_request *request,
                           struct connection *connection, struct member **ret_member);
void feed_detach(struct feed *feed, struct member *member, bool died);

void feed_vote_restart(struct feed *feed, struct member *member, uint64_t epoch);
void feed_answer_queue(struct feed *feed, struct member *member);

/* A queue's trainer has signalled: -1 if the feed is not a queue, else the descriptor to watch, and
 * what to do when it is readable. */
int feed_queue_wakeup(const struct feed *feed, const struct member *member);
void feed_queue_signalled(struct feed *feed);

/* End what is over. Returns when to call again at the latest (TND_CLOCK_NEVER). */
int64_t feed_tick(struct feed *feed, int64_t now_ns);

/* The server ends: who outlives it goes by the groups that it has now. */
void feed_note_ending(struct feed *feed);

/* Show that the server is alive; returns whether anybody looks. */
bool feed_beat(struct feed *feed, int64_t now_ns);

const char *feed_stream(const struct feed *feed);
const char *feed_session(const struct feed *feed);

#endif
