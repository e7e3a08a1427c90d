/* serve_owner.h - serve --end-with: a server that stops when the process that owns it has ended. */
#ifndef COMMANDS_SERVE_OWNER_H
#define COMMANDS_SERVE_OWNER_H

#include <stdint.h>

#include "core/status.h"

/* Stop this server, as SIGTERM does, when the process `pid` has ended, however it ended. To be
 * called after serve_hear_signals. E_SYSTEM: there is no such process. */
tundish_status serve_end_with(uint32_t pid);

#endif
