/* session_stats.h - a session's metrics, and keeping them up to date. */
#ifndef SESSION_SESSION_STATS_H
#define SESSION_SESSION_STATS_H

#include "batch/evaluate.h"
#include "deliver/feed.h"
#include "plan/plan_node.h"
#include "session/fill.h"
#include "session/health.h"
#include "session/session_readers.h"
#include "session/session_vocabularies.h"

struct session;

struct session_lane_counters {
    struct tnd_stats_lane *values;
    struct tnd_stats_encoding *encodings[LANE_ENCODINGS]; /* NULL: not used so far */
};

struct session_stats {
    struct stats *stats;
    struct tnd_stats_stream *stream;
    struct session_lane_counters *lanes;
    struct session_readers readers;
    struct tnd_stats_compression *compression;
    struct vocabulary_lines vocabularies;
    struct health health;
};

/* The metrics of one thread that makes content. */
struct worker_stats {
    struct evaluation_counters evaluation;
    struct tnd_stats_thread *thread;
    struct vocabulary_lines vocabularies;
};

/* Label this session's sets: with the stream, and with the session if it has a name. */
void session_stats_label(char labels[TND_STATS_LABEL_BYTES], const struct session *session);

/* Sets for the stream and its lanes; the pipeline file and the plan as texts. */
void session_stats_open(struct session *session, struct stats *stats);
void session_stats_close(struct session *session);

/* How batches are stored, and why: once lanes have their size, for slices of these bytes and an
 * arena of at most `arena_allowed`. */
void session_stats_compression(struct session *session, const struct lane_config *lane,
                               const struct slice_bytes *slice, uint64_t arena_allowed);

/* Sets for a thread ("content 3"); the dealing one, "order", has some for the order's stages, too.
 */
void session_worker_stats_open(struct worker_stats *counters, const struct session *session,
                               const char *thread);
void session_worker_stats_close(struct worker_stats *counters, const struct session *session);

#endif
