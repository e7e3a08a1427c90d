/* credentials.h - with what requests to a store are signed, from where the store's own programs
 * take it. They stay in this folder's memory: no message, log, plan, place or metric has them.
 */
#ifndef REMOTE_CREDENTIALS_H
#define REMOTE_CREDENTIALS_H

#include <stdint.h>

#include "remote/curl_library.h"
#include "remote/url.h"

/* All NULL: requests go without. */
struct credentials {
    char *key, *secret; /* of a signature */
    char *session;      /* ... and its token, or NULL */
    char *bearer;       /* a token instead of a signature */
    int64_t expires_s;  /* since 1970; 0: not known to */
    uint64_t look;      /* which one these are of: 1, 2, ... */
};

void credentials_close(struct credentials *credentials); /* accepts zeros */

/* Where they come from: of one scheme of one `remote:` section. */
struct credential_source {
    const char *choice; /* auto, environment, none, or a file */
    enum remote_scheme scheme;
    const struct curl_library *curl;
};

/* Look for them. None at all is not an error. E_PIPELINE: a file without any, or one that is not
 * a word. Blocks while a metadata service answers. */
tundish_status credentials_find(const struct credential_source *source,
                                struct credentials *ret_credentials);

/* False: the text has a control character. Keys, tokens and regions go into headers and URLs, where
 * the end of a line would begin another header. NULL: true. */
bool credentials_are_words(const char *text);

/* Keys and region of a profile in files of Amazon's form, or of one file. False: it has no keys. */
bool profile_read_keys(const char *path, const char *profile, struct credentials *ret_credentials);
char *profile_read_region(void);

/* The credentials of this container or instance. False: there is no such service here. */
bool metadata_find(const struct credential_source *source, struct credentials *ret_credentials);

#endif
