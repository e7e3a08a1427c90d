/* wakeup.h - lets a thread of the server sleep until a lane has room again.
 *
 * One wakeup serves any number of lanes; one thread waits for it. Trainers write to it after a
 * release, but only while a thread waits (a flag in each lane's header), so that a busy server
 * costs them no system call; other threads of the server signal it with wakeup_signal when they
 * have finished a batch.
 */
#ifndef DELIVER_WAKEUP_H
#define DELIVER_WAKEUP_H

#include <stdbool.h>
#include <stdint.h>

#include "tundish/tundish.h"

struct wakeup;

tundish_status wakeup_open(struct wakeup **ret_wakeup);
void wakeup_close(struct wakeup *wakeup); /* after every lane on it; accepts NULL */

/* Let wakeup_wait return, now or at its next call. Any thread. A system call only if a thread
 * waits. */
void wakeup_signal(struct wakeup *wakeup);

/* Wait until something has happened since the last return of wakeup_wait on this wakeup: a slot was
 * released, a trainer ran out of batches, a consumer came or went, or wakeup_signal was called.
 * Polls for spin_ns first, then sleeps for up to timeout_ns (-1: without limit). Returns false on
 * timeout. The caller then tries again; a spurious return is harmless. */
bool wakeup_wait(struct wakeup *wakeup, int64_t spin_ns, int64_t timeout_ns);

#endif
