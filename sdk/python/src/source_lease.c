/* source_lease.c - counts of lent batches, in C alone.
 *
 * Two levels of counts: a lease has one for each object that uses its batch, its source one for
 * each lease and one for the reader object. So arrays outlive their reader, and the SDK's reader is
 * freed by whichever goes last. */
#include "source_lease.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The names of the files that batches were taken in: few, kept as long as the source. */
struct file_name {
    struct file_name *next;
    char text[];
};

/* Longer names of columns are cut. */
#define NAME_BYTES 64

struct source {
    _Atomic uint32_t users; /* the reader object and the leases */
    uint64_t process;
    tundish_reader *reader;
    int device; /* -1: none */
    const struct supply *supply;
    void *from;           /* the supply's */
    pthread_mutex_t lock; /* of the rest, and of the reader's closing */
    pthread_cond_t released;
    bool is_shut;
    struct lease *oldest, *newest;
    struct file_name *files;
    struct source *next; /* in the list of all */
    uint32_t column_count;
    char (*column_names)[NAME_BYTES];
};

/* Where the values of a column lie. 0: nobody asked yet. */
struct span {
    _Atomic uintptr_t begin, end;
};

struct lease {
    _Atomic uint32_t users;
    struct source *source;
    struct lease *older, *newer;
    struct lent lent;
    struct source_line taken;
    bool is_kept; /* it has left its slot; guarded by the source's lock */
    atomic_bool is_lent_on;
    struct span spans[]; /* for each column */
};

static struct source *sources;
static pthread_mutex_t sources_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t process = 1; /* one more in every child than in its parent */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A count rather than an address or a pid: those can come again. */
static void
after_fork_in_child(void)
{
    atomic_fetch_add(&process, 1);
}

static void
install_handlers(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
    lease_watch_written();
}

static bool
copy_names(tundish_reader *reader, struct source *source)
{
    const tundish_spec *spec;

    if (tundish_element_spec(reader, &spec) != TUNDISH_OK)
        return false;
    source->column_names = calloc(spec->column_count + 1, sizeof *source->column_names);
    if (source->column_names == NULL)
        return false;
    source->column_count = spec->column_count;
    for (uint32_t i = 0; i < spec->column_count; i++)
        strncpy(source->column_names[i], tundish_column_spec_at(spec, i)->name, NAME_BYTES - 1);
    return true;
}

static void
list_source(struct source *source)
{
    pthread_mutex_lock(&sources_lock);
    source->next = sources;
    sources = source;
    pthread_mutex_unlock(&sources_lock);
}

static void
unlist_source(const struct source *source)
{
    struct source **at = &sources;

    pthread_mutex_lock(&sources_lock);
    while (*at != NULL && *at != source)
        at = &(*at)->next;
    if (*at != NULL)
        *at = source->next;
    pthread_mutex_unlock(&sources_lock);
}

tundish_status
source_open(tundish_reader *reader, int device, struct source **ret_source, const char **ret_text)
{
    struct source *source = calloc(1, sizeof *source);
    pthread_condattr_t monotonic;
    tundish_status status = TUNDISH_OK;

    pthread_once(&once, install_handlers);
    *ret_text = "no memory for a reader";
    if (source == NULL || !copy_names(reader, source)) {
        free(source);
        return TUNDISH_E_MEMORY;
    }
    source->supply = &supply_host;
    source->from = reader;
    if (device >= 0)
        status = supply_device(reader, device, &source->supply, &source->from, ret_text);
    if (status != TUNDISH_OK) {
        free(source->column_names);
        free(source);
        return status;
    }
    source->device = device;
    atomic_init(&source->users, 1);
    pthread_mutex_init(&source->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&source->released, &monotonic);
    pthread_condattr_destroy(&monotonic);
    source->reader = reader;
    source->process = atomic_load(&process);
    list_source(source);
    *ret_source = source;
    return TUNDISH_OK;
}

tundish_reader *
source_reader(const struct source *source)
{
    return source->reader;
}

int
source_device(const struct source *source)
{
    return source->device;
}

tundish_status
source_next(struct source *source, int64_t timeout_ns, struct lent *ret_lent)
{
    return source->supply->next(source->from, timeout_ns, ret_lent);
}

tundish_status
source_restart(struct source *source)
{
    return source->supply->restart(source->from);
}

tundish_status
source_place(struct source *source, char *token, size_t capacity, size_t *ret_bytes)
{
    return source->supply->place(source->from, token, capacity, ret_bytes);
}

bool
source_has_room(struct source *source)
{
    return source->supply->has_room(source->from, source_held(source));
}

const char *
source_text(const struct source *source, tundish_status status)
{
    return status < TUNDISH_OK ? source->supply->last_error() : "";
}

/* Compared with a count of forks rather than with getpid, which is a system call. */
bool
source_is_ours(const struct source *source)
{
    return source->process == atomic_load_explicit(&process, memory_order_relaxed);
}

