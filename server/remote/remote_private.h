/* remote_private.h - what the parts of this folder know of each other. */
#ifndef REMOTE_REMOTE_PRIVATE_H
#define REMOTE_REMOTE_PRIVATE_H

#include "remote/credentials.h"
#include "remote/remote.h"
#include "remote/transfers.h"

struct disk;
struct parts;
struct remote_object;

struct remote {
    struct remote *next;        /* of all in this process */
    struct spec_remote options; /* texts are its own */
    const struct curl_library *curl;
    char *endpoint, *region;
    struct transfers *transfers;
    struct disk *disk;   /* NULL: nothing is kept when the process ends */
    struct parts *parts; /* NULL until the first part is kept */

    pthread_mutex_t lock;              /* of `parts` while it is made, and of all below */
    struct remote_object *shared;      /* open ones, with fetch: once */
    struct credentials credentials[2]; /* of s3, of gs */
    uint64_t looks;                    /* for them */
    bool has_looked[2];
};

/* Where requests for this URL go to. */
struct remote_site remote_site_of(const struct remote *remote);

/* A copy of what requests of this scheme are signed with, fresh for minutes. Blocks while it is
 * renewed. The caller closes it. */
tundish_status remote_credentials(struct remote *remote, enum remote_scheme scheme,
                                  struct credentials *ret_credentials);

/* The store calls those of this look expired: look for new ones with the next request. False: there
 * will be no others, since nothing renews them. */
bool remote_credentials_forget(struct remote *remote, enum remote_scheme scheme, uint64_t look);

#endif
