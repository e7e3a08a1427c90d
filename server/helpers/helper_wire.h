/* helper_wire.h - the bytes between a server and a helper: a TCP connection for each part that is
 * under way, so that a helper may die, stall and come back without anyone else noticing.
 *
 *   helper -> server   its greeting and a number of its own
 *   server -> helper   its number, a proof, and the stream: struct helper_hello, which the proof
 *                      covers
 *   helper -> server   a proof
 *   then, sealed (helper_seal.h)
 *   server -> helper   codecs
 *   helper -> server   whether it has that stream: struct helper_reply, and a sentence
 *   then, again and again
 *   server -> helper   struct helper_ask, files and paths that are new, the references
 *   helper -> server   struct helper_answer, and the columns or a sentence
 *
 * Both prove by HMAC-SHA256 that they know the job's key, which is never sent. All that comes after
 * that is sealed, so who is between them can read it, and end it, but change nothing. Each message
 * has one seal; a head has its own, so that no length is believed that was changed. Neither end
 * trusts the other for all that: a helper checks that references lie in what it has, a server that
 * an answer fits the rows it asked for. Messages are not encrypted, nor are MPI's own.
 */
#ifndef HELPERS_HELPER_WIRE_H
#define HELPERS_HELPER_WIRE_H

#include <stdatomic.h>
#include <sys/uio.h>

#include "core/bytes.h"
#include "core/codec.h"
#include "helpers/helper_seal.h"
#include "plan/plan.h"
#include "session/checkpoint/place_files.h"

enum {
    HELPER_PROOF_BYTES = 32,
    HELPER_GREETING_BYTES = 16,
    HELPER_KEY_BYTES_MIN = 16,
    HELPER_NAME_BYTES = 256, /* of a stream */
    HELPER_TEXT_BYTES = 1024,
    HELPER_COLUMNS_MAX = 65536,
    HELPER_THREADS_MAX = 65536
};

/* An ask, and each slice of an answer, have no more bytes than these. */
#define HELPER_ASK_BYTES (UINT64_C(64) << 20)
#define HELPER_ANSWER_BYTES (UINT64_C(1) << 30)

#define HELPER_NO_NODE UINT32_MAX

extern const char helper_greeting[HELPER_GREETING_BYTES];

/* The stream. How its columns are stored is said next: `columns` codecs, twice if `has_packed`. */
struct helper_hello {
    uint64_t identity; /* helper_identity */
    uint64_t root_seed;
    uint32_t worker, worker_count, replicas;
    uint32_t columns;
    uint32_t has_packed;
    uint32_t reserved;
    char stream[HELPER_NAME_BYTES];
};

/* Not OK: a sentence of `text_bytes` follows. */
struct helper_reply {
    int32_t status;
    uint32_t threads; /* parts that it makes at a time */
    uint32_t text_bytes;
    uint32_t reserved;
};

struct helper_ask {
    uint64_t number;
    uint64_t bytes;      /* that follow */
    uint64_t rows;       /* in place */
    uint32_t name_count; /* struct helper_name each, before the references */
    uint8_t packed, in_place;
    uint8_t reserved[2];
    uint32_t more; /* slices of the same batch; after the references a byte each: is it packed? */
    uint32_t reserved_too;
};

/* A file or a path that references name by a number; its name follows. */
struct helper_name {
    uint32_t node; /* of the source, plan_node.index; HELPER_NO_NODE: a file's sum, named before */
    uint32_t number;
    uint64_t size; /* of the file, where that is known; UINT64_MAX: it is not */
    uint64_t sum;  /* of its content (source/files/content_sum.h); 0: not known yet */
    uint64_t name_bytes;
};

/* OK: the columns follow, `bytes` of them (of whole slices: all their heads, and then the buffers
 * of one after the other), the sentence about the last row that was left out, and the files that
 * rows name (helper_reads.h); else a sentence. */
struct helper_answer {
    uint64_t number;
    uint64_t bytes;
    uint64_t busy_ns; /* that making them took */
    uint64_t skipped; /* rows left out */
    int32_t status;
    uint32_t skipped_bytes;
    uint32_t flags; /* enum helper_flag */
    uint32_t reads_bytes;
};

enum helper_flag {
    HELPER_HAS_SAME_FILES = 1, /* all that records were read of has the server's sums */
    HELPER_HAS_OTHER_FILE = 2, /* a file that was named has not; the sentence says which */
};

/* The job's key: $TUNDISH_HELPER_KEY. E_ARGUMENT: there is none, or it is too short. */
tundish_status helper_key(struct byte_view *ret_key);

/* The proof of the parts; one side's differs from the other's by `who`. */
void helper_prove(struct byte_view key, const char *who, const struct iovec *parts, int count,
                  uint8_t ret_proof[HELPER_PROOF_BYTES]);
bool helper_is_proof(const uint8_t *proof, const uint8_t *told);
tundish_status helper_draw(uint8_t ret_nonce[HELPER_NONCE_BYTES]);

/* One that nobody can foresee, below `bound`. */
uint32_t helper_draw_below(uint32_t bound);

/* Both sides must have the same version, stages, seeds, replicas, and content of files. */
uint64_t helper_identity(const struct plan *plan, const struct place_files *files);

/* A connection. Waits end at the deadline, or when *stop (may be NULL) is not 0. */
struct helper_wire {
    int socket; /* does not block; -1: closed */
    int64_t deadline_ns;
    const _Atomic int *stop;
    uint64_t sent_bytes, received_bytes;
    bool is_sealed;
    struct helper_seals seals;
};

/* Both ends have proved that they know the key: from now on messages are sealed. */
void helper_wire_seal(struct helper_wire *wire, struct byte_view key,
                      const struct helper_nonces *nonces, bool is_server);

/* HOST:PORT; an address with colons stands in brackets. The caller frees *ret_found. */
struct addrinfo;
tundish_status helper_address(const char *address, bool is_passive, struct addrinfo **ret_found);

void helper_wire_ready(int socket);
tundish_status helper_wire_writable(const struct helper_wire *wire);
tundish_status helper_wire_readable(const struct helper_wire *wire);

/* A message, whose pieces the other end may cut otherwise. E_CORRUPT: it is not the one that was
 * sent. */
tundish_status helper_send(struct helper_wire *wire, const struct iovec *pieces, int count);
tundish_status helper_receive(struct helper_wire *wire, const struct iovec *pieces, int count);

/* A message of as many bytes as the other side has stated, in place of what is in `to`. Memory is
 * taken as they come, so that a lie costs little. */
struct portable_bytes;
tundish_status helper_receive_stated(struct helper_wire *wire, uint64_t bytes,
                                     struct portable_bytes *to);

/* Nothing is expected on it: is the other side still there? */
tundish_status helper_wire_check(const struct helper_wire *wire);
void helper_wire_close(struct helper_wire *wire);

/* The columns of a whole slice, as they lie in its slot: a head of as many bytes for each slice of
 * a stream, and the buffers. */
struct slot;
uint64_t helper_head_bytes(const struct slot *slot);
void helper_write_head(const struct slot *slot, struct portable_bytes *to);

/* Take such columns from both views: sets shapes, sizes, codecs, and where the buffers lie.
 * E_CORRUPT: they are none of these columns, or do not fit together. */
struct fill;
tundish_status helper_read_columns(const struct fill *fill, struct byte_view *heads,
                                   struct byte_view *buffers, struct slot *slot);

#endif
