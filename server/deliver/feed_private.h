/* feed_private.h - the internals of a feed, for feed*.c. */
#ifndef DELIVER_FEED_PRIVATE_H
#define DELIVER_FEED_PRIVATE_H

#include <pthread.h>

#include "core/lock.h"
#include "deliver/feed_hub.h"
#include "deliver/lane_reader.h"
#include "shm/place.h"

/* How the last trainer went that had taken something. */
enum leaving { MEMBER_NEW, MEMBER_CLOSED, MEMBER_DIED };

/* Where the next trainer without a place begins: where this one stands, at the first step of an
 * epoch, or with the group's begin_epoch. */
enum begins { BEGINS_THERE, BEGINS_WHOLE, BEGINS_EPOCH };

/* The event that a trainer awaits before it is told where it begins: the others close too, or go
 * on; or the epoch comes. */
enum waits { WAITS_NOT, WAITS_TO_DECIDE, WAITS_FOR_EPOCH };

/* A replica of a group. Its cursor lives as long as the group, with or without a trainer attached
 * to it. */
struct member {
    struct group *group;
    uint32_t replica;
    struct lane_reader *reader;
    struct connection *connection;  /* NULL: no trainer */
    uint64_t came_epoch, came_step; /* what came next for it, when its trainer opened */
    bool is_refused; /* its trainer was told that it has no place, and another replica has */
    bool was_taken;  /* a trainer has been attached before */
    bool has_place;  /* the last trainer opened at a place */
    bool is_ahead;   /* a trainer opened beyond all that was taken here, */
    uint64_t ahead_epoch, ahead_step; /* at this step, the last such */
    uint64_t reached;                 /* the position up to which trainers have taken batches */
    bool has_closed;       /* that trainer is gone, and closed its reader in good order */
    bool has_kept;         /* that trainer said what the previous server kept */
    int64_t gone_since_ns; /* -1: a trainer is attached, or none has been yet */
    enum leaving leaving;
    enum begins begins;
    enum waits waits;       /* while attached */
    bool is_between_epochs; /* the last trainer had all of an epoch and nothing of the next */
    uint64_t attached_at;   /* the position at which the last trainer began */
    uint64_t closed_at;     /* and to which it had taken all */
    uint64_t restart_votes; /* 1 + the last epoch it asked to leave */
    uint64_t seen_released; /* for silent_ns */
    uint64_t seen_taken;
    int64_t seen_at_ns;
    int64_t seen_waited_ns; /* its total wait by then */
    int64_t usual_step_ns;
    struct pace pace;
};

/* A group of the previous server that has not come back. Its name is unknown. When that server died
 * the group had trainers, or they were all gone but might still come back. */
enum awaited { AWAITED_NOT, AWAITED_PRESENT, AWAITED_GONE };

struct group {
    struct group *next;
    char *name;
    enum awaited awaited;
    int64_t awaited_until_ns;
    bool is_back;               /* a trainer came that the previous server had */
    int64_t met_at_ns;          /* when a trainer came to it while none was there */
    bool is_told;               /* the log, of replicas that have not come since */
    uint64_t begin_epoch;       /* see feed_begin.h */
    int64_t undecided_until_ns; /* of its members */
    bool ended;                 /* cut off; freed when its last trainer leaves */
    _Atomic uint64_t *released; /* by member: see lane_tie; NULL in a queue */
    uint32_t member_count;
    struct member members[];
};

/* A group that is gone, all of whose trainers had closed: the epoch that its next begin with. */
struct closed_group {
    char *name;
    uint64_t epoch;
    int64_t until_ns; /* it may come back at a place: see feed_begin_may_return */
};

enum { FEED_CLOSED_MAX = 64 };

struct epoch_place {
    uint64_t epoch;
    uint8_t *bytes; /* NULL: unused */
    uint64_t byte_count;
};

struct feed_delivery;

struct feed {
    struct feed_config config;
    const struct feed_delivery *delivery;
    char *stream, *session;
    struct lane **lanes;
    uint32_t lane_count;

    struct tnd_lock lock; /* of all below; taken before a lane's, never held in a callback */
    struct group *groups;
    struct feed_losses losses;
    bool is_ending;
    uint64_t first_epoch, first_step; /* UINT64_MAX: ask the lane */
    bool has_begin;
    uint64_t begin_epoch, begin_step;
    uint64_t restarts_done; /* 1 + the last epoch that all groups asked to leave */
    struct closed_group closed[FEED_CLOSED_MAX]; /* oldest first */
    uint32_t closed_count;
    bool was_closed;       /* so had those of the last group that is gone */
    const char *admitting; /* the group that a callback decides about, or NULL */
    bool admits_ahead;     /* feed_admit_ahead, of the trainer it decides about */
    bool admits_unplaced;  /* feed_admit_unplaced, with this replica */
    struct feed_elsewhere unplaced_by;
    struct epoch_place *places; /* one more than there are epochs in a ring */
    uint32_t place_count, place_next;
};

/* The lowest position that all lanes still hold: the highest of their lowest positions. The lock is
 * held, here and below. */
uint64_t feed_lowest_position(struct feed *feed);

struct group *feed_find_group(struct feed *feed, const char *name); /* not one that is awaited */

/* A group that begins with all that the lanes still hold. */
tundish_status feed_make_group(struct feed *feed, const char *name, struct group **ret_group);
uint32_t feed_count_present(const struct group *group);
bool feed_group_has_finished(struct feed *feed, const struct group *group); /* read all there is */
void feed_unlink_group(struct feed *feed, struct group *group);
void feed_free_group(struct group *group);

/* feed_places.c: send a trainer that attaches the headers for places in the epochs that the lanes
 * hold, and the step that they begin with. */
void feed_send_places(struct feed *feed, struct connection *connection);

/* feed_awaited.c: find an awaited group, or take its cursors for the group of this name. NULL: no
 * group is awaited. */
struct group *feed_find_awaited(struct feed *feed);
struct group *feed_take_awaited(struct feed *feed, const char *name, bool survivor);
void feed_forget_awaited(struct feed *feed);

/* feed_ends.c: where the lanes have no room for one more group, end the one that its trainers
 * closed in good order the longest ago, and tell the session. Without the lock. */
void feed_make_room(struct feed *feed, const char *name);

/* feed_ahead.c: is a trainer attached to a replica that is ahead? A trainer is to be attached:
 * note whether it is, and tell those without a place. It leaves: note what it took. */
bool feed_has_ahead(const struct group *group);
void feed_note_start(struct feed *feed, struct member *member, const struct feed_start *start);
void feed_note_reached(struct member *member);

/* The trainer has been attached: if it was admitted beside one that is ahead, it is told. */
void feed_tell_refused(struct feed *feed, struct member *member);

/* feed_lacking.c: tell the log of replicas that never came, while others of their group wait for
 * them. Returns when to look again. */
int64_t feed_tell_lacking(struct feed *feed, int64_t now_ns);

/* feed_votes.c: ask the session for the next epoch if all want it. Not under the lock. A group that
 * did not may have gone. */
void feed_count_votes(struct feed *feed);

/* Tell the trainers, which may outlive this server, how many groups it has. */
void feed_tell_groups(struct feed *feed);

#endif
