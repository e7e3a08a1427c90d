/* stats_writer.h - the server's metrics, written where others read them (shm/stats.h).
 *
 * A thread that counts asks once for a set of its kind and then stores into it: no lock, no call.
 * Sets are added from any thread; each is written by one.
 */
#ifndef STATS_STATS_WRITER_H
#define STATS_STATS_WRITER_H

#include "core/log.h"
#include "shm/stats.h"

struct stats;

/* Make PATH.stats for the server at `socket_path`; a dead server's file is replaced.
 * `thread_count`: for how many threads there is room. */
tundish_status stats_open(const char *socket_path, uint32_t thread_count, struct stats **ret_stats);

/* The server's own set. */
struct tnd_stats_server *stats_server(struct stats *stats);

/* The file's name goes; a process that has it open reads that the server has stopped, unless it
 * never served. Accepts NULL. */
void stats_close(struct stats *stats);

void stats_show_state(struct stats *stats, enum tnd_stats_state state);

/* A set of values, zeros, under labels made with stats_label. Never NULL: when the file is full,
 * it is memory that nobody sees. Lives as long as `stats`. */
void *stats_add(struct stats *stats, enum tnd_stats_kind kind, const char *labels);

/* Release the set; its slot may be reused by another set of the same kind. Accepts NULL. */
void stats_drop(struct stats *stats, void *values);

/* A document for people: "pipeline", "plan". One of a name and stream is kept, the first: all
 * sessions of a stream have the same. */
void stats_add_text(struct stats *stats, const char *name, const char *stream, const char *text);

/* The track on which a thread notes its work. Never NULL, as stats_add. */
struct tnd_stats_track_entry *stats_add_track(struct stats *stats, const char *stream,
                                              const char *thread);

void stats_drop_track(struct stats *stats, struct tnd_stats_track_entry *track);

/* The number by which an event names a set that stats_add gave. */
uint64_t stats_offset(const struct stats *stats, const void *values);

/* Append key="value" to labels, quoted as Prometheus wants it; a value that is too long ends in a
 * hash of the whole. There is room for three such, and for short ones beside them. */
void stats_label(char labels[TND_STATS_LABEL_BYTES], const char *key, const char *value);
void stats_label_number(char labels[TND_STATS_LABEL_BYTES], const char *key, uint64_t value);

/* Called by the thread of the track: an interval of its work. */
static inline void
stats_event(struct tnd_stats_track_entry *track, int64_t begin_ns, int64_t end_ns, uint64_t what,
            uint64_t detail)
{
    uint64_t number = tnd_stats_get(&track->written);
    struct tnd_stats_event *event = &track->events[number % TND_STATS_EVENTS];

    tnd_stats_set(&event->begin_ns, (uint64_t)begin_ns);
    tnd_stats_set(&event->end_ns, (uint64_t)end_ns);
    tnd_stats_set(&event->what, what);
    tnd_stats_set(&event->detail, detail);
    atomic_store_explicit(&track->written, number + 1, memory_order_release);
}

#endif
