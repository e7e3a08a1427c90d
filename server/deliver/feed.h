/* feed.h - what one session delivers on this server: a lane for each replica, and the groups of
 * trainers that read them.
 *
 * The session opens a feed, publishes into its lanes (lane.h), and is told through feed_ops when
 * trainers come, go, or want the next epoch. Sockets and liveness are the hub's (hub.h); this file
 * decides which trainer may read what, and from where.
 *
 * Groups. A group is the replicas of one job. It has a cursor in every lane. A slot is free when
 * every group has released it, and a group has released it when all its replicas have. When a
 * trainer dies, the others of its group get E_PEER_LOST at their next call and its unreleased slots
 * stay: a successor within `rejoin` gets its first unreleased step. A group whose trainers all died
 * continues at the lowest step of its replicas; one whose trainers all closed begins the next epoch
 * (feed_begin.h). If no successor comes in time, or the whole
 * group is gone for that long, the group ends: its cursors are dropped and its remaining trainers
 * are told. A group also ends when only some of its trainers come back to a restarted server. A
 * whole group that is not back yet is awaited (feed_await). If a trainer closes its reader in good
 * order, a successor gets the same time before the group is told, and none is needed if the trainer
 * has read all. A new group starts at the oldest slot kept, or after it if that slot is the end of
 * an epoch that had steps. A group that has closed at the end of an epoch holds up no other.
 */
#ifndef DELIVER_FEED_H
#define DELIVER_FEED_H

#include "deliver/departure.h"
#include "deliver/lane.h"
#include "deliver/lane_reader.h"
#include "deliver/pace.h"
#include "shm/channel.h"

struct feed;

/* Where a trainer wants to start. */
struct feed_start {
    const void *place; /* header bytes as given to feed_set_place, or NULL: it has no place */
    uint64_t place_bytes;
    uint64_t place_epoch; /* the epoch that `place` was set for: `epoch` or an earlier one */
    bool has_place;       /* `epoch`, `step` come from a place (whose bytes may be 0 long) */
    uint64_t epoch, step; /* the batch it wants next, if has_place */

    bool survivor; /* it outlived a server, and passes over the batches it has seen */

    /* A survivor's that knows: what that server kept for its groups begins at (kept_epoch,
     * kept_step), or at that epoch's end; `place` is true there as well. */
    bool has_kept, kept_end;
    uint64_t kept_epoch, kept_step;
    uint32_t groups_present;  /* those that had trainers */
    uint32_t groups_gone;     /* those whose trainers were all gone, but might still come back */
    uint64_t kept_generation; /* of that server; 0: not known */

    /* A queue's place: (epoch, step) is the first that was not given back; a bit is set for those
     * from there on that were. */
    uint64_t bit_count;
    const uint8_t *bits;
};

/* The first and the last of the batches that the replicas of a group want next. */
struct feed_standing {
    bool is_known; /* of each: it has a trainer, which takes nothing ahead of its program */
    uint64_t lowest_epoch, lowest_step;
    uint64_t highest_epoch, highest_step;
};

/* Called in the hub's thread, never with the feed's lock held: the session takes its own lock first
 * and calls the feed under it. None may wait for long. */
struct feed_ops {
    /* A trainer of `group` asks for a replica: the first of a group that has nobody attached, or
     * the first of this replica, or one that brings a place or is a survivor. Decide whether it may
     * read: OK, or a status and the text (tnd_fail) that it is told. The session may call
     * feed_rewind here. */
    tundish_status (*admit)(void *user, struct feed *feed, const char *group, uint32_t replica,
                            const struct feed_start *start);

    /* `present` of the group's replicas are now attached; when that is all of them it is full.
     * full_group_count says how many groups are full: what distribute.groups waits for. */
    void (*joined)(void *user, struct feed *feed, const char *group, uint32_t replica,
                   uint32_t present, uint32_t full_group_count);

    /* A trainer has gone, in one of the ways of departure.h. Told before its group is. */
    void (*left)(void *user, struct feed *feed, const char *group, uint32_t replica,
                 const struct departure *departure);

    /* A trainer that asked was refused, and is not there. */
    void (*refused)(void *user, struct feed *feed);

    /* The group's time to rejoin is over, or it was cut off: it has ended. lost: some of its
     * replicas had not read all. */
    void (*group_ended)(void *user, struct feed *feed, const char *group, bool lost);

    /* Every replica of every group on this server has asked for the epoch after `epoch`. If the END
     * of `epoch` is not published yet, publish it next. Called once an epoch. */
    void (*restart)(void *user, struct feed *feed, uint64_t epoch);

    /* Time goes by: called often enough, and at the latest when it last said (TND_CLOCK_NEVER: it
     * waits for nothing). */
    int64_t (*tick)(void *user, struct feed *feed, int64_t now_ns);

