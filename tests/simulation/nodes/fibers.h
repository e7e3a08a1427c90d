/* fibers.h - the threads of thousands of servers as coroutines, in made-up time.
 *
 * A program linked with fibers has no threads of its own: pthread_create makes a fiber of the node
 * whose fiber calls it. A fiber runs until it waits for a condition, a thread or a moment. Then the
 * one whose moment is next runs, and the clock goes on to that moment: computing takes no time. So
 * a lock is never held by a fiber that does not run, except across a wait, which is found.
 *
 * turns.h, beside this folder, is for a few threads that may change at any look at the clock. Here
 * there are many, and what takes its time is the network between them.
 */
#ifndef SIMULATION_FIBERS_H
#define SIMULATION_FIBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIBERS_NOBODY UINT32_MAX /* the node of what is not a server */

/* Run `director` as a fiber of nobody until it returns. Those that have not ended are forgotten. */
void fibers_run(uint64_t seed, uint32_t nodes, void (*director)(void *argument), void *argument);

/* For use within: */
uint64_t fibers_draw(uint64_t below);
int64_t fibers_now_ns(void);
void fibers_sleep(int64_t ns);
void fibers_start(uint32_t node, void (*run)(void *argument), void *argument);

/* No fiber of the node runs, until it goes on. */
void fibers_stop(uint32_t node);
void fibers_go_on(uint32_t node);

/* Of node 0, on this machine: what its fibers have computed for, without what fibers themselves
 * take, and the network. 0 unless the meter was switched on before they run. */
void fibers_meter(void);
int64_t fibers_first_cpu_ns(void);

/* What is allocated (memory.h) and computed until this fiber waits is that node's. Returns whose it
 * was. */
uint32_t fibers_charge(uint32_t node);
uint32_t fibers_charged(void);

#endif
