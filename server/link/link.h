/* link.h - this server among the servers of its job: one a node, each a rank of an MPI job.
 *
 * A single thread talks to the other nodes, and polls with growing pauses, so that a node that has
 * nothing to say costs nothing. All others post (node.h says what that is), look, and wait. Every
 * wait ends: when a node is lost, when one has left that had more to say, when `stop` is raised, or
 * at its deadline. Nothing here is called once a step where the steps are known.
 *
 * Without the environment of an MPI job there is one node, no thread, and MPI is never touched.
 */
#ifndef LINK_LINK_H
#define LINK_LINK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/bytes.h"
#include "core/status.h"
#include "shm/stats.h"

struct link;

/* The topics of posts. `stream` counts the streams of the pipeline file; `part` tells posts of one
 * topic apart. */
enum link_topic {
    LINK_HOST = 1,    /* the nodes' names */
    LINK_SEED,        /* the root seed; rank 0's holds */
    LINK_PART,        /* agree.h: what must be the same everywhere */
    LINK_INDEX,       /* the records of a file */
    LINK_EPOCH_STATE, /* the content of nodes' places at an epoch's start */
    LINK_EPOCH_STATES,
    LINK_STEPS,    /* how far nodes are in an epoch */
    LINK_ENDED,    /* where they have no more steps */
    LINK_RESTART,  /* epochs that all leave, and where (session_cut.h) */
    LINK_ORDER,    /* a hash over the order so far */
    LINK_ERROR,    /* struct link_error and a sentence */
    LINK_DEATH,    /* a trainer died: its group and replica; or the group has ended */
    LINK_COUNTERS, /* the metrics of the node's server (shm/stats.h); sent to rank 0 alone */
    LINK_FILES,    /* the files that a node has of a stream */
    LINK_CREW,     /* a word between launchers (serve_crew.h) */
    LINK_LEVEL,    /* where trainers that have ended stood, as a place */
    LINK_SPLIT,    /* where a node's trainers changed to other numbers (session_split.h) */
    LINK_SEEDS,    /* the root seed of the run that a node is in (session_seeds.h) */
    LINK_AHEAD,    /* a replica of a group that opened at a place (session_ahead.h) */
    LINK_STANDING, /* where a group stands (session_standing.h) */
    LINK_TOPIC_COUNT
};

struct link_key {
    uint32_t topic, stream;
    uint64_t epoch, part;
};

struct link_options {
    uint32_t expected_nodes; /* 0: as many as $SLURM_NTASKS says, if it does */
};

/* Join the job that the environment tells of. Waits for the other nodes to join. Refused: another
 * number of nodes than expected, or an MPI job and no MPI in this build. */
tundish_status link_open(const struct link_options *options, struct link **ret_link);

/* Leave in good order: waits until all nodes leave or one is lost, at most linger_ns (negative: as
 * long as it takes); mailboxes are open meanwhile. Then MPI is over for this process, and what is
 * sent goes nowhere. Accepts NULL. */
void link_leave(struct link *link, int64_t linger_ns);
void link_close(struct link *link); /* leaves first, at once; accepts NULL */

/* Mark the job as failed for this node at once, for a reason found elsewhere. Does nothing on a
 * single node. */
void link_fail(struct link *link, const char *text);

/* E_PEER_LOST if the job has failed; the second: also if a node has left, which this one needs. */
tundish_status link_check(struct link *link);
tundish_status link_check_all(struct link *link);

uint32_t link_rank(const struct link *link);
uint32_t link_size(const struct link *link);
void link_name(struct link *link, uint32_t rank, char *ret_name, size_t name_bytes);

/* Any thread; never waits. */
void link_post(struct link *link, const struct link_key *key, const void *bytes, size_t byte_count);
void link_forget(struct link *link, const struct link_key *key);

/* One value made of those of all nodes. Any order of merging gives the same. */
enum link_merge {
    LINK_LOWEST,  /* the first in the order of bytes */
    LINK_HIGHEST, /* the last */
    LINK_ANY,     /* the bits that any has set; a shorter one ends in zeros */
    LINK_EACH,    /* all, by rank: link_next_of_each */
    LINK_KINDS,   /* those that differ, each with the lowest rank that gave it: likewise */
    LINK_MERGE_COUNT
};

struct link_tally {
    enum link_merge merge;
    bool is_running; /* the total follows every change; else it comes when all have spoken */
    const uint8_t *bytes;
    size_t byte_count;
};

struct link_total {
    uint32_t nodes; /* whose values it is made of: all, or, if it is running, some */
    uint8_t *bytes;
    size_t byte_count;
};

/* Give this node's value under the key. A tally has its own keys, which no post has. Any thread;
 * never waits. */