    /* A trainer asks where its group stands, on all nodes. *number: 0, or what it was set to
     * before, for the answer to the same question. False: not all nodes have answered yet. */
    bool (*find_standing)(void *user, struct feed *feed, const char *group, uint64_t *number,
                          struct feed_standing *ret_standing);
};

struct feed_config {
    const char *stream;
    const char *session;
    uint32_t replica_count;       /* lanes; a queue and broadcast have 1 */
    uint32_t first_replica;       /* of this worker, over all workers */
    uint32_t total_replica_count; /* over all workers */
    int64_t epoch_steps;          /* -1: not known */
    struct lane_config lane;      /* name is set by the feed */
    int64_t rejoin_ns;
    bool detach;       /* slow_group: detach */
    int64_t detach_ns; /* how long a group may hold up another before that */
    bool is_endless;   /* an epoch has no end of its own */
    bool forgets;      /* a group ends when its last trainer leaves */
    bool broadcast;    /* any number of groups, of one reader each */
    const struct feed_ops *ops;
    void *user;
};

tundish_status feed_open(const struct feed_config *config, struct feed **ret_feed);

/* Trainers still attached see the server as gone. Take it off the hub first. Accepts NULL. */
void feed_close(struct feed *feed);

struct lane *feed_lane(struct feed *feed, uint32_t replica);

/* The position that trainers are told when they are let in. For an evaluation it is how many shards
 * of the epoch are done, which the lane cannot tell. Set it before they come; any thread. */
void feed_set_first(struct feed *feed, uint64_t epoch, uint64_t step);

/* lane_reserve in that lane. A trainer that waits at any of the lanes counts as waiting at this
 * one: it may be the one that has to release something here. Any thread. */
tundish_status feed_reserve(struct feed *feed, uint32_t replica, struct slot *slot);

/* The bytes that places of this epoch carry (session/checkpoint/place_contents.h); only the session
 * reads them. Copied. Set it before the epoch's first slot is published; any thread. */
tundish_status feed_set_place(struct feed *feed, uint64_t epoch, const void *bytes,
                              uint64_t byte_count);

/* Can this replica of the group be given (epoch, step) and what follows without another start of
 * the session? ret_near: it is the very next or, for a group that has been here, no farther than a
 * lane is long; what is before it has to be passed over. */
bool feed_reaches(struct feed *feed, const char *group, uint32_t replica, uint64_t epoch,
                  uint64_t step, bool *ret_near);

/* The lanes begin with this step. Tell the trainers, now and as they attach: one that gets nothing
 * before this server dies needs a place as well. After that epoch's feed_set_place, and before its
 * first slot is published; any thread. */
void feed_tell_begin(struct feed *feed, uint64_t epoch, uint64_t step);

/* Is there a group of this name, or an awaited one that may turn out to be this one? */
bool feed_knows(struct feed *feed, const char *group);

/* The group is here, and no trainer has read as this replica of it yet. */
bool feed_lacks(struct feed *feed, const char *group, uint32_t replica);

/* Is some trainer of the group attached that was opened without a place, or at one? */
bool feed_has_unplaced(struct feed *feed, const char *group);
bool feed_has_placed(struct feed *feed, const char *group);

/* Has every group here a trainer at each replica, and was each opened at a place? */
bool feed_are_all_placed(struct feed *feed);

/* Was the replica of the group here before, at this start of the lanes? */
bool feed_was_taken(struct feed *feed, const char *group, uint32_t replica);

/* Is the place beyond all that trainers of this replica have taken here, or, if there was none,
 * beyond what its lane begins with? False in *ret_known: nothing was published yet. */
bool feed_is_beyond(struct feed *feed, const char *group, uint32_t replica,
                    const struct feed_start *start, bool *ret_known);

/* While a trainer is admitted: its place is beyond all that its replica was given here. Nothing
 * tells whether others of its group, without places, have had what is before it. They get E_PLACE
 * at their next call, and those that come later at their first: until then they may leave, and
 * open at places of their own. */
void feed_admit_ahead(struct feed *feed);

struct feed_ahead {
    uint32_t replica;     /* counted over all nodes */
    uint64_t epoch, step; /* of its place */
};

/* The replica of the group that is ahead of all that this one was given, and has a trainer. */
bool feed_find_ahead(struct feed *feed, const char *group, uint32_t replica,
                     struct feed_ahead *ret_ahead);

/* A replica that is ahead, here or on another node. */
struct feed_elsewhere {
    char node[160]; /* "": here */
    const char *group;
    struct feed_ahead ahead;
};

