/* serve_notify.h - the service manager's questions: is it ready, what does it do, is it alive?
 *
 * The protocol of sd_notify(3): one datagram of lines NAME=value to the socket that NOTIFY_SOCKET
 * names. Without that variable all of this does nothing. Never blocks, and never fails: a server
 * serves whether or not it is listened to.
 */
#ifndef COMMANDS_SERVE_NOTIFY_H
#define COMMANDS_SERVE_NOTIFY_H

#include <stdint.h>

/* Send the lines `state`, "READY=1" for example, which may be "", and STATUS=sentence. */
void serve_notify(const char *state, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* How often to call serve_notify_alive, so that the manager does not take this process for hung; 0:
 * the manager does not watch it. */
int64_t serve_notify_interval_ns(void);
void serve_notify_alive(void);

#endif
