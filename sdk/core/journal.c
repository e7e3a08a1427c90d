/* journal.c - entries in the form of systemd.journal-fields(7): a datagram of lines NAME=VALUE. */
#include "core/journal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int journal = -1;

void
tnd_journal_open(void)
{
    const struct sockaddr_un address = { .sun_family = AF_UNIX,
                                         .sun_path = "/run/systemd/journal/socket" };

    journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (journal >= 0 && connect(journal, (const struct sockaddr *)&address, sizeof address) != 0) {
        close(journal);
        journal = -1;
    }
}

bool
tnd_journal_send(int priority, const char *event, const char *sentence)
{
    char entry[4096];
    int bytes;
    ssize_t sent;

    if (journal < 0)
        return false;
    bytes = snprintf(entry, sizeof entry,
                     "PRIORITY=%d\nSYSLOG_IDENTIFIER=tundish\nTUNDISH_EVENT=%s\nMESSAGE=%s: %s\n",
                     priority, event, event, sentence);
    if (bytes < 0 || (size_t)bytes >= sizeof entry)
        return false;
    do
        sent = send(journal, entry, (size_t)bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == bytes;
}
