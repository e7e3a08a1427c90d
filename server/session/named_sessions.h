/* named_sessions.h - sessions beside the one that each stream has: made when a trainer names one,
 * gone when its last reader is.
 *
 * Each is an iterator of its own over the whole stream, at its own pace: what a worker of a
 * parameter server wants for itself. Its unseeded stages have seeds of their own, which follow from
 * the job's and the session's name.
 *
 * Each reader of an evaluation (distribute.evaluation_shards) also gets its shards through a
 * session of its own, which ends when the reader leaves.
 */
#ifndef SESSION_NAMED_SESSIONS_H
#define SESSION_NAMED_SESSIONS_H

#include "session/evaluation/shard_trackers.h"
#include "session/session.h"

struct named_sessions;

struct named_sessions_options {
    const struct spec_file *file;
    const char *stream;          /* only this one is served; NULL: all */
    struct session_options base; /* but for file, stream, wakeup and what is a session's own */
    const struct shard_trackers *trackers; /* of evaluations */
    struct hub *hub;
    void (*abandoned)(void *user); /* named_sessions_reap has something to do; any thread */
    void *user;
};

struct named_sessions *named_sessions_open(const struct named_sessions_options *options);

/* For hub_config.make; the hub's thread. */
tundish_status named_sessions_make(struct named_sessions *sessions,
                                   const struct hub_request *request, struct feed **ret_feed);
/* As session_link_hear, of each of them. */
void named_sessions_link_hear(struct named_sessions *sessions, uint32_t from,
                              const struct link_key *key, struct byte_view bytes);

void named_sessions_show(struct named_sessions *sessions); /* metrics; the hub's thread */

/* Close the sessions without readers. Not in the hub's thread, as all below. */
void named_sessions_reap(struct named_sessions *sessions);

/* Make no more sessions. The existing ones publish STOPPED and are taken off the hub. */
void named_sessions_stop(struct named_sessions *sessions);
void
named_sessions_close(struct named_sessions *sessions); /* after the hub has stopped; accepts NULL */

#endif
