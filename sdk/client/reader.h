/* reader.h - a reader from the inside.
 *
 * A reader stands at a place in a session. An attachment is its connection to one server, with that
 * server's memory. When the server dies the reader attaches again. The old attachment lives on
 * until its batches are released.
 */
#ifndef TND_CLIENT_READER_H
#define TND_CLIENT_READER_H

#include <pthread.h>
#include <stdbool.h>

#include "shm/channel.h"
#include "shm/ring.h"
#include "shm/view.h"
#include "tundish/tundish.h"

/* A buffer's decoded bytes; kept for the next batch in the same slot. */
struct scratch {
    void *bytes;
    uint64_t capacity;
};

/* Where a segment of the server's is mapped: the lane's, or one that a batch has for itself. The
 * attachment knows the mappings that coming batches are read through; an earlier one stays for the
 * batches in it. */
struct mapping {
    struct mapping *next;
    uint32_t id;    /* TND_SEGMENT_LANE, or as announced */
    uint32_t users; /* the attachment's list, its view, and batches */
    void *bytes;
    uint64_t segment_bytes;
    uint64_t number; /* of all that this process ever made, from 1 */
    int descriptor;  /* of the lane's memory, as the server sent it; -1: of other segments */
};

/* A tensor and the memory it points to. */
struct column_use {
    tundish_tensor tensor;
    bool is_ready;
    tundish_tensor framed; /* the same without packed values */
    bool is_framed;
    const int64_t *splits[TND_RANK_MAX];
    uint64_t split_counts[TND_RANK_MAX];
};

/* A slot's batch, in the caller's hands or free. */
struct held {
    tundish_batch batch; /* first: the caller's pointer is ours */
    tundish_reader *reader;
    struct attachment *attachment;
    bool is_held;
    bool is_kept;   /* keep.c: it has left its slot, and its attachment knows nothing of it */
    uint32_t index; /* of the slot */
    uint64_t entry; /* of the line that named it */
    struct tnd_view_slot slot;
    struct mapping *mapping; /* that its buffers are in */
    const uint8_t *payload;  /* its bytes */
    uint32_t buffer_capacity;
    pthread_mutex_t lock; /* of the rest: tensors are made in any thread */
    struct column_use *columns;
    struct scratch *scratch;           /* one a buffer */
    struct tnd_codec_context *context; /* made when first needed */
};

struct attachment {
    struct attachment *next;
    tundish_reader *reader;
    int socket, wakeup, event;
    bool is_gone; /* the server has hung up, or is silent */
    struct tnd_returns *returns;
    struct tnd_view view;
    struct mapping *view_mapping;    /* that the view's counters are in */
    const struct delivery *delivery; /* delivery.h */
    uint32_t line;     /* ours: what we are told, and in a queue what we are granted */
    uint32_t notice;   /* as last seen */
    uint64_t taken;    /* entries of the line that we have passed */
    uint64_t released; /* entries given back without a gap */
    bool *done;        /* by entry: given back, but an earlier entry is not */
    /* Entries that the server took back (claim.c): the last such, and how many before those. */
    uint64_t gap_from, gap_until, gap_before;
    struct held **slots; /* by slot index */
    uint32_t held_count;
    bool has_end; /* an epoch's end was told and is not given back yet */
    uint64_t end_entry;
    uint32_t end_index;
    struct mapping *mappings;
    struct tnd_welcome welcome;
    bool awaits_from; /* until FROM comes, the reader takes nothing */
    bool has_begin;   /* the server told the step that the lane begins with */
    uint64_t begin_epoch, begin_step;
};

/* The bytes that the server puts into the places of an epoch. */
struct epoch_header {
    struct epoch_header *next;
    uint64_t epoch;
    uint64_t total, have;
    uint8_t bytes[];
};

/* The oldest step that some trainer may still lack of a dead server's lane, and the groups it had.
 */
struct kept {
    bool is_known;
    bool is_end; /* the epoch's end, and `step` the number of its steps */
    uint64_t epoch, step;
    uint32_t groups_present, groups_gone;
    uint64_t generation; /* of that server, or of a later one that gave out nothing */
};

enum { READER_TEXT_BYTES = 2048 };

struct tundish_reader {
    tundish_reader *next; /* of all in this process */
    uint64_t process;     /* fork.c */

    char path[TND_SOCKET_PATH_BYTES];
    char stream[TND_NAME_BYTES], session[TND_NAME_BYTES], group[TND_NAME_BYTES];
    uint32_t replica;
    bool checks;
    int64_t server_timeout_ns;
    int64_t spin_ns;     /* as the caller asked; 0: by default */
    uint32_t vain_spins; /* by default, one after the other */
    int descriptor;      /* epoll of socket and event; -1: tundish_descriptor was not called */

