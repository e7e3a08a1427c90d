/* peer_private.h - requests, answers, and the state that they share.
 *
 * peers.c opens and closes, peer_ask.c asks and waits, peer_serve.c answers, peer_wire.c knows the
 * bytes.
 */
#ifndef SOURCE_PEER_PEER_PRIVATE_H
#define SOURCE_PEER_PEER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/bytes.h"
#include "source/files/file.h"
#include "source/peer/peer.h"
#include "source/scan/samples.h"

/* The kind of a message, whose number is the request's. */
enum peer_kind {
    PEER_ASK_ROWS = 1,
    PEER_ASK_RECORDS,
    PEER_ANSWER,
    PEER_RATES,
    PEER_ASK_FILE,
    PEER_ASK_SIZE
};

/* The cost of a MiB for the node that asks, on the wire and to unpack, in ns; 0: not known yet. */
struct peer_rates {
    uint64_t wire_ns, unpack_ns;
};

/* Before every answer. */
struct peer_head {
    int32_t status;     /* not OK: a sentence follows */
    uint32_t is_packed; /* by zstd; with a sentence: the file is damaged */
    uint64_t raw_bytes;
};

/* Which file is meant, and how it is read; its name follows, and of one whose numbers say that they
 * matter, the columns of its samples. */
struct peer_file {
    uint32_t scanner, packing;
    int64_t numbers[3];
    uint32_t name_bytes;
    uint32_t count; /* rows of it that follow, 12 bytes each */
};

/* The same, read. */
struct peer_wanted {
    char *name; /* the reader's to free */
    struct record_format format;
    uint32_t count;
};

/* Columns of samples that were asked with, for files that are open. */
struct peer_samples {
    struct peer_samples *next;
    int64_t hash;
    struct sample_columns columns; /* its own */
};

enum { PEER_ROW_BYTES = 12, PEER_RECORDS_HEAD = 9, PEER_RECORDS = 32 << 10 };

/* A request under way. */
struct peer_request {
    struct peer_request *next; /* of those that wait for an answer */
    struct peers *peers;
    uint64_t number;
    uint32_t owner;
    _Atomic bool is_answered;
    bool is_damaged; /* the answer is an error, which the file's content is at fault for */
    struct peer_message answer; /* once it is */
    const uint8_t *raw;         /* what the answer says, once it was looked at; in answer.bytes */
    size_t raw_bytes;
};

/* A request that has come. */
struct peer_task {
    struct peer_task *next;
    struct peer_message message;
};

enum peer_queue { PEER_QUEUE_ROWS, PEER_QUEUE_RECORDS, PEER_QUEUES };

/* Bytes that grow. */
struct peer_buffer {
    uint8_t *bytes;
    size_t used, room;
};

/* A thread that answers; scans are slow, and hold up no rows. */
struct peer_responder {
    struct peers *peers;
    pthread_t thread;
    bool started;
    pthread_cond_t has_task;
    struct peer_task *first, *last;
    struct scratch *scratch; /* for whole files */
    struct peer_buffer raw;  /* an answer's, kept from one to the next */

    /* The cost of packing a MiB, and its result in 1/1024. */
    uint64_t answers, pack_ns, ratio;
};

struct peers {
    struct peers_options options;
    struct source_files *files; /* this node's own, read for others */

    pthread_mutex_t lock; /* of all below */
    struct peer_request *requests;
    uint64_t last_number;
    struct peer_rates rates, *told; /* own, and what each node was told of them */
    struct peer_rates *asked_at;    /* of nodes that ask */
    struct peer_samples *samples;
    bool is_closing;
    _Atomic uint64_t passed_on; /* of rows and files, before packing */
    _Atomic int stop_scans;
    struct peer_responder responders[PEER_QUEUES];
};

static inline struct byte_view
peer_buffer_view(const struct peer_buffer *text)
{
    return (struct byte_view){ text->bytes, text->used };
}
void peer_buffer_add(struct peer_buffer *text, const void *bytes, size_t byte_count);
void peer_buffer_add_file(struct peer_buffer *text, const struct source_file *file, uint32_t count);

/* Read a file's description; false: it makes no sense. */
bool peer_take(struct byte_view *from, void *to, size_t byte_count);
bool peer_take_file(struct peers *peers, struct byte_view *from, struct peer_wanted *ret_wanted);
void peer_free_samples(struct peers *peers);

/* A request, and its answer: `raw`, once it was waited for. */
struct peer_request *peer_request_send(struct peers *peers, uint32_t owner, enum peer_kind kind,
                                       struct byte_view bytes);
tundish_status peer_request_wait(struct peer_request *request);
void peer_request_close(struct peer_request *request); /* accepts NULL */

tundish_status peer_start_responders(struct peers *peers);
void peer_stop_responders(struct peers *peers);
void peer_hand_over(struct peers *peers, enum peer_queue queue, const struct peer_message *message);

/* The cost of an answer for a node. */
void peer_take_rates(struct peers *peers, const struct peer_message *message);

/* The answer to a request has come; the thread that talks to other nodes. */
void peer_take_answer(struct peers *peers, const struct peer_message *message);

#endif
