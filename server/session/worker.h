/* worker.h - a thread that makes parts of steps, and how long it waits. */
#ifndef SESSION_WORKER_H
#define SESSION_WORKER_H

#include <pthread.h>

#include "batch/evaluate.h"
#include "session/session_stats.h"
#include "session/step.h"

/* The reason why a worker without work waits. */
enum worker_wait { WAITS_FOR_NOTHING, WAITS_FOR_SLOTS, WAITS_FOR_STEPS };

struct worker {
    struct session *session;
    struct evaluation evaluation;
    struct budget_task memory; /* of the part being made */
    struct tnd_codec_context *context;
    pthread_t thread;
    bool started;
    int64_t now_ns;         /* as last read: one reading ends a thing and begins the next */
    int64_t part_ns;        /* the recent average for a part */
    int64_t part_waited_ns; /* how long it waited for room */
    enum worker_wait waits;
    int64_t waits_since_ns;
    struct worker_stats counters;
    uint64_t *expected_bytes; /* of the columns of the last whole slice; NULL: none was made */
    bool expects;             /* the slice before that one took as many */
    uint64_t skipped; /* of evaluation.skipped, those accounted for; under the session's lock */
};

/* The worker waited, for slots or for steps. */
void worker_count_wait(struct worker *worker, bool for_slots, int64_t began_ns, int64_t ended_ns);

/* From now on the worker waits for this, or for nothing. A wait lasts from the end of the last part
 * to the next part, however often the worker looked in between, so looking reads no clock. */
void worker_note_wait(struct worker *worker, enum worker_wait waits);

/* Make the part, without the ring's lock. The caller resets the worker's scratch afterwards. */
tundish_status session_make_part(struct worker *worker, const struct part *part);

/* Reserve the slot of a whole slice, once its sizes are stated in the slot. */
tundish_status session_reserve_whole(struct worker *worker, struct share *share, uint32_t replica);

#endif
