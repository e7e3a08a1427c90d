/* stats.h - the metrics of a running server, in a file that other processes read.
 *
 * The file lies beside the socket, named PATH.stats, mode 0600. The server maps and writes it, all
 * others only read it. So a reader can neither stall nor disturb the server, and it can still read
 * when the server hangs or is dead. Every set of values has one writer, whole cache lines of its
 * own, and no lock.
 *
 *   header | notes | entries ...  ->      free      <- ... tracks
 *
 * Entries are appended and never move; tracks, which are large, grow down from the end. A KIND
 * entry describes fields (name, unit, type, meaning), a SET holds values of a kind under labels, a
 * TEXT is a document (the pipeline file, the plan), a TRACK holds a thread's last events. So a
 * reader needs to know only the frame, not the metrics. Counters only grow while the server lives.
 */
#ifndef TND_SHM_STATS_H
#define TND_SHM_STATS_H

#include <fcntl.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/magic.h"
#include "tundish/tundish.h"

#define TND_STATS_LINE 128

enum tnd_stats_type { TND_STATS_COUNTER = 1, TND_STATS_GAUGE = 2, TND_STATS_HISTOGRAM = 3 };
enum tnd_stats_unit { TND_STATS_NONE = 0, TND_STATS_SECONDS = 1, TND_STATS_BYTES = 2 };

/* Bucket i counts durations of at most 1024 << i ns (1 us, 2 us, ... 17 s). The last counts the
 * rest. */
enum { TND_STATS_BUCKETS = 26 };
struct tnd_stats_histogram {
    _Atomic uint64_t buckets[TND_STATS_BUCKETS];
    _Atomic uint64_t sum_ns;
};

/* stats.def's kinds as structures: struct tnd_stats_server, tnd_stats_stream ... */
#define STATS_MEMBER_COUNTER(field) _Atomic uint64_t field;
#define STATS_MEMBER_GAUGE(field) _Atomic uint64_t field;
#define STATS_MEMBER_HISTOGRAM(field) struct tnd_stats_histogram field;
#define STATS_KIND(kind, help) struct tnd_stats_##kind {
#define STATS_FIELD(kind, field, type, unit, help) STATS_MEMBER_##type(field)
#define STATS_KIND_END(kind)                                                                       \
    }                                                                                              \
    ;
#include "shm/stats.def"

enum tnd_stats_kind {
#define STATS_KIND(kind, help) TND_STATS_KIND_##kind,
#define STATS_FIELD(kind, field, type, unit, help)
#define STATS_KIND_END(kind)
#include "shm/stats.def"
    TND_STATS_KINDS
};

enum tnd_stats_state {
    TND_STATS_STARTING = 0,
    TND_STATS_SERVING = 1,
    TND_STATS_DRAINING = 2,
    TND_STATS_STOPPED = 3
};

/* The last log lines from warnings up. `sequence` is odd while a note is written. */
enum { TND_STATS_NOTES = 64, TND_STATS_NOTE_BYTES = 496 };
struct tnd_stats_note {
    _Atomic uint32_t sequence;
    uint32_t level; /* 0: error, 1: warning, 2: notice */
    int64_t wall_ns;
    char text[TND_STATS_NOTE_BYTES]; /* "event: sentence", ends with a NUL */
};

struct tnd_stats_header {
    _Atomic uint64_t magic; /* stored last */
    uint64_t file_bytes;
    uint64_t generation; /* random: differs after every server start */
    int64_t process;
    int64_t started_ns;      /* CLOCK_MONOTONIC */
    int64_t started_wall_ns; /* since 1970 */
    char version[32], node[64];
    _Atomic int64_t
        relayed_ns;         /* not 0: a copy of another node's, as it came in at this time here */
    int64_t relay_every_ns; /* and how often they come, about */
    alignas(TND_STATS_LINE) _Atomic uint64_t used_bytes; /* entries but tracks lie below */
    _Atomic uint64_t tracks_offset;                      /* tracks lie from here to the end */
    _Atomic uint64_t note_count;                         /* so far; note i is notes[i % NOTES] */
    _Atomic uint32_t state;                              /* enum tnd_stats_state */
    alignas(TND_STATS_LINE) struct tnd_stats_note notes[TND_STATS_NOTES];
};

