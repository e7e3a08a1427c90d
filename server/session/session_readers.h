/* session_readers.h - metrics of a session's readers: a set for each trainer, and one for each
 * group.
 *
 * Trainers come and go; a set whose owner is gone is reused for another.
 */
#ifndef SESSION_SESSION_READERS_H
#define SESSION_SESSION_READERS_H

#include "deliver/feed.h"
#include "stats/stats_writer.h"

struct session;
struct session_reader_line;
struct session_group_line;

struct session_readers {
    struct session_reader_line *lines;
    struct session_group_line *groups;
    uint32_t count, group_count;
    struct feed_reader_stats *seen; /* as feed_stats last gave them */
    uint32_t capacity;
};

/* Look at all readers of the session. */
void session_readers_show(struct session *session);
void session_readers_close(struct session_readers *readers, struct stats *stats);

#endif
