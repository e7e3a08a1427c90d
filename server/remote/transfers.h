/* transfers.h - requests to servers, many at a time, and what is done about those that fail.
 *
 * One thread owns libcurl's handles. It keeps as many requests under way as there may be
 * connections; others wait in two queues, those that somebody waits for first. A request that fails
 * in a way that may pass is made again on a fresh connection, after a pause drawn at random, and
 * asks only for the bytes that have not come.
 */
#ifndef REMOTE_TRANSFERS_H
#define REMOTE_TRANSFERS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "remote/answer.h"
#include "remote/credentials.h"
#include "remote/stores.h"

struct transfers;

struct transfer_limits {
    uint32_t connections, retries;
};

struct transfer_want {
    const char *name;      /* of the object, for messages */
    const char *address;   /* with its query */
    bool is_ranged;        /* bytes of an object; else all that the server sends */
    bool is_tail;          /* ... the last ones; it is a range once the first answer says where */
    bool is_look;          /* no bytes, but the size and the ETag (HEAD) */
    uint64_t first, bytes; /* of the range; of all, the most that it may be */
    uint64_t whole_max;   /* where a server sends no ranges: of the object that they are cut from */
    bool has_disk;        /* a larger one may be read into the cache on disk */
    const char *tag;      /* the ETag that it must have; NULL: any */
    const char *modified; /* ... its Last-Modified, where it has no ETag; NULL: any */
    uint64_t total;       /* the size that it must have; UINT64_MAX: any */
    const char *region;   /* for the signature */
    bool is_of_store;     /* signed, and not redirected */
    bool is_urgent;       /* somebody waits */
    const struct credentials *credentials;
    struct store *store; /* where it is counted */

    /* The thread of the transfers calls these. `put` gets the bytes from the range's begin on, some
     * perhaps twice; false: they cannot be kept, and its sentence is in tnd_error_text. */
    bool (*put)(void *context, uint64_t offset, const void *bytes, size_t count);

    /* Or NULL: a range is being answered, by that version of the object; the rest of it will be of
     * the same. Once. */
    void (*begun)(void *context, const struct answer *answer);

    /* It is over: `status` has its sentence in tnd_error_text. The answer's `has_total` is set if
     * all is well and a range was asked for. */
    void (*done)(void *context, tundish_status status, const struct answer *answer);
    void *context;
};

tundish_status transfers_open(const struct curl_library *curl, const struct transfer_limits *limits,
                              struct transfers **ret_transfers);

/* The texts of `want` are copied. Any thread; returns at once. */
void transfers_add(struct transfers *transfers, const struct transfer_want *want);

/* Is there more to do than connections for it? Then it is too early to read ahead. */
bool transfers_are_busy(struct transfers *transfers);

/* The thread ends. Requests in flight are not freed, because other threads may still read them and
 * the process is about to exit. Once. */
void transfers_stop(struct transfers *transfers);

#endif
