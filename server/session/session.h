/* session.h - one run over a stream, delivered: order, content and lanes put together.
 *
 * One thread deals: it asks the order for the next step and describes which replica gets which
 * rows. Worker threads make the content of the steps' slices, in step order, straight into the
 * slots. A step is published when all its slices are made, so that a bad row is the error of its
 * step for every replica. Only the slots wait for trainers.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "deliver/socket/hub.h"
#include "link/link.h"
#include "plan/plan.h"

struct patience;
struct session;
struct shards;
struct stats;

struct session_options {
    const struct spec_file *file;
    const struct spec_stream *stream;
    struct plan_options plan; /* root_seed may be replaced by that of a place */
    struct wakeup *wakeup;
    const _Atomic int *stop; /* not 0: session_open gives up waiting for its source. May be NULL */
    uint32_t thread_count;   /* that make content; 0: as many as there are processors */
    bool pin;                /* each of these threads, to the processors of one memory node */
    uint32_t reader_count;   /* that scan files ahead; 0: none */
    bool sleeps;             /* no thread runs, and no step is made, before a trainer is there */
    uint64_t server_generation;
    struct link *link;             /* to the other nodes' servers, or NULL */
    struct peers *peers;           /* for streams whose files have owners; NULL: none has */
    uint32_t stream_number;        /* in the pipeline file */
    struct stats *stats;           /* shows its metrics; outlives the session */
    const char *name;              /* of the session; NULL: the stream's */
    void (*abandoned)(void *user); /* its last group has ended, or NULL; the hub's thread */
    void *user;
    struct shards *shards;     /* an evaluation's, of which this is one reader; or NULL */
    const char *helpers;       /* "HOST:PORT,HOST:PORT ...", or NULL (helpers/helpers.h) */
    const char *state;         /* the folder where it keeps its place, or NULL (session_state.h) */
    struct patience *patience; /* with trainers, once it is stopped; NULL: without limit */
};

/* Plan the stream, and open its files and lanes. No thread runs yet. Errors in the pipeline file go
 * to `errors`. */
tundish_status session_open(const struct session_options *options, struct spec_errors *errors,
                            struct session **ret_session);
tundish_status session_start(struct session *session);

/* Publish the finished steps, then STOPPED. Returns when no thread runs any more. */
void session_stop(struct session *session);

/* The server stops without trainers that have batches left: tell the log of them, once. */
void session_tell_unfinished(struct session *session);
void session_close(struct session *session); /* stops first; accepts NULL */

/* Make no more content until unpaused. Finished steps are still delivered. */
void session_pause(struct session *session, bool paused);

/* Has its last group ended, and has no trainer come since? */
bool session_is_abandoned(struct session *session);

/* When its last trainer closed its reader in good order, and might still come back; -1: it is read,
 * or one has died. And: it shall not come back. */
int64_t session_left_since_ns(struct session *session);
void session_abandon(struct session *session);

struct feed *session_feed(struct session *session);

/* Handle a post of another node's server about this session, or the failure of the job
 * (link_subscribe). */
void session_link_hear(struct session *session, uint32_t from, const struct link_key *key,
                       struct byte_view bytes);

/* Update the metrics that are not counted as they change. A few times a second, one thread. */
void session_show(struct session *session);

#endif