void link_tally(struct link *link, const struct link_key *key, const struct link_tally *own);

/* A copy of the total, whose bytes the caller frees; false: there is none yet. */
bool link_find_total(struct link *link, const struct link_key *key, struct link_total *ret_total);

/* Give a value, and wait for that of all. */
tundish_status link_tally_all(struct link *link, const struct link_key *key,
                              const struct link_tally *own, int64_t timeout_ns,
                              const _Atomic int *stop, struct link_total *ret_total);

/* Wait for the total of a tally that is not running. */
tundish_status link_wait_for_total(struct link *link, const struct link_key *key,
                                   int64_t timeout_ns, const _Atomic int *stop,
                                   struct link_total *ret_total);

/* A total of LINK_KINDS: did all give the same? */
bool link_are_same(const struct link_total *total);

/* Go through a total of LINK_EACH or LINK_KINDS. False: there is no more. */
bool link_next_of_each(struct byte_view *rest, uint32_t *ret_rank, struct byte_view *ret_bytes);

/* A copy of what `rank` posted, which the caller frees; false: nothing yet. */
bool link_find(struct link *link, const struct link_key *key, uint32_t rank, uint8_t **ret_bytes,
               size_t *ret_byte_count);

/* Wait until `ready` says so; it is called whenever something may have changed, in this thread, and
 * may call link_find. E_PEER_LOST: the job has failed, or a node has left; E_TIMEOUT: the time is
 * over (negative: there is no limit but the job's end), or *stop is not 0. */
tundish_status link_wait(struct link *link, bool (*ready)(struct link *link, void *context),
                         void *context, int64_t timeout_ns, const _Atomic int *stop);

/* Messages: bytes for one node, which are not kept. Messages from one node to another arrive in
 * order; those to a lost node are dropped. Key.topic is the mailbox; the rest of the key belongs to
 * the mailbox's owner. */

enum link_mailbox { LINK_SHARDS, LINK_ROWS, LINK_MAILBOX_COUNT };

struct link_message {
    uint32_t from;
    struct link_key key;
    uint8_t *bytes; /* the handler's, which frees them */
    size_t byte_count;
    int64_t took_ns; /* from its first piece to its last */
};

/* Copied. Any thread; never waits. */
void link_send(struct link *link, uint32_t to, const struct link_key *key, const void *bytes,
               size_t byte_count);

/* The same, but handed on from node to node, so that rank 0 can have mail of thousands in few
 * messages. It takes a moment on its way up, and finds another way when a node there is lost. */
void link_send_by_tree(struct link *link, uint32_t to, const struct link_key *key,
                       const void *bytes, size_t byte_count);

/* Bytes for that node that have not been sent yet. */
uint64_t link_queued(struct link *link, uint32_t to);

/* Be given what comes for a mailbox, also what came before, in the thread that talks to the others:
 * the handler must not wait, but may send. NULL ends it, and returns when it is not being called.
 */
typedef void (*link_message_handler)(void *user, const struct link_message *message);
void link_open_mailbox(struct link *link, enum link_mailbox mailbox, link_message_handler handler,
                       void *user);

/* As link_wait, for what only `rank` can give: E_PEER_LOST if that one is lost, or has left and
 * does not answer any more. If another node is lost, it has 20 s. */
tundish_status link_wait_for_one(struct link *link, uint32_t rank,
                                 bool (*ready)(struct link *link, void *context), void *context,
                                 int64_t timeout_ns, const _Atomic int *stop);

/* Is it silent for too long? Has it said that it leaves (it may still answer for a while)? */
bool link_is_lost(struct link *link, uint32_t rank);
bool link_has_left(struct link *link, uint32_t rank);

/* Be told of posts of other nodes, of totals (`from` is 0) and of the job's failure (key NULL; the
 * bytes are a sentence), in a thread of the link's, with no lock held. Posts that came before are
 * told first. One subscriber; NULL ends it, and returns when it is not being called any more. */
typedef void (*link_subscriber)(void *user, uint32_t from, const struct link_key *key,
                                struct byte_view bytes);
void link_subscribe(struct link *link, link_subscriber subscriber, void *user);

/* How often rank 0 gets the LINK_COUNTERS of a node, if that number of nodes posts them: fewer come
 * from each, the more there are. */
int64_t link_counters_ns(const struct link *link, uint32_t nodes);

struct link_stats {
    uint64_t messages_sent, messages_received, beats_sent, posts_sent;
    uint64_t bytes_sent, bytes_received;
    uint64_t mail_sent, mail_received;
    uint64_t waits, waited_ns;             /* of link_wait, where it was not ready at once */
    struct tnd_stats_histogram wait_times; /* of those that are over */
};
void link_stats(struct link *link, struct link_stats *ret_stats);

#endif