    /* Guards releases, mappings, the list of attachments, and changes to has_started, epoch, step
     * and final, which siblings read. The rest belongs to the thread that calls tundish_next. */
    pthread_mutex_t lock;
    struct attachment *attachments; /* the first is the present one */
    uint32_t kept_count; /* batches that keep.c made the caller's; they keep the reader */
    bool is_closed;
    struct tnd_spec spec;

    bool has_started; /* it stands somewhere: it was opened at a place, or has returned something */
    bool in_epoch;    /* something of `epoch` was returned */
    bool is_at_end;   /* its end was told as NO_VALUE and is still to be passed */
    bool passes_end;  /* the first entry, if that is an epoch's end */
    bool restart_is_due;  /* asked for before anything said where the reader stands */
    bool is_gone_told;    /* E_SERVER_GONE was returned: attach again at the next call */
    uint64_t epoch, step; /* the next one wanted; all before it is passed over */
    uint64_t sequence;
    uint64_t place_bytes; /* that the epoch of the last batch has; see tnd_slot */
    uint64_t place_epoch; /* that epoch */
    struct kept kept;
    bool awaits_siblings; /* some may still read what the dead server left */
    struct kept told;     /* to the server, while they do: the lowest step that all have had */
    struct epoch_header *epochs; /* newest first */

    bool is_lost_pending; /* a replica was lost: to be told once */
    char lost_text[READER_TEXT_BYTES];
    tundish_status final; /* OK: none; else told from now on */
    char final_text[READER_TEXT_BYTES];

    bool has_queue; /* the server's answer to ASK_QUEUE is here */
    tundish_status queue_status;
    struct tnd_queue queue;

    bool has_standing; /* so is the answer to ASK_STANDING */
    tundish_status standing_status;
    uint64_t standing_number;
    struct tnd_standing standing;
};

/* fork.c: does this reader belong to this process? */
bool tnd_reader_is_ours(const tundish_reader *reader);
tundish_status tnd_reader_check(const tundish_reader *reader); /* E_ARGUMENT if not */
tundish_status tnd_reader_register(tundish_reader *reader);
/* Call `look` for each reader of this process. None comes or goes meanwhile. The caller must not
 * hold a reader's lock: `look` may take it. */
void tnd_reader_each(void (*look)(tundish_reader *reader, void *user), void *user);
void tnd_reader_unregister(tundish_reader *reader);

/* open.c: after it was closed and its last kept batch is released. */
void tnd_reader_free(tundish_reader *reader);

/* attachment.c: connect, shake hands, map. Waits for a server until the deadline. */
tundish_status tnd_reader_attach(tundish_reader *reader, bool is_survivor, int64_t deadline_ns);
/* Close the connection, keeping the mappings. The reader's lock is held, here and below. */
void tnd_attachment_hang_up(struct attachment *attachment);
void tnd_attachment_close(struct attachment *attachment); /* accepts a half-open one */
/* Close each old attachment of which no batch is held. */
void tnd_reader_tidy(tundish_reader *reader);
/* The record of a slot's batches. */
tundish_status tnd_reader_open_held(struct attachment *attachment, uint32_t index,
                                    struct held **ret_held);
void tnd_reader_close_held(struct held *held); /* accepts NULL and a half-open one */

/* mapping.c: map a segment and add it to the attachment's. Takes the reader's lock. */
tundish_status tnd_mapping_open(struct attachment *attachment, uint32_t id, int descriptor,
                                uint64_t segment_bytes);
/* The reader's lock is held. The present mapping of a segment, or NULL. */
struct mapping *tnd_mapping_find(const struct attachment *attachment, uint32_t id);
/* Remove it from the attachment's: the last batch in it unmaps it. */
void tnd_mapping_retire(struct attachment *attachment, struct mapping *mapping);
/* Map the same segment again, for the batches to come, and retire this mapping. */
tundish_status tnd_mapping_renew(struct attachment *attachment, struct mapping *mapping);
void tnd_mapping_drop(struct mapping *mapping); /* one user less; accepts NULL */

/* messages.c: take the server's messages. Sets is_gone on a hang-up. */
tundish_status tnd_reader_listen(tundish_reader *reader);
/* The same, after waiting for a message. E_TIMEOUT: none came. E_SERVER_GONE: the server is gone,
 * and all its messages were taken before this call. */
tundish_status tnd_reader_listen_for(tundish_reader *reader, int64_t timeout_ns);
/* Wait for the epoch's header, which the server sends before it publishes the epoch's first batch.
 */
