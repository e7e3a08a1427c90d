/* guard.h - may this request be answered? All defences against foreign pages and foreign clients
 * are here, and they come before any route.
 */
#ifndef ADMIN_GUARD_H
#define ADMIN_GUARD_H

#include <stdbool.h>
#include <stddef.h>

enum { GUARD_HOSTS = 16, GUARD_TOKEN_BYTES = 256 };

struct guard {
    const char *hosts[GUARD_HOSTS]; /* exactly what Host may say, port included */
    size_t host_count;
    bool tls; /* Origin must have this scheme; with behind_proxy either is good */
    bool behind_proxy;
    bool reading_needs_token;      /* not on loopback */
    char token[GUARD_TOKEN_BYTES]; /* "": none, and nothing may be changed */
};

/* The headers that decide, each at most once. */
struct guard_request {
    const char *method;
    const char *host, *origin, *fetch_site, *fetch_mode, *authorization;
    const char *content_length, *transfer_encoding;
    bool has_duplicate; /* one of them came twice */
    bool is_public;     /* the page, its files and the health checks: no metrics are in them */
    bool changes_something;
};

/* 0: yes; else the HTTP status to refuse with, and the sentence. Looks at nothing else. */
unsigned guard_check(const struct guard *guard, const struct guard_request *request,
                     const char **ret_sentence);

/* Read the token from a file that only its owner may read. Returns a sentence that says what is
 * wrong, or NULL. The sentence lives until the next call. */
const char *guard_read_token(const char *path, char token[GUARD_TOKEN_BYTES]);

#endif