/* While a trainer without a place is admitted: this one is ahead of it. */
void feed_admit_unplaced(struct feed *feed, const struct feed_elsewhere *ahead);

/* Nothing is published yet. The previous server had this many groups. Those that are not here yet
 * may lack all that is published from now on. So each holds it until an unknown group comes and
 * takes its cursor. Groups that had trainers are awaited for wait_ns (-1: without limit; under
 * `detach`, until they hold up another), those whose trainers were gone for rejoin_ns. Returns how
 * many are awaited. */
struct feed_groups {
    uint32_t present, gone;
    int64_t wait_ns;
};
uint32_t feed_await(struct feed *feed, const struct feed_groups *groups);

/* The first replica of the group that is ahead and has a trainer. */
bool feed_first_ahead(struct feed *feed, const char *group, struct feed_ahead *ret_ahead);

/* A replica on another node is ahead. Tell those here that are open without a place and had not
 * come so far before; or: is it ahead of all that this replica was given? */
void feed_tell_elsewhere(struct feed *feed, const struct feed_elsewhere *elsewhere);
bool feed_is_elsewhere(struct feed *feed, const struct feed_elsewhere *elsewhere, uint32_t replica);

/* When the last trainer closed its reader in good order, if none is attached and none of the groups
 * waits for one that died; else -1. */
int64_t feed_left_since_ns(struct feed *feed);

/* Is no trainer attached, and has no group a cursor here except the one being admitted? */
bool feed_is_unused(struct feed *feed);

/* It was used and is not any more, and nobody goes on where the last trainers stood: they have
 * closed, or some of them had all that there is, and this replica is not one that they awaited. */
bool feed_is_spent(struct feed *feed, const char *group, uint32_t replica);

/* Empty every lane: position 0 is published next. Refused with E_ARGUMENT unless the feed is
 * unused, or nothing was published yet. Nothing may be reserved in a lane. */
tundish_status feed_rewind(struct feed *feed);

/* The same for groups that will all come back: refused only if a trainer is attached. */
tundish_status feed_rewind_groups(struct feed *feed);
bool feed_has_trainers(struct feed *feed);

/* Is a trainer attached to this replica, of whatever group? */
bool feed_has_reader(struct feed *feed, uint32_t replica);

/* Is a trainer attached that has yet to give back a batch, or the end of an epoch? */
bool feed_is_owed(struct feed *feed);

/* Tell every trainer of the group (NULL: of all groups), at its next call, that a trainer at
 * another server is lost (PEER_LOST). */
void feed_tell_lost(struct feed *feed, const char *group, const char *text);

/* End the group here: another server has lost replicas of it for good (PEER_LOST, which stays). */
void feed_end_group(struct feed *feed, const char *group, const char *text);

/* One line of the table of readers. */
struct feed_reader_stats {
    char group[TND_NAME_BYTES];
    uint32_t replica;
    bool attached;
    bool died; /* its last trainer did, and its place is kept for another */
    int32_t pid;
    uint64_t released, taken; /* positions */
    uint64_t published;
    uint64_t taken_in_all; /* how many, wherever it began */
    bool waits;            /* in tundish_next, without a batch */
    int64_t usual_step_ns; /* its longest silence of late, waits left out; 0: none so far */
    struct pace pace;
    int64_t waits_ns;                       /* this time; -1: it does not */
    int64_t waited_ns;                      /* ever, this time included */
    uint64_t wait_counts[TND_WAIT_BUCKETS]; /* of those that are over, by duration */
    uint64_t epoch,
        step;          /* of the batch it takes next; the last of each if that is not known yet */
    int64_t silent_ns; /* since it last took or released anything */
    struct device_stats device;
};
/* Trainers and groups lost since the feed was opened. Any thread. */
struct feed_losses {
    uint64_t trainers; /* died with steps left */
    uint64_t groups;   /* ended because no successor came in time, or cut off */
};
void feed_losses(struct feed *feed, struct feed_losses *ret_losses);

/* Fills up to `capacity` lines and returns how many there are. Any thread. */
uint32_t feed_stats(struct feed *feed, struct feed_reader_stats *lines, uint32_t capacity);

/* Where the group stands here. Any thread. */
void feed_find_standing(struct feed *feed, const char *group, struct feed_standing *ret_standing);

/* The first step that some group has not given back; of a queue also what was from there on. False:
 * nothing was published yet. */
struct lane_queue_state;
bool feed_standing(struct feed *feed, uint64_t *ret_epoch, uint64_t *ret_step,
                   struct lane_queue_state *ret_queue);

/* A copy of the bytes that feed_set_place was given for the epoch; the caller frees it. */
bool feed_place_of(struct feed *feed, uint64_t epoch, uint8_t **ret_bytes, uint64_t *ret_count);

#endif
