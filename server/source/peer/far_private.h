/* far_private.h - what is asked, what is answered, and who keeps it.
 *
 * far.c opens and closes, far_ask.c asks and waits, far_serve.c answers, far_wire.c knows the
 * bytes.
 */
#ifndef SOURCE_FAR_PRIVATE_H
#define SOURCE_FAR_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/bytes.h"
#include "link/node_channel.h"
#include "source/files/file.h"
#include "source/peer/far.h"

/* key.epoch of a letter; key.part numbers the question. */
enum far_letter { FAR_ASK_ROWS = 1, FAR_ASK_RECORDS, FAR_ANSWER, FAR_RATES };

/* What a MiB costs whoever asks, on the wire and to unpack, in ns; 0: not known yet. */
struct far_rates {
    uint64_t wire_ns, unpack_ns;
};

/* Before every answer. */
struct far_head {
    int32_t status;     /* not OK: a sentence follows */
    uint32_t is_packed; /* by zstd */
    uint64_t raw_bytes;
};

/* Which file is meant, and how it is read; its name follows. */
struct far_file {
    uint32_t scanner, packing;
    int64_t numbers[3];
    uint32_t name_bytes;
    uint32_t count; /* rows of it that follow, 12 bytes each */
};

enum { FAR_ROW_BYTES = 12, FAR_RECORDS_HEAD = 9, FAR_RECORDS = 32 << 10 };

/* A question under way. */
struct far_question {
    struct far_question *next; /* of those that wait for an answer */
    struct far *far;
    uint64_t number;
    uint32_t owner;
    _Atomic bool is_answered;
    struct link_mail answer; /* once it is */
    const uint8_t *raw;      /* what the answer says, once it was looked at; in answer.bytes */
    size_t raw_bytes;
};

/* A question that has come. */
struct far_task {
    struct far_task *next;
    struct link_mail mail;
};

enum far_hall { FAR_HALL_ROWS, FAR_HALL_RECORDS, FAR_HALLS };

/* A thread that answers; scans are slow, and hold up no rows. */
struct far_clerk {
    struct far *far;
    pthread_t thread;
    bool started;
    pthread_cond_t has_task;
    struct far_task *first, *last;

    /* What packing costs, for a MiB, and what comes of it, in 1/1024. */
    uint64_t answers, pack_ns, ratio;
};

struct far {
    struct far_options options;
    struct source_files *files; /* this node's own, read for others */

    pthread_mutex_t lock; /* of all below */
    struct far_question *questions;
    uint64_t last_number;
    struct far_rates rates, *told; /* own, and what each node was told of them */
    struct far_rates *asked_at;    /* of nodes that ask */
    bool is_closing;
    _Atomic int stop_scans;
    struct far_clerk clerks[FAR_HALLS];
};

/* Bytes that grow. */
struct far_text {
    uint8_t *bytes;
    size_t used, room;
};
void far_text_add(struct far_text *text, const void *bytes, size_t byte_count);
void far_text_add_file(struct far_text *text, const struct source_file *file, uint32_t count);

/* Read a file's description; false: it makes no sense. The name is the caller's to free. */
bool far_take(struct byte_view *from, void *to, size_t byte_count);
bool far_take_file(struct byte_view *from, struct far_file *ret_file, char **ret_name,
                   struct record_format *ret_format);

tundish_status far_start_clerks(struct far *far);
void far_stop_clerks(struct far *far);
void far_hand_to_clerk(struct far *far, enum far_hall hall, const struct link_mail *mail);

/* What it costs a node to be answered. */
void far_take_rates(struct far *far, const struct link_mail *mail);

/* The answer to a question has come; the thread that talks to other nodes. */
void far_take_answer(struct far *far, const struct link_mail *mail);

#endif
