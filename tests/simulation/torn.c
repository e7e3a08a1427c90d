/* torn.c - a server that dies between any two steps of its threads, and not where they would end.
 */
#include "session/session_private.h"
#include "shm/ring.h"
#include "turns.h"

enum { MOMENT_NS = 1000000, SLEEP_NS = 20000000, SLEEPS_ONE_IN = 12 };

bool world_is_torn;

void tear_apart(struct session *session);
void __real_tnd_ring_publish(struct tnd_batches *batches, uint64_t published);
void __wrap_tnd_ring_publish(struct tnd_batches *batches, uint64_t published);

/* One lane shows it. The thread goes on to the next only later, or never. */
void
__wrap_tnd_ring_publish(struct tnd_batches *batches, uint64_t published)
{
    __real_tnd_ring_publish(batches, published);
    if (world_is_torn && turns_draw(SLEEPS_ONE_IN) == 0)
        turns_sleep((int64_t)turns_draw(SLEEP_NS));
}

void
tear_apart(struct session *session)
{
    while (!turns_kill_threads())
        turns_sleep((int64_t)turns_draw(MOMENT_NS));
    /* What they were making is not to be cancelled in the lanes, which may show it. */
    for (uint32_t i = 0; i < session->ring.count; i++) {
        struct step *step = ring_step(session, i);

        if (step->state == STEP_OPENING || step->state == STEP_PUBLISHING)
            step->state = STEP_OPEN; /* which no thread has any more */
        for (uint32_t r = 0; r < session->plan->replicas; r++)
            step->shares[r].reserved = false;
    }
    for (uint32_t i = 0; i < session->worker_count; i++)
        if (session->workers[i].memory.is_begun)
            budget_end(&session->workers[i].memory);
}
