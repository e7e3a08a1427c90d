/* must.c - report a bug and end the process. */
#include "core/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/read_write.h"

/* A pipe that is full would keep the process from ending, which is worse than silence. */
static void
say(const char *text)
{
    if (tnd_write_allowed(STDERR_FILENO))
        (void)tnd_write(STDERR_FILENO, text, strlen(text));
}

void
tnd_bug(const char *file, int line, const char *condition)
{
    char text[512];

    snprintf(text, sizeof text, "tundish: %s:%d: bug: %s\n", file, line, condition);
    say(text);
    abort();
}
