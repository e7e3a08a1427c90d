/* lease.c - counts of lent batches, in C alone. */
#include "lease.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct source {
    _Atomic uint32_t users; /* the reader object and the leases */
    tundish_reader *reader;
    uint64_t process;
};

struct lease {
    _Atomic uint32_t users;
    struct source *source;
    const tundish_batch *batch;
};

static _Atomic uint64_t process = 1; /* one more in every child than in its parent */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
after_fork_in_child(void)
{
    atomic_fetch_add(&process, 1);
}

static void
install_handler(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

struct source *
source_open(tundish_reader *reader)
{
    struct source *source = calloc(1, sizeof *source);

    pthread_once(&once, install_handler);
    if (source == NULL)
        return NULL;
    atomic_init(&source->users, 1);
    source->reader = reader;
    source->process = atomic_load(&process);
    return source;
}

tundish_reader *
source_reader(const struct source *source)
{
    return source->reader;
}

/* Compared with a count of forks rather than with getpid, which is a system call. */
bool
source_is_ours(const struct source *source)
{
    return source->process == atomic_load_explicit(&process, memory_order_relaxed);
}

void
source_close(struct source *source)
{
    if (source == NULL || atomic_fetch_sub(&source->users, 1) > 1)
        return;
    tundish_close(source->reader);
    free(source);
}

struct lease *
lease_open(struct source *source, const tundish_batch *batch)
{
    struct lease *lease = calloc(1, sizeof *lease);

    if (lease == NULL) {
        tundish_release(source->reader, batch);
        return NULL;
    }
    atomic_init(&lease->users, 1);
    atomic_fetch_add(&source->users, 1);
    lease->source = source;
    lease->batch = batch;
    return lease;
}

void
lease_hold(struct lease *lease)
{
    atomic_fetch_add_explicit(&lease->users, 1, memory_order_relaxed);
}

void
lease_drop(struct lease *lease)
{
    if (lease == NULL || !source_is_ours(lease->source))
        return;
    /* acq_rel: all uses in other threads come before the release. */
    if (atomic_fetch_sub_explicit(&lease->users, 1, memory_order_acq_rel) > 1)
        return;
    tundish_release(lease->source->reader, lease->batch);
    source_close(lease->source);
    free(lease);
}

const tundish_batch *
lease_batch(const struct lease *lease)
{
    return lease->batch;
}
