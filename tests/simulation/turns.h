/* turns.h - threads that take turns, chosen by a seed.
 *
 * A program linked with turns has no threads of its own: pthread_create makes a coroutine, and
 * every lock, condition, sleep, futex, poll and look at the clock is a place where another may be
 * given its turn. The clock is made up: it goes on a little at each look, and when nobody can run
 * it jumps to the moment that somebody waits for. So a whole server with its trainers runs in one
 * thread, in an order that follows from the seed alone; if everybody waits and for nothing that
 * will come, that is known, and said.
 */
#ifndef SIMULATION_TURNS_H
#define SIMULATION_TURNS_H

#include <stdbool.h>
#include <stdint.h>

struct turn; /* one thread */

/* Run `director` as the first thread, until it returns; threads that have not ended then are
 * forgotten. */
void turns_run(uint64_t seed, void (*director)(void *argument), void *argument);

/* For use within: */
uint64_t turns_draw(uint64_t below);
int64_t turns_now_ns(void);
void turns_sleep(int64_t ns);

struct turn *turns_start(void (*run)(void *argument), void *argument);
bool turns_has_ended(const struct turn *turn);

/* Never let it run again, if it holds no lock just now; else false. */
bool turns_kill(struct turn *turn);

/* The same for all that pthread_create made. They may hold locks while they sleep: nobody will take
 * those. Whoever joins them finds that they have ended. */
bool turns_kill_threads(void);

#endif
