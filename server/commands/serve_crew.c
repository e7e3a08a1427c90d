/* serve_crew.c - the messages of launchers to each other, which the servers carry over the link. */
#include "commands/serve_crew.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "commands/serve_signals.h"
#include "core/log.h"
#include "session/nodes/session_level.h"

enum { LINE_BYTES = 1024 };

/* Posted under LINK_CREW: the word is the key's epoch, and the number is its part. */
enum crew_word { CREW_FAILED, CREW_DONE, CREW_WORD_COUNT };
static const char *const words[CREW_WORD_COUNT] = { "failed", "done" };

/* Send a line to the launcher. A failure is ignored: a launcher that does not read is about to end.
 */
static void
tell_launcher(const struct serve *serve, const char *line)
{
    (void)send(serve->crew_descriptor, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Bring all streams to the same step. All streams are told before the first is waited for, because
 * other nodes wait for all of them. */
static tundish_status
level_all(struct serve *serve, uint64_t number)
{
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; status == TUNDISH_OK && i < serve->session_count; i++)
        status = session_level_tell(serve->sessions[i], number, &serve_stop_signal);
    for (uint32_t i = 0; status == TUNDISH_OK && i < serve->session_count; i++)
        status = session_level_reach(serve->sessions[i], number, &serve_stop_signal);
    return status;
}

static void
begin_again(struct serve *serve, uint64_t number)
{
    char line[LINE_BYTES];

    if (level_all(serve, number) == TUNDISH_OK)
        snprintf(line, sizeof line, "begin %" PRIu64 "\n", number);
    else
        snprintf(line, sizeof line, "never %.*s\n", LINE_BYTES - 16, tnd_error_text());
    tell_launcher(serve, line);
}

static void
obey(struct serve *serve, const char *line)
{
    struct link_key key = { .topic = LINK_CREW };
    char word[16];

    if (sscanf(line, "%15s %" SCNu64, word, &key.part) != 2)
        /* A line of another version is ignored. */
        return;
    if (strcmp(word, "ended") == 0)
        begin_again(serve, key.part);
    for (key.epoch = 0; key.epoch < CREW_WORD_COUNT; key.epoch++)
        if (strcmp(word, words[key.epoch]) == 0)
            link_post(serve->link, &key, "", 0);
}

static void *
hear_launcher(void *user)
{
    struct serve *serve = user;
    /* A copy of the descriptor: fclose closes it, and the server goes on writing to its own. */
    FILE *lines = fdopen(dup(serve->crew_descriptor), "re");
    char line[LINE_BYTES];

    while (lines != NULL && fgets(line, sizeof line, lines) != NULL)
        obey(serve, line);
    if (lines != NULL)
        fclose(lines);
    return NULL;
}

tundish_status
serve_crew_open(struct serve *serve)
{
    int error;

    if (serve->crew_descriptor < 0)
        return TUNDISH_OK;
    error = pthread_create(&serve->crew, NULL, hear_launcher, serve);
    if (error != 0)
        return tnd_fail_errno(error, "cannot start a thread");
    serve->has_crew = true;
    return TUNDISH_OK;
}

void
serve_crew_close(struct serve *serve)
{
    if (!serve->has_crew)
        return;
    /* This ends the thread's read, since only the descriptor is shared. */
    shutdown(serve->crew_descriptor, SHUT_RD);
    pthread_join(serve->crew, NULL);
}

void
serve_crew_hear(const struct serve *serve, const struct link_key *key)
{
    char line[64];

    if (serve->crew_descriptor < 0 || key->epoch >= CREW_WORD_COUNT)
        return;
    snprintf(line, sizeof line, "%s %" PRIu64 "\n", words[key->epoch], key->part);
    tell_launcher(serve, line);
}
