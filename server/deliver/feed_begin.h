/* feed_begin.h - where a trainer that brings no place begins. The feed's lock is held.
 *
 * It begins an epoch at its start if the trainers before it have closed their readers in order, and
 * goes on where they stood if one of them died; but never with the end of an epoch alone. The
 * replicas of a group begin alike: once all of them have closed, they begin with the first epoch
 * that none of them had begun. While some are attached, a successor takes its place beside them. If
 * these stand where its predecessor closed, they may be about to close as well, so it is told a
 * little later (TND_FROM).
 */
#ifndef DELIVER_FEED_BEGIN_H
#define DELIVER_FEED_BEGIN_H

#include "deliver/feed_private.h"

/* A trainer is about to be attached as this member, whose group was made for it, or has nobody
 * else. Writes into the WELCOME where it begins. */
void feed_begin_attach(struct feed *feed, struct member *member, const struct feed_request *request,
                       bool is_new, struct tnd_welcome *welcome);

/* It is attached, with that WELCOME. */
void feed_begin_attached(struct member *member, const struct tnd_welcome *welcome);

/* Its trainer goes: note where it stands. Then, when it is gone: do all start again? */
void feed_begin_note(struct feed *feed, struct member *member, bool died);
void feed_begin_left(struct feed *feed, const struct member *member);

/* Tell those that were let in before it was known where they begin, if it is known now. Returns
 * when to look again. */
int64_t feed_begin_tick(struct feed *feed, int64_t now_ns);

/* The group is about to be unlinked: note how its trainers left. */
void feed_begin_ended(struct feed *feed, const struct group *group);

/* Have all of the group's trainers closed their readers in order, with nobody attached? */
bool feed_begin_is_closed(const struct group *group);

/* The epoch with which the trainers of this name, of a group that is gone, were to begin; 0: there
 * were none. */
uint64_t feed_begin_take_closed(struct feed *feed, const char *name);

/* May a group of another name come back, that was dropped because it had closed? For `rejoin` the
 * lanes are not one group's alone, though nothing is kept for it. A session without groups asks
 * nobody, and is thrown away. */
bool feed_begin_may_return(const struct feed *feed, const char *but);

/* Has its last trainer closed at the end of an epoch? */
bool feed_begin_is_between(const struct member *member);

/* Has the group closed at the end of an epoch, so that nothing is kept for it? */
bool feed_begin_is_over(const struct group *group);

/* Is a trainer of another group attached, or may one come that needs what the lanes hold? */
bool feed_begin_is_shared(const struct feed *feed, const struct group *but);

/* Forget all of this: the lanes start again. */
void feed_begin_forget(struct feed *feed);

#endif
