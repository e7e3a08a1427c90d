/* mapped.c - a list of mappings that a signal handler may walk at any time. So entries are reused,
 * never freed. */
#include "core/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/status.h"

enum { PATH_BYTES = 512 };

struct tnd_mapped {
    struct tnd_mapped *next;
    _Atomic uintptr_t begin, end; /* begin 0: not in use */
    _Atomic uintptr_t cut;        /* zeros from here on; else `end` */
    _Atomic bool is_cut;
    uint64_t bytes;
    enum tnd_mapped_use use;
    char path[PATH_BYTES]; /* for the sentence */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards changes of the list */
static struct tnd_mapped *_Atomic all;
static _Atomic bool something_is_cut; /* of a file that is read */
static struct sigaction before;
static uintptr_t page_bytes;

/* Replace the rest of the mapping by zeros. Called in the signal handler: atomics and mmap only. */
static bool
replace(struct tnd_mapped *mapped, uintptr_t address)
{
    uintptr_t cut = atomic_load(&mapped->cut);
    uintptr_t page = address / page_bytes * page_bytes;

    if (address < atomic_load(&mapped->begin) || address >= atomic_load(&mapped->end))
        return false;
    if (address >= cut) /* another thread was faster */
        return true;
    if (mmap((void *)page, cut - page, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return false;
    atomic_store(&mapped->cut, page);
    atomic_store(&mapped->is_cut, true);
    if (mapped->use == TND_MAPPED_READ)
        atomic_store(&something_is_cut, true);
    return true;
}

static void
on_sigbus(int number, siginfo_t *about, void *context)
{
    int error = errno;

    (void)number, (void)context;
    for (struct tnd_mapped *mapped = atomic_load(&all); mapped != NULL; mapped = mapped->next)
        if (replace(mapped, (uintptr_t)about->si_addr)) {
            errno = error;
            return;
        }
    /* After the return the access faults again, and the previous handler gets that signal. */
    sigaction(SIGBUS, &before, NULL);
}

/* The lock is held. Another library may have replaced our handler since, so look each time. */
static void
take_signal(void)
{
    struct sigaction action = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_RESTART };
    struct sigaction present;

    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigaction(SIGBUS, NULL, &present);
    if (present.sa_sigaction == on_sigbus)
        return;
    before = present;
    sigaction(SIGBUS, &action, NULL);
}

/* The lock is held. */
static struct tnd_mapped *
take_entry(void)
{
    struct tnd_mapped *mapped = atomic_load(&all);

    while (mapped != NULL && atomic_load(&mapped->begin) != 0)
        mapped = mapped->next;
    if (mapped == NULL) {
        mapped = tnd_zalloc(1, sizeof *mapped);
        mapped->next = atomic_load(&all);
        atomic_store(&all, mapped);
    }
    return mapped;
}

static void
note_path(int file, char path[PATH_BYTES])
{
    char link[40];
    ssize_t used;

    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    used = readlink(link, path, PATH_BYTES - 1);
    path[used > 0 ? used : 0] = '\0';
}

tundish_status
tnd_mapped_open(int file, uint64_t bytes, enum tnd_mapped_use use, struct tnd_mapped **ret_mapped)
{
    int protection = use == TND_MAPPED_WRITE ? PROT_READ | PROT_WRITE : PROT_READ;
    void *begin = mmap(NULL, bytes, protection, MAP_SHARED, file, 0);
    struct tnd_mapped *mapped;

    if (begin == MAP_FAILED)
        return tnd_fail_errno(errno, "cannot map a file of %llu bytes", (unsigned long long)bytes);
    pthread_mutex_lock(&lock);
    take_signal();
    mapped = take_entry();
    mapped->bytes = bytes;
    mapped->use = use;
    note_path(file, mapped->path);
    atomic_store(&mapped->is_cut, false);
    atomic_store(&mapped->cut, (uintptr_t)begin + bytes);
    atomic_store(&mapped->end, (uintptr_t)begin + bytes);
    /* Last: the handler skips the entry until `begin` is set. */
    atomic_store(&mapped->begin, (uintptr_t)begin);
    pthread_mutex_unlock(&lock);
    *ret_mapped = mapped;
    return TUNDISH_OK;
}

/* The lock is held. A mapping that is read and was cut, or NULL. */
static const struct tnd_mapped *
find_cut(void)
{
    for (const struct tnd_mapped *mapped = atomic_load(&all); mapped != NULL; mapped = mapped->next)
        if (atomic_load(&mapped->begin) != 0 && mapped->use == TND_MAPPED_READ &&
            atomic_load(&mapped->is_cut))
            return mapped;
    return NULL;
}

void
tnd_mapped_close(struct tnd_mapped *mapped)
{
    void *begin;

    if (mapped == NULL)
        return;
    pthread_mutex_lock(&lock);
    begin = tnd_mapped_bytes(mapped);
    /* `end` first: from then on the handler matches no address, and may not touch what is mapped
     * there next. */
    atomic_store(&mapped->end, 0);
    atomic_store(&mapped->begin, 0);
    munmap(begin, mapped->bytes);
    if (find_cut() == NULL)
        atomic_store(&something_is_cut, false);
    pthread_mutex_unlock(&lock);
}

void *
tnd_mapped_bytes(const struct tnd_mapped *mapped)
{
    return (void *)atomic_load(&mapped->begin);
}

bool
tnd_mapped_is_cut(const struct tnd_mapped *mapped)
{
    return atomic_load(&mapped->is_cut);
}

tundish_status
tnd_mapped_check(void)
{
    const struct tnd_mapped *cut;
    tundish_status status = TUNDISH_OK;

    if (!atomic_load_explicit(&something_is_cut, memory_order_relaxed))
        return TUNDISH_OK;
    pthread_mutex_lock(&lock);
    cut = find_cut();
    if (cut != NULL)
        status = tnd_fail(
            TUNDISH_E_CORRUPT,
            "another program truncated %s while it was in use: restart, which builds it again",
            cut->path);
    pthread_mutex_unlock(&lock);
    return status;
}