tundish_status tnd_reader_await_epoch(tundish_reader *reader, uint64_t epoch);
/* The newest complete header that is not later than the epoch, or NULL. */
const struct epoch_header *tnd_reader_find_header(const tundish_reader *reader, uint64_t epoch);
/* Make room for an epoch's header of `total` bytes, which will follow. NULL: no memory. */
struct epoch_header *tnd_reader_add_epoch(tundish_reader *reader, uint64_t epoch, uint64_t total);

/* kept.c: the server is gone. Note which steps its lane still holds. A server that published
 * nothing leaves the note about its predecessor as it is. */
void tnd_reader_note_kept(tundish_reader *reader);

bool tnd_reader_kept_before(const struct kept *kept, const struct kept *other);

/* siblings.c: the lowest step that a reader of this process still lacks in this reader's session.
 * False: some of the groups' trainers are in another process, or one does not know what it lacks.
 */
bool tnd_siblings_lowest(const tundish_reader *reader, const struct kept *groups,
                         struct kept *ret_lowest);
/* Before the reader sleeps: tell the new server how far all are that are not back yet. */
void tnd_siblings_tell(tundish_reader *reader);

/* standing.c: where does it stand before its first batch? E_TIMEOUT: nothing tells yet. */
tundish_status tnd_reader_find_start(tundish_reader *reader);
/* Set the next batch wanted. */
void tnd_reader_stand(tundish_reader *reader, uint64_t epoch, uint64_t step);
/* The server is gone. A reader that had nothing from it stands where its lane began, if it was told
 * that. */
void tnd_reader_stand_at_begin(tundish_reader *reader);

/* messages.c: no batch comes any more: every later call returns this status. */
void tnd_reader_set_final(tundish_reader *reader, tundish_status status, const char *text,
                          size_t byte_count);
tundish_status tnd_reader_tell_final(const tundish_reader *reader);

/* The words that the server writes for this reader alone. */
static inline const struct tnd_line *
tnd_own_line(const struct attachment *attachment)
{
    return tnd_view_line(&attachment->view, attachment->line);
}

/* await.c: wait until the line has an entry that the reader has not passed. */
tundish_status tnd_reader_await_entry(tundish_reader *reader, int64_t deadline_ns);
/* E_DETACHED: the server has cut the reader's group off. */
tundish_status tnd_reader_take_detachment(tundish_reader *reader);
/* E_SERVER_GONE: nothing more comes from this server. The next call attaches again. */
tundish_status tnd_reader_tell_gone(tundish_reader *reader);

/* restart.c: the first entry is here, for a restart that is due, or an end to be passed. */
tundish_status tnd_reader_restart_at(tundish_reader *reader, const struct tnd_slot *slot);

/* begin.c: a reader without a place was attached: begin where the WELCOME says. */
void tnd_reader_begin(tundish_reader *reader);
/* The server's FROM has come. */
tundish_status tnd_reader_take_from(tundish_reader *reader, uint64_t epoch, uint64_t position);
/* Wait for it, if it is to come. */
tundish_status tnd_reader_await_from(tundish_reader *reader, int64_t deadline_ns);
/* Where it begins, or, as long as it is not told that, where its predecessor stood. */
void tnd_reader_first(const tundish_reader *reader, uint64_t *ret_epoch, uint64_t *ret_step);

/* release.c: give an entry of the line back. The reader's lock is held. */
void tnd_release_entry(struct attachment *attachment, uint64_t entry, uint32_t index);
/* An epoch's end is given back with the first batch after it. Until then a trainer that dies may
 * have a successor at a place before the end, and that successor must find the end in the lane. */
void tnd_release_end(struct attachment *attachment);
/* Count what is given back without a gap, or with one that the server made, and tell the server. */
void tnd_release_advance(struct attachment *attachment);
/* Slots of the present lane that the server can fill before it needs one that this reader holds. */
uint32_t tnd_reader_ahead_count(tundish_reader *reader); /* takes the reader's lock */

/* claim.c: make claims from now on, where the server wants them. */
void tnd_claim_begin(struct attachment *attachment);
/* Claim the next entry. Not ours: the server has taken it back, and the reader now stands behind
 * what it took. */
tundish_status tnd_reader_claim(tundish_reader *reader, bool *ret_is_ours);

/* keep.c: free the memory of a kept batch whose mapping stays for others. */
void tnd_keep_free_pages(const struct held *held);
void tnd_release_wake(struct attachment *attachment);

/* standing.c: the place of the next batch, as bytes that the caller frees. With `may_ask` a queue's
 * server is asked. Without it the place carries a header that is true at reader->kept as well. */
tundish_status tnd_reader_place(tundish_reader *reader, bool may_ask, uint8_t **ret_bytes,
                                uint64_t *ret_count);

#endif
