/* session_vocabularies.h - metrics of each vocabulary of a session, by its name.
 *
 * Each thread counts in sets of its own; how large a vocabulary is stands in one of the stream's.
 */
#ifndef SESSION_SESSION_VOCABULARIES_H
#define SESSION_SESSION_VOCABULARIES_H

#include "batch/evaluate.h"
#include "plan/plan_node.h"

struct session;

struct vocabulary_line {
    char *name;
    struct tnd_stats_vocabulary *values;
};

struct vocabulary_lines {
    struct vocabulary_line *list; /* a name is there once, whatever stages use it */
    uint32_t count;
};

/* Lines that say how large each is. */
void session_vocabularies_describe(struct vocabulary_lines *lines, const struct session *session);

/* Lines for a thread, and in its counters which stage counts in which. */
void session_vocabularies_count(struct vocabulary_lines *lines, const struct session *session,
                                struct evaluation_counters *counters);

void session_vocabularies_close(struct vocabulary_lines *lines, struct stats *stats);

#endif
