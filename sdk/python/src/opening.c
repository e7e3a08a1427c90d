/* opening.c - waiting for a server that is starting. */
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "clock.h"
#include "raise.h"
#include "reader.h"

#define SECOND_NS INT64_C(1000000000)

/* Somebody may have forgotten the server, or look at a job that seems to stand still. */
static void
say_waiting(int64_t left_ns)
{
    time_t until = time(NULL) + (time_t)(left_ns / SECOND_NS);
    struct tm parts;
    char clock[16];

    strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&until, &parts));
    PySys_FormatStderr("tundish: %s; waiting for it until %s\n", tundish_last_error(), clock);
}

/* All the time has passed. The SDK's own text knows of the last slice only. */
static void
raise_never_there(int64_t timeout_ns)
{
    char text[2048];

    snprintf(text, sizeof text, "%s (none was there in all of the timeout, %g s)",
             tundish_last_error(), (double)timeout_ns / 1e9);
    raise_status_text(TUNDISH_E_SERVER_GONE, text);
}

tundish_reader *
opening_wait(tundish_options *options)
{
    int64_t begun_ns = clock_ns(), deadline_ns = begun_ns + options->server_timeout_ns, left_ns;
    tundish_reader *opened = NULL;
    tundish_status status;
    bool was_told = false;

    do {
        left_ns = deadline_ns - clock_ns();
        options->open_timeout_ns = left_ns < 1 ? 1 : left_ns < SLICE_NS ? left_ns : SLICE_NS;
        Py_BEGIN_ALLOW_THREADS;
        status = tundish_open(options, &opened);
        Py_END_ALLOW_THREADS;
        if (status == TUNDISH_OK)
            return opened;
        if (PyErr_CheckSignals() != 0)
            return NULL;
        /* A server that does not answer takes longer than a slice. */
        left_ns = deadline_ns - clock_ns();
        if (status == TUNDISH_E_SERVER_GONE && !was_told && left_ns > 0 &&
            clock_ns() - begun_ns >= SECOND_NS) {
            was_told = true;
            say_waiting(left_ns);
        }
    } while ((status == TUNDISH_E_SERVER_GONE || status == TUNDISH_E_TIMEOUT) && left_ns > 0);
    if (status == TUNDISH_E_SERVER_GONE)
        raise_never_there(options->server_timeout_ns);
    else
        raise_status(status);
    return NULL;
}
