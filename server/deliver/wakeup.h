/* wakeup.h - lets a thread of the server sleep until some lane has room again.
 *
 * One wakeup serves any number of lanes; one thread waits for it. Trainers write to it after a
 * release, but only while somebody waits (a flag in each lane's header), so that a busy server
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

/* Let wakeup_wait return, now or at its next call. Any thread; a system call only if someone waits.
 */
void wakeup_signal(struct wakeup *wakeup);

/* Wait until something happened since the last return of wakeup_wait on this wakeup: a slot
 * released, a trainer out of batches, a consumer come or gone, wakeup_signal. Looks for spin_ns
 * first, then sleeps up to timeout_ns (-1: for ever). Returns false when the time was up. The
 * caller then tries what it could not do before; being called for nothing is harmless. */
bool wakeup_wait(struct wakeup *wakeup, int64_t spin_ns, int64_t timeout_ns);

#endif
