/* helper_serve_private.h - a helper's connections and streams. */
#ifndef HELPERS_HELPER_SERVE_PRIVATE_H
#define HELPERS_HELPER_SERVE_PRIVATE_H

#include <pthread.h>
#include <semaphore.h>

#include "batch/portable.h"
#include "helpers/helper_allowed.h"
#include "helpers/helper_reads.h"
#include "helpers/helper_serve.h"
#include "helpers/helper_sums.h"
#include "helpers/helper_wire.h"
#include "session/fill.h"
#include "session/session_spec.h"

/* A stream as one server's worker has it: all its connections share it. */
struct helped {
    struct helped *next;
    uint32_t users;
    uint8_t *hello;
    size_t hello_bytes;
    struct plan *plan;
    struct fill fills[2]; /* the second: packed, or without columns */
    tundish_spec spec;
    struct source_files *files;
    struct allowed_files *allowed;
    struct budget *budget;
    struct helper_sums *sums; /* of the files */
    bool reads_whole_files;
};

struct helper_server {
    struct helper_server_options options;
    struct byte_view key;
    int socket;
    uint32_t port;
    pthread_t thread;
    bool started;
    sem_t turns; /* to make a part */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t ended; /* a connection */
    struct helped *streams;
    uint32_t connections;
    uint32_t strangers; /* of those; they have not proved yet that they have the key */
    int64_t told_ns;    /* when a stranger's call, or a cut, was last told; 0: none was */
    uint64_t untold;    /* such since then */
};

/* The numbers of the other side's files and paths, and ours. */
struct own_number {
    uint32_t theirs, own;
    bool is_known;
    uint64_t rows; /* that the file has; UINT64_MAX: they are told by where they lie */
    uint64_t bytes;
    uint64_t sum; /* the server's; 0: not told yet */
    bool is_same; /* it is this side's, too */
};

struct numbers {
    struct own_number *table; /* by theirs, open addressing */
    size_t room, count;
};

struct helper_connection {
    struct helper_server *server;
    struct helper_wire wire;
    bool is_stranger;
    struct helped *stream;
    struct evaluation evaluation;
    struct file_notes notes; /* of the evaluation */
    struct portable_bytes reads;
    struct budget_task memory;
    struct tnd_codec_context *context;
    struct numbers files, paths;
    uint64_t sums_seen;    /* as of when all files were compared */
    const char *different; /* the name of a file that is not as the server's; or NULL */
    bool is_unsure;        /* a file of the request has not been compared */
    struct portable_bytes asked, answer;
    struct slot slot;
    struct iovec *places;
};

/* E_CORRUPT: the message is not a request. */
tundish_status helper_makes_no_sense(void);

/* helper_numbers.c: take the names of `count` files and paths. */
tundish_status helper_enter_names(struct helper_connection *connection, uint32_t count,
                                  struct byte_view *from);

/* The elements of a request, with this process's numbers: one of the plan's root. The caller
 * releases its runs. */
tundish_status helper_read_elements(struct helper_connection *connection, struct byte_view from,
                                    uint64_t *words);

/* helper_answer.c: take one request, make its part, and send it. */
tundish_status helper_answer_one(struct helper_connection *connection);

/* helper_streams.c: the stream of a hello, perhaps another connection's, and what the connection
 * makes parts in. Takes the lock, and holds it while a stream is opened: others of the same server
 * wait for it. Leaving accepts what was not entered. */
tundish_status helper_enter_stream(struct helper_connection *connection, struct byte_view hello);
void helper_leave_stream(struct helper_connection *connection);

#endif