enum tnd_stats_entry_type {
    TND_STATS_ENTRY_KIND = 1,
    TND_STATS_ENTRY_SET = 2,
    TND_STATS_ENTRY_TEXT = 3,
    TND_STATS_ENTRY_TRACK = 4
};

/* The rest of the entry follows, as its type says, within `entry_bytes`. */
struct tnd_stats_entry {
    uint64_t entry_bytes; /* to the next, a multiple of TND_STATS_LINE */
    uint32_t type;        /* enum tnd_stats_entry_type */
    uint32_t reserved;    /* zero */
};

struct tnd_stats_field {
    char name[32], help[100];
    uint32_t type, unit;
    uint32_t offset; /* in the values */
};

struct tnd_stats_kind_entry {
    struct tnd_stats_entry entry;
    char name[24], help[100];
    uint32_t field_count;
    struct tnd_stats_field fields[];
};

/* A value takes at most TND_STATS_VALUE_BYTES; a longer one ends in a hash of the whole. */
enum { TND_STATS_LABEL_BYTES = 612, TND_STATS_VALUE_BYTES = 176 };
struct tnd_stats_set_entry {
    struct tnd_stats_entry entry;
    uint64_t kind_offset;               /* of its kind's entry, in the file */
    _Atomic uint32_t live;              /* 0: the thing that it counts is gone */
    char labels[TND_STATS_LABEL_BYTES]; /* key="value",... as Prometheus escapes them */
    alignas(TND_STATS_LINE) unsigned char values[];
};

struct tnd_stats_text_entry {
    struct tnd_stats_entry entry;
    char name[16], stream[TND_STATS_VALUE_BYTES]; /* "pipeline" or "plan" (JSON), and whose; paths:
                                                   * "file", "root", "analysis" */
    uint64_t text_bytes;
    char text[];
};

/* A thread's events. Each is four words, all written before `written` counts it. */
enum { TND_STATS_EVENTS = 4096 };
struct tnd_stats_event {
    _Atomic uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
    _Atomic uint64_t what;   /* offset of a SET entry (a stage), or enum tnd_stats_doing */
    _Atomic uint64_t detail; /* a step's number, or a row count */
};
enum tnd_stats_doing {
    TND_STATS_MAKES_PART = 1,
    TND_STATS_WAITS_SLOT,
    TND_STATS_WAITS_ORDER,
    TND_STATS_DEALS,
    TND_STATS_WAITS_STEPS,
    TND_STATS_DOINGS
};

struct tnd_stats_track_entry {
    struct tnd_stats_entry entry;
    char stream[TND_STATS_VALUE_BYTES], thread[32];
    alignas(TND_STATS_LINE) _Atomic uint64_t written; /* events so far; i is events[i % EVENTS] */
    alignas(TND_STATS_LINE) struct tnd_stats_event events[TND_STATS_EVENTS];
};

/* The description of a kind, from stats.def. */
struct tnd_stats_description {
    const char *name, *help;
    const struct tnd_stats_field *fields;
    uint32_t field_count;
    size_t value_bytes;
};
const struct tnd_stats_description *tnd_stats_describe(enum tnd_stats_kind kind);

/* Nodes whose metrics rank 0 keeps beside its own, itself included. */
enum { TND_STATS_NODES = 1024 };

enum { TND_STATS_FILE_BYTES_MAX = 256 << 20 }; /* a server's file is never larger */

/* A metrics file, and a copy of it as it was at one moment. It is copied rather than mapped: so
 * nothing changes between check and use, and a truncated file does not raise SIGBUS. The results of
 * the calls below were checked against the copy's bounds, and their texts end with a NUL. */
