/* serve_control.c - an operator's control requests. */
#include "commands/serve.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/log.h"
#include "session/checkpoint/session_state.h"

static tundish_status
pause_all(struct session **sessions, uint32_t session_count, bool paused, char *text,
          size_t text_bytes)
{
    for (uint32_t i = 0; i < session_count; i++)
        session_pause(sessions[i], paused);
    tnd_log(TND_LOG_NOTICE, "control", "%s by an operator", paused ? "paused" : "resumed");
    snprintf(text, text_bytes,
             paused ? "paused: trainers wait after they have read the batches that are ready"
                    : "resumed");
    return TUNDISH_OK;
}

static tundish_status
set_level(enum tnd_log_level level, char *text, size_t text_bytes)
{
    static const char *const names[] = { "error", "warning", "notice", "debug" };

    tnd_log_set_level(level);
    snprintf(text, text_bytes, "events up to %s are logged", names[level]);
    return TUNDISH_OK;
}

/* The place of each stream, from which a trainer or --place can start. */
static tundish_status
tell_places(struct session **sessions, uint32_t session_count, char *text, size_t text_bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < session_count; i++) {
        char *token = session_state_token(sessions[i]);

        if (token != NULL && used < text_bytes)
            used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", used > 0 ? " " : "",
                                     token);
        free(token);
    }
    if (used > 0 && used < text_bytes)
        return TUNDISH_OK;
    snprintf(text, text_bytes,
             used == 0 ? "nothing has been published yet" : "the places do not fit into an answer");
    return TUNDISH_E_ARGUMENT;
}

tundish_status
serve_control(struct session **sessions, uint32_t session_count, enum tnd_control what, char *text,
              size_t text_bytes)
{
    switch (what) {
    /* All sessions alike: an operator sees a server, not its sessions. */
    case TND_CONTROL_PAUSE:
    case TND_CONTROL_RESUME:
        return pause_all(sessions, session_count, what == TND_CONTROL_PAUSE, text, text_bytes);
    case TND_CONTROL_DRAIN:
        tnd_log(TND_LOG_NOTICE, "control", "an operator requested a drain");
        snprintf(text, text_bytes,
                 "draining: trainers get the batches that are ready, then STOPPED");
        /* The same way as a signal from outside, so there is one path to drain. */
        kill(getpid(), SIGTERM);
        return TUNDISH_OK;
    case TND_CONTROL_LOG_ERROR:
        return set_level(TND_LOG_ERROR, text, text_bytes);
    case TND_CONTROL_LOG_WARNING:
        return set_level(TND_LOG_WARNING, text, text_bytes);
    case TND_CONTROL_LOG_NOTICE:
        return set_level(TND_LOG_NOTICE, text, text_bytes);
    case TND_CONTROL_LOG_DEBUG:
        return set_level(TND_LOG_DEBUG, text, text_bytes);
    case TND_CONTROL_CHECKPOINT:
        return tell_places(sessions, session_count, text, text_bytes);
    }
    /* A newer tundish-admin may send it. */
    snprintf(text, text_bytes, "this server does not know this request");
    return TUNDISH_E_ARGUMENT;
}