void
source_drop(struct source *source)
{
    if (source == NULL || atomic_fetch_sub(&source->users, 1) > 1)
        return;
    unlist_source(source);
    if (!source->is_shut)
        source->supply->close(source->from);
    source->supply->free(source->from);
    while (source->files != NULL) {
        struct file_name *next = source->files->next;

        free(source->files);
        source->files = next;
    }
    free(source->column_names);
    free(source);
}

/* One count more, unless the last is gone already. */
static bool
try_hold(struct lease *lease)
{
    uint32_t users = atomic_load(&lease->users);

    while (users > 0)
        if (atomic_compare_exchange_weak(&lease->users, &users, users + 1))
            return true;
    return false;
}

/* The source's lock is held. */
static struct lease *
find_oldest(const struct source *source)
{
    struct lease *lease = source->oldest;

    while (lease != NULL && lease->is_kept)
        lease = lease->newer;
    return lease;
}

/* The source's lock is held. */
static uint32_t
count_held(const struct source *source)
{
    uint32_t count = 0;

    for (struct lease *lease = find_oldest(source); lease != NULL; lease = lease->newer)
        count += !lease->is_kept;
    return count;
}

uint32_t
source_held(struct source *source)
{
    uint32_t count;

    pthread_mutex_lock(&source->lock);
    count = count_held(source);
    pthread_mutex_unlock(&source->lock);
    return count;
}

bool
source_oldest(struct source *source, struct source_line *ret_taken, uint32_t *ret_count)
{
    struct lease *oldest;
    uint32_t count;

    pthread_mutex_lock(&source->lock);
    oldest = find_oldest(source);
    count = count_held(source);
    if (oldest != NULL)
        *ret_taken = oldest->taken;
    pthread_mutex_unlock(&source->lock);
    *ret_count = count;
    return oldest != NULL;
}

void
source_note_left(struct source *source)
{
    pthread_mutex_lock(&source->lock);
    if (source->newest != NULL)
        source->newest->taken.was_left = true;
    pthread_mutex_unlock(&source->lock);
}

bool
source_is_lent_on(struct source *source)
{
    bool is_lent_on = false;

    pthread_mutex_lock(&source->lock);
    for (struct lease *lease = source->oldest; lease != NULL; lease = lease->newer)
        is_lent_on = is_lent_on || (!lease->is_kept && atomic_load(&lease->is_lent_on));
    pthread_mutex_unlock(&source->lock);
    return is_lent_on;
}

/* Keep a lease to which this call holds a count, and give that back. */
static tundish_status
keep(struct source *source, struct lease *lease)
{
    tundish_status status = source->supply->keep(source->from, lease->lent.lent);

    if (status == TUNDISH_OK) {
        pthread_mutex_lock(&source->lock);
        lease->is_kept = true;
        pthread_mutex_unlock(&source->lock);
    }
    lease_drop(lease);
    return status;
}

tundish_status
source_keep_oldest(struct source *source)
{
    struct lease *oldest;
    bool is_held;

    pthread_mutex_lock(&source->lock);
    oldest = find_oldest(source);
    /* One whose last count is gone leaves by itself. */
    is_held = oldest != NULL && try_hold(oldest);
    pthread_mutex_unlock(&source->lock);
    return is_held ? keep(source, oldest) : TUNDISH_OK;
}

tundish_status
source_shut(struct source *source)
{
    for (;;) {
        struct lease *oldest;
        bool is_held;

        pthread_mutex_lock(&source->lock);
        oldest = find_oldest(source);
        is_held = oldest != NULL && try_hold(oldest);
        if (oldest == NULL && !source->is_shut) {
            /* With the lock: a thread that drops a kept batch comes before it or after it. */
            source->supply->close(source->from);
            source->is_shut = true;
        }
        pthread_mutex_unlock(&source->lock);
        if (oldest == NULL)
            return TUNDISH_OK;
        if (is_held) {
            tundish_status status = keep(source, oldest);

            if (status != TUNDISH_OK)
                return status;
        } else {
            sched_yield(); /* another thread is about to give it back */
        }
    }
}

void
source_wait_release(struct source *source, int64_t timeout_ns)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += timeout_ns % 1000000000;
    until.tv_sec += timeout_ns / 1000000000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&source->lock);
    if (find_oldest(source) != NULL)
        pthread_cond_timedwait(&source->released, &source->lock, &until);
    pthread_mutex_unlock(&source->lock);
}

/* The lasting copy of a file's name; "?" if there is no memory. The source's lock is held. */
static const char *
name_of_file(struct source *source, const char *file)
{
    struct file_name *name = source->files;
    size_t bytes = strlen(file) + 1;

    while (name != NULL && strcmp(name->text, file) != 0)
        name = name->next;
    if (name != NULL)
        return name->text;
    name = malloc(sizeof *name + bytes);
    if (name == NULL)
        return "?";
    memcpy(name->text, file, bytes);
    name->next = source->files;
    source->files = name;
    return name->text;
}