struct tnd_stats_file {
    int descriptor;                  /* stays with the file when the server and its name go */
    uint64_t device, inode;          /* which file it is: a new server makes a new one */
    struct tnd_stats_header *header; /* the copy; NULL before the first tnd_stats_read */
    uint64_t byte_count, capacity;   /* of the copy */
    bool is_locked;                  /* by its server, when the copy was begun */
};

#define TND_STATS_FILE_NONE                                                                        \
    {                                                                                              \
        .descriptor = -1                                                                           \
    }

/* Open PATH.stats of the server at `socket_path`, or any such file. E_SERVER_GONE: there is none;
 * E_SYSTEM. */
tundish_status tnd_stats_open_server(const char *socket_path, struct tnd_stats_file *ret_file);
tundish_status tnd_stats_open_file(const char *path, struct tnd_stats_file *ret_file);
void tnd_stats_close(struct tnd_stats_file *file); /* accepts NONE */

/* Take a new copy. E_LAYOUT: of another version, damaged, or still being made; the copy is gone
 * then. E_MEMORY. */
tundish_status tnd_stats_read(struct tnd_stats_file *file);

/* Take a copy of all tracks, in malloc'ed memory that the caller frees. */
tundish_status tnd_stats_read_tracks(const struct tnd_stats_file *file,
                                     struct tnd_stats_track_entry **ret_tracks,
                                     uint32_t *ret_count);

/* The entry after `previous` (NULL: the first). NULL after the last entry, or at a malformed one.
 */
const struct tnd_stats_entry *tnd_stats_next(const struct tnd_stats_file *file,
                                             const struct tnd_stats_entry *previous);

/* Its kind if the entry is a set that is whole, else NULL. */
const struct tnd_stats_kind_entry *tnd_stats_kind_of(const struct tnd_stats_file *file,
                                                     const struct tnd_stats_entry *entry);

/* The lock that a server holds on its file: the kernel releases it when the server ends, however it
 * ends. A process number would mean nothing in another container. */
extern const struct flock tnd_stats_lock;

/* Is the server alive (it has not ended, and its lock is held, or it was heard of lately)? */
bool tnd_stats_is_alive(const struct tnd_stats_file *file);

static inline enum tnd_stats_state
tnd_stats_get_state(const struct tnd_stats_header *header)
{
    return (enum tnd_stats_state)atomic_load_explicit(&header->state, memory_order_relaxed);
}

static inline uint64_t
tnd_stats_get(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

/* For the one writer of a set: a load and a store, without a lock or a locked instruction. */
static inline void
tnd_stats_set(_Atomic uint64_t *value, uint64_t to)
{
    atomic_store_explicit(value, to, memory_order_relaxed);
}

static inline void
tnd_stats_add(_Atomic uint64_t *value, uint64_t amount)
{
    tnd_stats_set(value, tnd_stats_get(value) + amount);
}

/* The bucket of a duration, and a bucket's upper bound in ns (UINT64_MAX for the last). */
static inline unsigned
tnd_stats_bucket(uint64_t duration_ns)
{
    unsigned bits = duration_ns > 1024 ? 54 - (unsigned)__builtin_clzll(duration_ns - 1) : 0;

    return bits < TND_STATS_BUCKETS ? bits : TND_STATS_BUCKETS - 1;
}
uint64_t tnd_stats_bucket_ns(unsigned bucket);

static inline void
tnd_stats_observe(struct tnd_stats_histogram *histogram, uint64_t duration_ns)
{
    tnd_stats_add(&histogram->buckets[tnd_stats_bucket(duration_ns)], 1);
    tnd_stats_add(&histogram->sum_ns, duration_ns);
}

/* Copy counts that were collected elsewhere. */
static inline void
tnd_stats_copy(struct tnd_stats_histogram *histogram, const struct tnd_stats_histogram *from)
{
    for (unsigned i = 0; i < TND_STATS_BUCKETS; i++)
        tnd_stats_set(&histogram->buckets[i], tnd_stats_get(&from->buckets[i]));
    tnd_stats_set(&histogram->sum_ns, tnd_stats_get(&from->sum_ns));
}

#endif
