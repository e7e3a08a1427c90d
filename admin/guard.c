/* guard.c - check a request's headers. */
#include "guard.h"

#include "core/read_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static bool
host_is_ours(const struct guard *guard, const char *host)
{
    for (size_t i = 0; i < guard->host_count; i++)
        if (strcasecmp(guard->hosts[i], host) == 0)
            return true;
    return false;
}

/* Is it a page of ours, by scheme and host? A proxy may speak TLS where we do not. */
static bool
origin_is_ours(const struct guard *guard, const char *origin)
{
    if (strncmp(origin, "http://", 7) == 0 && (!guard->tls || guard->behind_proxy))
        return host_is_ours(guard, origin + 7);
    if (strncmp(origin, "https://", 8) == 0 && (guard->tls || guard->behind_proxy))
        return host_is_ours(guard, origin + 8);
    return false;
}

/* Browsers send Sec-Fetch-Site with the origin of a request. Another site may link to our page; its
 * scripts may request nothing. */
static bool
fetch_is_ours(const struct guard_request *request)
{
    const char *site = request->fetch_site;

    if (site == NULL || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0)
        return true;
    return request->is_public && request->fetch_mode != NULL &&
           strcmp(request->fetch_mode, "navigate") == 0;
}

/* Compare in a time that depends only on the length of the sent text, so that the time does not
 * reveal how many bytes are right. */
static bool
is_token(const struct guard *guard, const char *authorization)
{
    static const char scheme[] = "Bearer ";
    size_t right = strlen(guard->token), sent;
    unsigned char difference;

    if (right == 0 || authorization == NULL ||
        strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return false;
    authorization += sizeof scheme - 1;
    sent = strlen(authorization);
    difference = sent != right;
    for (size_t i = 0; i < sent; i++)
        difference |= (unsigned char)(authorization[i] ^ guard->token[i % right]);
    return difference == 0;
}

unsigned
guard_check(const struct guard *guard, const struct guard_request *request,
            const char **ret_sentence)
{
    bool needs_token =
        request->changes_something || (guard->reading_needs_token && !request->is_public);

    /* A proxy in front might have checked the other of the two. */
    if (request->has_duplicate) {
        *ret_sentence = "a header occurs twice";
        return 400;
    }
    if (request->content_length != NULL && request->transfer_encoding != NULL) {
        *ret_sentence = "Content-Length and Transfer-Encoding contradict each other";
        return 400;
    }
    /* The cheapest checks come first, and the token last: only a request that could otherwise be
     * allowed may test tokens. */
    if (request->host == NULL || !host_is_ours(guard, request->host)) {
        *ret_sentence = "this Host is not served here: see --host";
        return 421;
    }
    if (request->origin != NULL && !origin_is_ours(guard, request->origin)) {
        *ret_sentence = "requests from this Origin are not allowed";
        return 403;
    }
    if (!fetch_is_ours(request)) {
        *ret_sentence = "requests from another site are not allowed";
        return 403;
    }
    if (request->changes_something && guard->token[0] == '\0') {
        *ret_sentence = "changes are disabled: tundish-admin was started without --token-file";
        return 403;
    }
    if (needs_token && !is_token(guard, request->authorization)) {
        *ret_sentence = "Authorization: Bearer TOKEN is needed";
        return 401;
    }
    return 0;
}

static const char *
read_token(int file, const char *path, char token[GUARD_TOKEN_BYTES])
{
    static char sentence[512];
    struct stat about;
    size_t got = 0;

    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
        snprintf(sentence, sizeof sentence, "%s is not a file", path);
        return sentence;
    }
    /* Other users could read the token, or have put it there. */
    if ((about.st_mode & 077) != 0 || about.st_uid != geteuid()) {
        snprintf(sentence, sizeof sentence,
                 "%s can be read by other users (mode %03o): it must belong to you; run chmod 600",
                 path, (unsigned)about.st_mode & 0777);
        return sentence;
    }
    (void)tnd_read(file, token, GUARD_TOKEN_BYTES - 1, &got);
    token[got] = '\0';
    token[strcspn(token, "\r\n")] = '\0';
    if (strlen(token) < 16) {
        snprintf(sentence, sizeof sentence, "the token in %s has less than 16 characters", path);
        return sentence;
    }
    return NULL;
}

const char *
guard_read_token(const char *path, char token[GUARD_TOKEN_BYTES])
{
    static char sentence[512];
    const char *wrong;
    int file = open(path, O_RDONLY | O_CLOEXEC);

    if (file < 0) {
        snprintf(sentence, sizeof sentence, "%s: %s", path, strerror(errno));
        return sentence;
    }
    wrong = read_token(file, path, token);
    close(file);
    return wrong;
}
