/* must.c - report a bug and end the process. */
#include "core/must.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A pipe that is full would keep the process from ending, which is worse than silence. */
static void
say(const char *text)
{
    struct pollfd standard_error = { .fd = STDERR_FILENO, .events = POLLOUT };

    if (poll(&standard_error, 1, 0) == 1 && write(STDERR_FILENO, text, strlen(text)) < 0) {
        /* there is nowhere else to report it */
    }
}

void
tnd_bug(const char *file, int line, const char *condition)
{
    char text[512];

    snprintf(text, sizeof text, "tundish: %s:%d: bug: %s\n", file, line, condition);
    say(text);
    abort();
}
