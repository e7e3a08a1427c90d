/* snapshot.h - all metrics of one server at one moment, for the programs that show them.
 *
 * A SET of the file (shm/stats.h) is written by one thread; here sets of the same kind and labels
 * are added up, so that a figure is what the server did, not what one of its threads did.
 */
#ifndef TND_WATCH_SNAPSHOT_H
#define TND_WATCH_SNAPSHOT_H

#include "shm/stats.h"

struct watch_histogram {
    uint64_t buckets[TND_STATS_BUCKETS];
    uint64_t sum_ns;
};

/* The values of one kind and one set of labels. */
struct watch_set {
    uint32_t number; /* in the snapshot */
    const struct tnd_stats_kind_entry *kind;
    const char *labels;
    uint64_t *values;                   /* by field; a histogram's is its count */
    struct watch_histogram *histograms; /* of the fields that are histograms, in their order */
};

struct watch_note {
    uint64_t number;
    uint32_t level;
    int64_t wall_ns;
    char text[TND_STATS_NOTE_BYTES];
};

struct watch_snapshot {
    struct tnd_stats_file copy; /* its own, without a descriptor */
    int64_t taken_ns;           /* CLOCK_MONOTONIC */
    uint32_t set_count;
    struct watch_set *sets; /* by kind, in the order they were first made */
};

/* Read the file as it is now. As tnd_stats_read. */
tundish_status watch_snapshot_open(struct tnd_stats_file *file,
                                   struct watch_snapshot *ret_snapshot);
void watch_snapshot_close(struct watch_snapshot *snapshot); /* accepts zeros */

/* Has the server stopped in good order, or does it deliver what is left before it does? */
bool watch_is_finished(const struct watch_snapshot *snapshot);
bool watch_is_stopping(const struct watch_snapshot *snapshot);

/* The time since a living server's last sign of life; for another node, its metrics' age. */
uint64_t watch_silent_ns(const struct watch_snapshot *snapshot, int64_t now_ns);

/* Has this node's server missed several signs of life? Never said of other nodes: their values
 * arrive through a relay, which may be late while they are well. */
bool watch_is_hung(const struct watch_snapshot *snapshot, int64_t now_ns);

/* The next set of a kind after `previous` (NULL: from the start), or NULL. */
const struct watch_set *watch_next(const struct watch_snapshot *snapshot, const char *kind,
                                   const struct watch_set *previous);

/* A set of that kind and labels, or NULL. */
const struct watch_set *watch_find(const struct watch_snapshot *snapshot, const char *kind,
                                   const char *labels);

/* The same set in another snapshot, or NULL. */
const struct watch_set *watch_again(const struct watch_snapshot *snapshot,
                                    const struct watch_set *set);

/* A field's value, 0 if the field does not exist. */
uint64_t watch_value(const struct watch_set *set, const char *field);

/* That of a field, which is a histogram. */
const struct watch_histogram *watch_histogram_of(const struct watch_set *set, uint32_t field);

/* The growth of a counter between two snapshots; a new one began at 0. */
uint64_t watch_growth(const struct watch_snapshot *before, const struct watch_set *now,
                      const char *field);

/* The same of a histogram: the observations in between. False: the field does not exist. */
bool watch_observed(const struct watch_snapshot *before, const struct watch_set *now,
                    const char *field, struct watch_histogram *ret_grown);

/* The duration in ns below which `share` of the observations lie, as if each bucket's were spread
 * evenly. 0: there are none. */
uint64_t watch_quantile_ns(const struct watch_histogram *histogram, double share);

/* A label's value, quoted as it is, or "". */
void watch_label(const struct watch_set *set, const char *key, char *text, size_t text_bytes);

/* Does it belong to that session (a set of kind "stream")? */
bool watch_is_of(const struct watch_set *set, const struct watch_set *session);

/* A document by name; `stream` "" for the server's own. NULL: none. */
const struct tnd_stats_text_entry *watch_text(const struct watch_snapshot *snapshot,
                                              const char *name, const char *stream);

/* Notes from number `from` on, the oldest first; returns how many were filled in. */
uint32_t watch_notes(const struct watch_snapshot *snapshot, uint64_t from, struct watch_note *notes,
                     uint32_t capacity);

#endif
