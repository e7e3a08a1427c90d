/* health.h - the values of delivered columns, looked at ten times a second.
 *
 * A thread that has just made rows looks at some values of them while they are in its cache: NaN,
 * infinities, zeros, lengths. Which rows these are depends on time, so the figures are samples.
 */
#ifndef SESSION_HEALTH_H
#define SESSION_HEALTH_H

#include <stdatomic.h>

#include "batch/output.h"
#include "shm/stats.h"

struct session;
struct stats;

/* More columns than these are not looked at, and more values of one column in a look. */
enum { HEALTH_COLUMNS = 64, HEALTH_VALUES = 1024 };

struct health {
    struct tnd_stats_column *columns[HEALTH_COLUMNS];
    uint32_t count;
    uint64_t looks;
    _Atomic int64_t next_ns; /* of the next look; INT64_MAX: a thread looks now */
};

/* Sets for the columns of the session's stream. */
void health_open(struct health *health, const struct session *session);
void health_close(struct health *health, struct stats *stats);

/* Is a look due? Then the caller, and no other thread, calls health_look. */
static inline bool
health_is_due(struct health *health, int64_t now_ns)
{
    int64_t next_ns = atomic_load_explicit(&health->next_ns, memory_order_relaxed);

    return now_ns >= next_ns && health->count > 0 &&
           atomic_compare_exchange_strong_explicit(&health->next_ns, &next_ns, INT64_MAX,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* Look at the columns of rows that were made at this time. */
void health_look(struct health *health, const struct output_column *columns, int64_t now_ns);

/* One column: counts are added to its set. `look` numbers the looks, which see different values
 * where there are more than HEALTH_VALUES. */
void health_count(const struct output_column *column, uint64_t look,
                  struct tnd_stats_column *values);

#endif
