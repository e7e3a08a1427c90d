/* help_private.h - help.c leads a job, helped_server.c is a node's server and trainer,
 * helper_hosts.c the helpers and the connections to them.
 */
#ifndef SIMULATION_HELP_PRIVATE_H
#define SIMULATION_HELP_PRIVATE_H

#include <stdbool.h>
#include <stdio.h>

#include "help.h"
#include "helpers/helpers_private.h"
#include "nodes/fibers.h"

static const int64_t MS = 1000000, SECOND = 1000000000;
enum { SLOTS = 8, ROWS_MAX = 256, CORES_MAX = 16 };

/* How a row is noted in its slot. */
enum { ROW_RIGHT = 1, ROW_WRONG = 16 };

struct lane_slot {
    bool is_ready;
    uint8_t rows[ROWS_MAX]; /* the sum of what was written there */
};

/* What session->feed, the lane in it and session->wakeup stand for. */
struct helped_server {
    struct session session;
    struct spec_stream stream;
    struct plan plan;
    struct helps *job;
    struct worker workers[CORES_MAX];
    struct session_lane_counters lane;
    struct tnd_stats_lane lane_values;
    struct tnd_stats_stream stream_values;
    struct tnd_stats_thread thread_values;
    struct cable cable;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t turn, batch, changed;
    uint64_t turns, turns_over; /* at the cores */
    struct lane_slot slots[SLOTS];
    uint64_t published, released;
    bool trainer_waits, is_signalled, is_over;
    uint64_t steps, waits, under_way;
};

struct helper_host {
    uint32_t node;
    bool is_up, is_silent, is_closed, makes_others;
    uint32_t life, makers; /* threads */
    struct cable cable;
    pthread_mutex_t lock;
    pthread_cond_t asked;
    struct request *first, **last; /* in the order in which they came */
};

struct helps {
    const struct help_options *options;
    struct help_result *result;
    struct helped_server *servers;
    struct helper_host *helpers;
    struct connection_of *connections; /* of all */
    char *addresses;
    int64_t began_ns;
    bool is_over;
};

extern struct helps *helps_present; /* the one that is played */

#define complain(...)                                                                              \
    do {                                                                                           \
        if (helps_present->result->text[0] == '\0')                                                \
            snprintf(helps_present->result->text, sizeof helps_present->result->text,              \
                     __VA_ARGS__);                                                                 \
    } while (false)

static inline bool
help_is_later(void)
{
    return fibers_now_ns() - helps_present->began_ns >= SECOND;
}

/* The server of the fiber that runs. */
struct helped_server *helped_server_here(void);
void helped_server_open(struct helped_server *server);
void helped_server_live(void *server); /* a fiber of its node */
void helped_server_close(struct helped_server *server);

/* Write rows of a step into their slot. */
void helped_server_write(struct helped_server *server, const struct part *part, uint8_t how);

void helper_host_open(struct helper_host *host, uint32_t number);
void helper_host_kill(struct helper_host *host);
void helper_host_come(struct helper_host *host);
void helper_host_stop(struct helper_host *host);
void helper_host_go_on(struct helper_host *host);
void helper_host_close(struct helper_host *host); /* waits for its threads */
void helper_hosts_forget(struct helps *job);      /* the connections */

/* The time that so many rows take, this time. */
int64_t help_rows_ns(int64_t rows);

#endif
