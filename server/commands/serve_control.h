/* serve_control.h - what an operator may ask of a running server. */
#ifndef COMMANDS_SERVE_CONTROL_H
#define COMMANDS_SERVE_CONTROL_H

#include "session/session.h"
#include "shm/channel.h"

/* Do it for all sessions, and describe the result or the error. */
tundish_status serve_control(struct session **sessions, uint32_t session_count,
                             enum tnd_control what, char *text, size_t text_bytes);

#endif
