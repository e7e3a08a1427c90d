/* served.h - a server of one stream in this process, put together as `tundish serve` does it, and
 * readers of it. */
#ifndef TEST_SESSION_SERVED_H
#define TEST_SESSION_SERVED_H

#include "session/named_sessions.h"
#include "session/session.h"
#include "source/files/catalogue.h"
#include "source/peer/peer.h"
#include "source/peer/peer_link.h"
#include "tundish/tundish.h"

/* For what must come: a machine may be slow. */
#define PATIENCE_NS INT64_C(300000000000)

/* The folder of a test: files of pipelines, sockets, caches. Setup and teardown of a group of
 * tests. */
extern char served_folder[64];
int served_make_folder(void **state);
int served_remove_folder(void **state);
void served_write(const char *name, const char *text);
void served_remove(const char *name);

struct served_options {
    const char *stages;     /* of the stream 's', in flow style: "{range: 9}, {batch: 2}" */
    const char *distribute; /* its parameters; NULL: none */
    const char *deliver;
    const char *name;  /* of the socket; NULL: one of its own */
    const char *root;  /* where its files are; NULL: the folder */
    const char *cache; /* NULL: the folder */
    const char *state; /* as session_options'; NULL: none */
    uint64_t seed;
    uint32_t threads;  /* 0: two */
    struct link *link; /* NULL: it is alone */
};

struct served {
    struct served_options options;
    char path[108];
    struct spec_file *file;
    struct spec_errors errors;
    struct session_options session_options;
    struct link *link, *own_link;
    struct catalogue catalogue;
    struct peer_link peer_link;
    struct peers *peers;
    struct hub *hub;
    struct stats *stats;
    struct wakeup *wakeup;
    struct shard_trackers *trackers;
    struct named_sessions *named;
    _Atomic unsigned abandoned; /* how often sessions lost their last reader */
    struct session *session;    /* NULL: an evaluation, whose readers have sessions of their own */
};

/* Not OK: what serving is refused for; the error's text tells why, of the pipeline file too. */
tundish_status served_try(const struct served_options *options, struct served **ret_served);
struct served *
served_open(const struct served_options *options); /* ends the test where that fails */

/* One on each node of a job, which wait for each other. */
void served_open_all(uint32_t count, const struct served_options *options,
                     struct link *const *links, struct served **ret_served);

/* Drain and stop. Accepts NULL. */
void served_close(struct served *served);

/* Gone at once, as when it is killed: trainers find their connections closed. */
void served_kill(struct served *served);

struct wanted {
    const char *session, *group, *token; /* NULL: the default */
    int replica;
};

tundish_status served_try_reader(const struct served *served, const struct wanted *wanted,
                                 tundish_reader **ret_reader);
tundish_reader *served_reader(const struct served *served, const struct wanted *wanted);

/* What comes next, released at once: "0.2 x=1,2 w=a,b" is step 2 of epoch 0; "END" and the like are
 * other statuses. Ragged columns have their splits before the values, sparse ones their indices, in
 * brackets. Valid until the next call. */
const char *served_next(tundish_reader *reader);

/* The same for a batch that the caller holds; and in memory of its own, for other threads. */
const char *served_text(const tundish_batch *batch);
void served_write_text(const tundish_batch *batch, char *text, size_t text_bytes);

/* Is nothing there to read, now? */
bool served_is_quiet(tundish_reader *reader);

/* Assert that these come next; ends with NULL. */
void served_expect(tundish_reader *reader, const char *const *texts);

/* The place of a reader. Valid until the next call. */
const char *served_token(tundish_reader *reader);

#endif