struct lease *
lease_open(struct source *source, const struct lent *lent, const struct source_line *taken)
{
    struct lease *lease = calloc(1, sizeof *lease + source->column_count * sizeof lease->spans[0]);

    if (lease == NULL) {
        source->supply->release(source->from, lent->lent);
        return NULL;
    }
    atomic_init(&lease->users, 1);
    /* Nobody else has the lease yet, and the caller holds the source. */
    atomic_fetch_add(&source->users, 1);
    lease->source = source;
    lease->lent = *lent;
    pthread_mutex_lock(&source->lock);
    lease->taken =
        (struct source_line){ .file = name_of_file(source, taken->file), .number = taken->number };
    lease->older = source->newest;
    *(source->newest == NULL ? &source->oldest : &source->newest->newer) = lease;
    source->newest = lease;
    pthread_mutex_unlock(&source->lock);
    return lease;
}

/* relaxed: the caller holds a count already, which orders all that matters. */
void
lease_hold(struct lease *lease)
{
    atomic_fetch_add_explicit(&lease->users, 1, memory_order_relaxed);
}

void
lease_lend_on(struct lease *lease)
{
    atomic_store(&lease->is_lent_on, true);
    lease_hold(lease);
}

/* The lock is held over the release, so that source_shut does not close the reader under it. */
static void
give_back(struct lease *lease)
{
    struct source *source = lease->source;

    pthread_mutex_lock(&source->lock);
    *(lease->older == NULL ? &source->oldest : &lease->older->newer) = lease->newer;
    *(lease->newer == NULL ? &source->newest : &lease->newer->older) = lease->older;
    source->supply->release(source->from, lease->lent.lent);
    pthread_cond_signal(&source->released);
    pthread_mutex_unlock(&source->lock);
    free(lease);
    source_drop(source);
}

void
lease_drop(struct lease *lease)
{
    if (lease == NULL || !lease_is_ours(lease))
        return;
    /* acq_rel: all uses in other threads come before the release. */
    if (atomic_fetch_sub_explicit(&lease->users, 1, memory_order_acq_rel) == 1)
        give_back(lease);
}

const tundish_batch *
lease_facts(const struct lease *lease)
{
    return &lease->lent.facts;
}

const tundish_batch *
lease_batch(const struct lease *lease)
{
    return lease->lent.lent;
}

tundish_status
lease_tensor(struct lease *lease, uint32_t index, tundish_tensor *ret_tensor)
{
    tundish_status status = lease->source->supply->tensor(lease->lent.lent, index, ret_tensor);

    if (status == TUNDISH_OK) {
        uintptr_t begin = (uintptr_t)ret_tensor->data;

        atomic_store_explicit(&lease->spans[index].begin, begin, memory_order_relaxed);
        atomic_store_explicit(&lease->spans[index].end, begin + ret_tensor->data_bytes,
                              memory_order_relaxed);
    }
    return status;
}

/* The source's lock is held. */
static bool
find_in(const struct source *source, uintptr_t address, struct written *ret_written)
{
    for (const struct lease *lease = source->oldest; lease != NULL; lease = lease->newer)
        for (uint32_t i = 0; i < source->column_count; i++)
            if (atomic_load_explicit(&lease->spans[i].begin, memory_order_relaxed) <= address &&
                address < atomic_load_explicit(&lease->spans[i].end, memory_order_relaxed)) {
                *ret_written = (struct written){ source->column_names[i], lease->lent.facts.epoch,
                                                 lease->lent.facts.step };
                return true;
            }
    return false;
}

bool
lease_find_column(uintptr_t address, struct written *ret_written)
{
    bool is_found = false;

    if (pthread_mutex_trylock(&sources_lock) != 0)
        return false;
    for (struct source *source = sources; source != NULL && !is_found; source = source->next)
        if (pthread_mutex_trylock(&source->lock) == 0) {
            is_found = find_in(source, address, ret_written);
            pthread_mutex_unlock(&source->lock);
        }
    pthread_mutex_unlock(&sources_lock);
    return is_found;
}

const struct source *
lease_source(const struct lease *lease)
{
    return lease->source;
}

tundish_status
lease_wait(struct lease *lease, tundish_cuda_stream stream)
{
    return lease->source->supply->wait(lease->source->from, lease->lent.lent, stream);
}

void
lease_used(struct lease *lease, tundish_cuda_stream stream)
{
    if (lease_is_ours(lease))
        lease->source->supply->used(lease->source->from, lease->lent.lent, stream);
}

bool
lease_is_ours(const struct lease *lease)
{
    return source_is_ours(lease->source);
}
