/* url.h - names of remote files, and the addresses at which they are asked for.
 *
 * s3://BUCKET/KEY and gs://BUCKET/KEY hold the key as it is, byte for byte; http:// and https://
 * are addresses already. A name may come from a record: it is checked before anything is asked.
 */
#ifndef REMOTE_URL_H
#define REMOTE_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

enum remote_scheme { REMOTE_HTTP, REMOTE_HTTPS, REMOTE_S3, REMOTE_GS };

struct remote_url {
    enum remote_scheme scheme;
    char *name;      /* as the user wrote it, for messages */
    char *bucket;    /* of a store; else NULL */
    const char *key; /* within `name`; of http, the whole name */
};

/* Where stores are. */
struct remote_site {
    const char *endpoint; /* http(s)://HOST[:PORT][/PATH], or NULL: the scheme's own */
    const char *region;
};

/* E_PIPELINE: it cannot be a name; says why. */
tundish_status remote_url_open(const char *name, size_t bytes, struct remote_url *ret_url);
void remote_url_close(struct remote_url *url); /* accepts zeros */

/* Does it name an object of a store, whose keys can be listed? */
static inline bool
remote_url_is_of_store(const struct remote_url *url)
{
    return url->scheme == REMOTE_S3 || url->scheme == REMOTE_GS;
}

/* The address of an object, or of a bucket's list of keys, without a query. The caller frees. */
char *remote_url_address(const struct remote_url *url, const struct remote_site *site);
char *remote_url_bucket_address(const struct remote_url *url, const struct remote_site *site);

/* All bytes but letters, digits, - . _ ~ as %XX, and the slash only if it is not kept. A signature
 * needs this spelling. The caller frees. */
char *remote_url_encode(const char *text, bool keep_slashes);

/* The other way round, in place; a + is a blank, as stores write them in lists. */
void remote_url_decode(char *text);

#endif
