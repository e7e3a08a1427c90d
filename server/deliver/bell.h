/* bell.h - what a thread of the server sleeps on until some lane has room again.
 *
 * One bell serves any number of lanes; one thread waits at it. Trainers ring it after a release,
 * but only while somebody waits (a flag in each lane's header), so that a busy server costs them no
 * system call; other threads of the server ring it with bell_ring when they have finished a batch.
 */
#ifndef DELIVER_BELL_H
#define DELIVER_BELL_H

#include <stdbool.h>
#include <stdint.h>

#include "tundish/tundish.h"

struct bell;

tundish_status bell_open(struct bell **ret_bell);
void bell_close(struct bell *bell); /* after every lane on it; accepts NULL */

/* Let bell_wait return, now or at its next call. Any thread; a system call only if someone waits.
 */
void bell_ring(struct bell *bell);

/* Wait until something happened since the last return of bell_wait on this bell: a slot released, a
 * trainer out of batches, a consumer come or gone, bell_ring. Looks for spin_ns first, then sleeps
 * up to timeout_ns (-1: for ever). Returns false when the time was up. The caller then tries what
 * it could not do before; being called for nothing is harmless. */
bool bell_wait(struct bell *bell, int64_t spin_ns, int64_t timeout_ns);

#endif
