/* session.h - one run over a stream, delivered: order, content and lanes put together.
 *
 * One thread deals: it asks the order for the next step and describes who gets which rows. Worker
 * threads make the content of the steps' slices, in step order, straight into the slots. A step is
 * published when all its slices are made, so that a row found bad is the error of its step for
 * every replica. Nothing waits for a trainer but the slots.
 */
#ifndef SESSION_SESSION_H
#define SESSION_SESSION_H

#include "deliver/socket/hub.h"
#include "link/link.h"
#include "plan/plan.h"

struct session;
struct shards;
struct stats;

struct session_options {
    const struct spec_file *file;
    const struct spec_stream *stream;
    struct plan_options plan; /* root_seed may be replaced by that of a place */
    struct wakeup *wakeup;
    const _Atomic int *stop; /* not 0: session_open waits for its source no longer. May be NULL */
    uint32_t thread_count;   /* that make content; 0: as many as there are processors */
    uint32_t reader_count;   /* that scan files ahead; 0: none */
    uint64_t server_generation;
    struct link *link;             /* to the other nodes' servers, or NULL */
    struct peers *peers;           /* for streams with files: local; NULL: every node has all */
    uint32_t stream_number;        /* in the pipeline file */
    struct stats *stats;           /* where its figures are shown; outlives the session */
    const char *name;              /* of the session; NULL: the stream's */
    void (*abandoned)(void *user); /* its last group has ended, or NULL; the hub's thread */
    void *user;
    struct shards *shards; /* an evaluation's, of which this is one reader; or NULL */
    const char *state;     /* the folder where it keeps its place, or NULL (session_state.h) */
};

/* Plans the stream, opens files and lanes. Nothing runs yet. What is wrong with the pipeline file
 * goes to `errors`. */
tundish_status session_open(const struct session_options *options, struct spec_errors *errors,
                            struct session **ret_session);
tundish_status session_start(struct session *session);

/* Publish what is made, then STOPPED, and return when nothing runs any more. */
void session_stop(struct session *session);
void session_close(struct session *session); /* stops first; accepts NULL */

/* Make no more content until told to go on; what is made is delivered. */
void session_pause(struct session *session, bool paused);

/* Threads that make content unless options say otherwise. */
uint32_t session_processor_count(void);

/* Has its last group ended, and did nobody come since? */
bool session_is_abandoned(struct session *session);

struct feed *session_feed(struct session *session);

/* What another node's server posted about this session, or that the job has failed
 * (link_subscribe). */
void session_link_hear(struct session *session, uint32_t from, const struct link_key *key,
                       struct byte_view bytes);

/* Bring up to date what is shown and not counted as it happens. A few times a second, one thread.
 */
void session_show(struct session *session);

#endif
