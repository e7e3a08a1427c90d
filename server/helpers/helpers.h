/* helpers.h - parts of steps that helpers make: processes of other machines with the same pipeline
 * file, which own no replicas.
 *
 * To the ring a helper is some more workers: each connection has a thread of the session, which
 * takes a part, sends its references, and writes the columns that come back into the slot. It does
 * so only while a trainer waits and all workers are busy. If the helper is lost, is late, refuses,
 * or answers with bytes that do not fit, the same thread makes the part, and leaves the helper
 * alone for a while. A part that a trainer waits for while workers have nothing to do is overtaken:
 * the same thread makes it, and drops the answer when it comes. So no step depends on a helper, and
 * the bytes under way are those of one part for each connection. If workers have nothing to do
 * while helpers have what a trainer waits for, connections rest.
 *
 * Now and then a part is made on both sides and compared. A helper that makes other bytes is not
 * used any more.
 */
#ifndef HELPERS_HELPERS_H
#define HELPERS_HELPERS_H

#include <stdbool.h>

#include "core/status.h"

struct helpers;
struct session;

/* Helpers at "HOST:PORT,HOST:PORT ...", none of which is called yet. E_ARGUMENT: these are no
 * addresses, or there is no key. */
tundish_status helpers_check(const char *addresses);

/* Those of a session, which has its plan and files. NULL in *ret_helpers: this stream's parts can
 * only be made here; the log says why. */
tundish_status helpers_open(struct session *session, const char *addresses,
                            struct helpers **ret_helpers);
void helpers_close(struct helpers *helpers); /* accepts NULL */

/* Their threads, as session_run's and session_halt's; each accepts NULL. */
tundish_status helpers_run(struct helpers *helpers);
void helpers_wake(struct helpers *helpers); /* the ring's lock is held */
void helpers_join(struct helpers *helpers); /* after session->stop and helpers_wake */

#endif
