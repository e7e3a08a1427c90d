/* stores.h - what each bucket and server was asked for, counted for people who look.
 *
 * A store is the part of a URL before the name within it: s3://BUCKET, http://HOST:PORT. Counts are
 * added by any thread; they are read now and then.
 */
#ifndef REMOTE_STORES_H
#define REMOTE_STORES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "remote/url.h"
#include "shm/stats.h"

/* Why a request was made again. */
enum store_retry {
    RETRY_CONNECTION,
    RETRY_STALLED,
    RETRY_SERVER,
    RETRY_SHORT,
    RETRY_RANGE,
    RETRY_SLOW,
    STORE_RETRIES
};

/* A thread that waits, on its own stack. */
struct store_wait {
    struct store_wait *next;
    const char *name; /* of the object; lives as long as the wait */
    int64_t since_ns;
};

enum { STORE_NAME_BYTES = 128, STORE_RECENT = 31 };

struct store {
    struct store *_Atomic next;
    char name[STORE_NAME_BYTES];
    _Atomic uint64_t requests, received_bytes, failures, retries[STORE_RETRIES];
    _Atomic uint64_t active; /* requests under way */
    _Atomic uint64_t reads, hits, cached_bytes;
    _Atomic bool is_told; /* that its objects may be replaced unseen */
    struct tnd_stats_histogram
        times; /* of requests that ended well; the transfers' thread writes */

    /* How long the last requests for a range took; the transfers' thread alone. */
    int64_t recent_ns[STORE_RECENT];
    uint32_t recent_count;

    pthread_mutex_t lock; /* of the waits */
    struct store_wait *waits;
    uint64_t waited_ns; /* of those that have ended */
};

static inline void
store_count(_Atomic uint64_t *counter, uint64_t amount)
{
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

/* For the thread of the transfers: note how long a request took; the median of the last, 0 while
 * there are too few. */
void store_note(struct store *store, int64_t took_ns);
int64_t store_median_ns(const struct store *store);

void store_wait_begin(struct store *store, struct store_wait *wait, const char *name);
void store_wait_end(struct store *store, struct store_wait *wait);

/* The object that a thread has waited for longest, and how long; 0: none waits. A name that is too
 * long ends early. */
int64_t store_longest_wait_ns(struct store *store, char *name, size_t name_bytes);

/* The time that threads waited, the waits that have not ended included. */
uint64_t store_waited_ns(struct store *store);

/* s3://BUCKET, http://HOST:PORT; one that is too long ends early. */
void store_name(const struct remote_url *url, char name[STORE_NAME_BYTES]);

/* The store of that URL, for the rest of the process. Beyond some, stores share one. */
struct store *stores_find(const struct remote_url *url);

/* Those of this process, one after the other: `previous` NULL gives the first. Any thread. */
struct store *stores_next(const struct store *previous);

#endif
