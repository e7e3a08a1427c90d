/* serve_notify.c - datagrams to systemd, or to another manager that speaks as it does. */
#include "commands/serve_notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/printable.h"
#include "core/redact.h"

enum { SENTENCE_BYTES = 1000, CALLS_A_LIMIT = 4 };

static void
send_lines(const char *lines)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t bytes = path != NULL ? strlen(path) : 0;
    int descriptor;

    if (bytes < 2 || bytes >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, bytes);
    if (path[0] == '@') /* a name that is not in the file system */
        address.sun_path[0] = '\0';
    descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return;
    (void)sendto(descriptor, lines, strlen(lines), MSG_NOSIGNAL, (const struct sockaddr *)&address,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes));
    close(descriptor);
}

void
serve_notify(const char *state, const char *format, ...)
{
    char raw[SENTENCE_BYTES], sentence[sizeof raw], lines[sizeof raw + 64];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    tnd_redact(raw);
    tnd_printable(raw, sentence, sizeof sentence); /* no line of its own within */
    snprintf(lines, sizeof lines, "%s%sSTATUS=%s", state, state[0] != '\0' ? "\n" : "", sentence);
    send_lines(lines);
}

int64_t
serve_notify_interval_ns(void)
{
    const char *limit_us = getenv("WATCHDOG_USEC"), *process = getenv("WATCHDOG_PID");
    unsigned long long us = limit_us != NULL ? strtoull(limit_us, NULL, 10) : 0;

    if (us == 0 || us > INT64_MAX / 1000)
        return 0;
    /* The variables of a parent are inherited: they may be meant for it alone. */
    if (process != NULL && strtoll(process, NULL, 10) != getpid())
        return 0;
    return (int64_t)us * 1000 / CALLS_A_LIMIT;
}

void
serve_notify_alive(void)
{
    send_lines("WATCHDOG=1");
}
