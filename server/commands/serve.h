/* serve.h - the parts of a server, from its command line to its end. */
#ifndef COMMANDS_SERVE_H
#define COMMANDS_SERVE_H

#include <pthread.h>

#include "commands/commands.h"
#include "deliver/socket/group.h"
#include "deliver/socket/hub.h"
#include "link/link.h"
#include "session/named_sessions.h"
#include "session/patience.h"
#include "session/session.h"
#include "shm/channel.h"
#include "source/files/catalogue.h"
#include "source/peer/peer.h"
#include "source/peer/peer_link.h"
#include "spec/spec.h"
#include "stats/stats_writer.h"

/* How the trainers of --expect-trainers stand to each other. */
enum serve_trainers {
    TRAINERS_UNKNOWN,  /* not asked */
    TRAINERS_ALONE,    /* each goes on without the others */
    TRAINERS_SESSIONS, /* so, and each has a session of its own */
    TRAINERS_GROUPS,   /* so, and each is a group of its own, of a broadcast */
    TRAINERS_TOGETHER, /* replicas of one group */
    TRAINERS_MIXED     /* so, and they may share a queue or a broadcast with others */
};

struct serve {
    struct pipeline_options pipeline_options;
    const char *socket;
    const char *helpers;    /* their addresses, or NULL */
    const char *state;      /* the folder where the job keeps places, or NULL */
    char *state_folder;     /* this node's own */
    int state_claim;        /* -1: none */
    bool allows_python;     /* although others than its user may come */
    const char *group_name; /* whose members' trainers may come, too; NULL: none */
    gid_t group;
    uint32_t thread_count;
    bool pin;
    uint32_t drain_limit_s; /* UINT32_MAX: not given */
    struct patience *patience;
    uint32_t owner;       /* the process with which the server ends; 0: none */
    int ready_descriptor; /* -1: none */
    int crew_descriptor;  /* -1: none */
    pthread_t crew;
    bool has_crew;
    uint32_t expected_nodes;
    const char *trainers_text; /* --expect-trainers, or NULL */
    enum serve_trainers trainers;

    struct spec_errors errors;
    struct spec_file *file;
    struct learned *learned;
    uint32_t stream_count; /* that are served */
    uint32_t session_count;
    struct session **sessions; /* one a stream, but for evaluations: their readers ask for theirs */
    struct wakeup **wakeups;
    struct hub *hub;
    struct shard_trackers *trackers;       /* of evaluations */
    struct named_sessions *named_sessions; /* sessions that trainers asked for */
    struct link *link;
    struct catalogue catalogue; /* of files that one node reads for all; unmade: none are */
    struct remote_seen *seen;   /* what stores said when the server began */
    struct peer_link peer_link;
    struct peers *peers;
    struct stats *stats;
    struct tnd_stats_link *link_counters; /* NULL on a single node */
    struct shown_store *stores;
    struct shown_python *pythons;
    uint32_t ticks;
    _Atomic uint64_t beats; /* of the hub's thread: ten a second while it runs */
    uint64_t beats_told;    /* when the service manager was last told that the server is alive */
    int64_t told_ns;
    int ticker; /* a timer: metrics are brought up to date */
};

/* The options that all sessions share. */
struct session_options serve_session_options(const struct serve *serve);

/* Open the streams that are served, after the nodes have agreed. */
tundish_status serve_open_sessions(struct serve *serve);

/* hub_config.make: a session that a trainer asked for. */
tundish_status serve_make_session(void *user, const struct hub_request *request,
                                  struct feed **ret_feed);

/* Publish metrics, and bring those up to date that are not counted as they happen. */
tundish_status serve_open_stats(struct serve *serve);
tundish_status serve_show_regularly(struct serve *serve);

/* Find the other nodes, and their common seed; then see that all serve the same. */
tundish_status serve_open_link(struct serve *serve);
tundish_status serve_agree(struct serve *serve);

/* link_subscribe's listener: hand on what another node says. */
void serve_hear_others(void *user, uint32_t from, const struct link_key *key,
                       struct byte_view bytes);

/* How much was said. */
void serve_log_link(const struct serve *serve);

/* serve_control.c: An operator's request to a running server. Do it for all sessions, and
 * describe the result or the error. */
tundish_status serve_control(struct session **sessions, uint32_t session_count,
                             enum tnd_control what, char *text, size_t text_bytes);

/* serve_stores.c: The counts of stores that files at URLs are read from, among the metrics. */
struct shown_store;

/* Bring up to date; *shown grows with the stores, and is NULL before the first. */
void serve_show_stores(struct stats *stats, struct shown_store **shown);
void serve_forget_stores(struct shown_store **shown);

/* serve_trainers.c: Do the trainers that a launcher starts fit the pipeline file?
 * --expect-trainers: refuse another number of trainers than the file has replicas, and find out
 * whether they depend on each other. After the file and the link were opened. */
tundish_status serve_expect_trainers(struct serve *serve);

/* The line for --ready-fd: with --expect-trainers also how the trainers stand to each other. */
const char *serve_ready_line(const struct serve *serve);

/* serve_python.c: The figures of interpreters that run the user's own Python, among the metrics. */
struct shown_python;

/* Bring up to date; *shown holds those that are shown, and is NULL before the first. */
void serve_show_python(struct stats *stats, struct shown_python **shown);
void serve_forget_python(struct shown_python **shown);

/* Complain of each stage that would run such code where users of a group may attach. */
tundish_status serve_check_python(const struct spec_file *file, const char *group,
                                  struct spec_errors *errors);

#endif
