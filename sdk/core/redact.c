/* redact.c - see redact.h. */
#include "core/redact.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

static const char STARS[] = "***";
static const char ENDS[] = " \t\r\n\"<>";

/* Parameters that tell files apart, or how they come. Everything else may be a secret. */
static const char *const harmless[] = {
    "versionId",
    "version",
    "v",
    "generation",
    "id",
    "name",
    "file",
    "filename",
    "path",
    "part",
    "page",
    "index",
    "format",
    "raw",
    "download",
    "alt",
    "ref",
    "prefix",
    "X-Amz-Algorithm",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Goog-Algorithm",
    "X-Goog-Date",
    "X-Goog-Expires",
    "Expires",
};

static bool
is_harmless(const char *name, size_t bytes)
{
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (strlen(harmless[i]) == bytes && strncasecmp(name, harmless[i], bytes) == 0)
            return true;
    return false;
}

/* Where an address ends within a sentence, whose own marks may follow it. */
static size_t
address_bytes(const char *at)
{
    size_t bytes = strcspn(at, ENDS);

    while (bytes > 0 && strchr(":,.)'", at[bytes - 1]) != NULL)
        bytes--;
    return bytes;
}

/* Put stars for the bytes, and move up what follows. A shorter secret gets fewer, so that the text
 * never grows. Returns how many there are now. */
static size_t
hide(char *at, size_t bytes)
{
    size_t stars = bytes < strlen(STARS) ? bytes : strlen(STARS);

    memcpy(at, STARS, stars);
    memmove(at + stars, at + bytes, strlen(at + bytes) + 1);
    return stars;
}

static void
hide_user(char *host)
{
    size_t bytes = strcspn(host, "/?# \t\r\n\"<>");
    size_t user = 0;

    for (size_t i = 0; i < bytes; i++)
        if (host[i] == '@')
            user = i;
    if (user > 0)
        (void)hide(host, user);
}

/* One parameter, of the form NAME=VALUE or of a value alone. Returns what follows it. */
static char *
hide_parameter(char *at)
{
    size_t bytes = address_bytes(at), all = strcspn(at, "&;");
    size_t name;

    if (all > bytes)
        all = bytes;
    name = strcspn(at, "=");
    if (name >= all)
        return at + all;
    if (!is_harmless(at, name))
        all = name + 1 + hide(at + name + 1, all - name - 1);
    return at + all;
}

void
tnd_redact(char *text)
{
    for (char *at = strstr(text, "://"); at != NULL; at = strstr(at, "://")) {
        size_t bytes;
        char *query;

        at += 3;
        hide_user(at);
        bytes = address_bytes(at);
        query = memchr(at, '?', bytes);
        if (query == NULL)
            continue;
        for (at = query + 1;; at++) {
            at = hide_parameter(at);
            if (*at != '&' && *at != ';')
                break;
        }
    }
}

void
tnd_redact_address(char *text)
{
    for (char *at = text; *at != '\0'; at++)
        if (strchr(ENDS, *at) != NULL)
            *at = '_';
    tnd_redact(text);
}

size_t
tnd_redact_unsigned_bytes(const char *text)
{
    size_t bytes = strlen(text), name;
    const char *query = strchr(text, '?'), *at = query;

    if (query == NULL || (strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0))
        return bytes;
    while (*at != '\0') {
        at++;
        name = strcspn(at, "=&;");
        if (at[name] == '=' && !is_harmless(at, name))
            return (size_t)(query - text);
        at += strcspn(at, "&;");
    }
    return bytes;
}
