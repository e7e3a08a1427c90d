/* departure.h - who left how, and what follows.
 *
 * A trainer leaves in one of four ways:
 *
 *   finished  it has taken all that there is, up to the stream's end or its error; it may be killed
 *   closed    it closed its reader between two epochs, or as the last trainer of its group
 *   early     it closed its reader while others of its group need its batches to be given back
 *   killed    its process ended, or its connection broke, without a goodbye (TND_BYE)
 *
 *              lanes                     a queue                   an evaluation
 *   finished   no successor is needed    -                         -
 *   closed     no successor is needed    the group ends            the group ends
 *   early      a successor is awaited    -                         -
 *   killed     a successor is awaited;   the group ends; others    the group ends; others
 *              its group is told         get what it held          get its shards
 *
 * No other column than that of lanes has finished or early: a queue's trainer is a group by itself,
 * and there is no last batch that is its own. The table still has these rows, as those of closed.
 *
 * A group ends in one of four ways:
 *
 *   gone     no successor came within deliver.rejoin
 *   silent   a trainer is there and gives nothing back, while another group waits for that
 *            (deliver.slow_group: detach); not in a queue, where nobody waits for another
 *   moved    the job lost trainers on another node: it opens again, here or elsewhere, at a place
 *   yields   all its trainers had closed, and the lanes have no room for a new group
 */
#ifndef DELIVER_DEPARTURE_H
#define DELIVER_DEPARTURE_H

#include <stdbool.h>

#include "shm/channel.h"

enum departed { DEPARTED_FINISHED, DEPARTED_CLOSED, DEPARTED_EARLY, DEPARTED_KILLED };

struct departure {
    bool in_order;       /* it said goodbye; else it counts as a trainer that was lost */
    bool warns_group;    /* the others of its group get E_PEER_LOST at their next call */
    bool awaits;         /* a successor has deliver.rejoin from now on; until then its slots stay */
    const char *warning; /* of the log, after who it was; NULL: nothing is wrong */
    bool tells_of_rejoin; /* and within which time a successor must come */
};

/* By enum departed. */
extern const struct departure departures_of_replicas[], departures_of_queue[],
    departures_of_evaluation[];

enum group_end { GROUP_GONE, GROUP_SILENT, GROUP_MOVED, GROUP_YIELDS };

/* The message to the trainers of a group that ends, if it still has any. */
struct group_departure {
    enum tnd_message_type message;
    tundish_status status;
};

extern const struct group_departure group_departures[]; /* by enum group_end */

#endif
