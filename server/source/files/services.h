/* services.h - what all files of a session share: descriptors, threads that read ahead, the cache
 * folder, and counters. It knows no file. */
#ifndef SOURCE_FILES_SERVICES_H
#define SOURCE_FILES_SERVICES_H

#include <stdatomic.h>

#include "core/status.h"
#include "source/files/door.h"
#include "source/files/read_ahead.h"

struct listed;
struct spec_remote;

struct source_counters {
    _Atomic uint64_t bytes_scanned, bytes_read, rows_read, files_opened, index_hits,
        program_wait_ns;
};

struct source_services {
    struct doors doors;
    struct read_ahead ahead;
    struct source_counters counters;

    bool skip_damage;                 /* a damaged file ends where its records end */
    const struct spec_remote *remote; /* how URLs are read; NULL: the defaults */
    struct remote_seen *seen;         /* or NULL */
    struct listed *listed;            /* or NULL */

    pthread_mutex_t lock; /* guards the identity of files (file.h), and all below */
    uint64_t damaged;     /* files whose end the order came to */
    const char *damage;   /* of the last of them */
    char *cache_path;     /* NULL: the default */
    int cache_folder;     /* -1: not opened yet, or not available */
    tundish_status cache_status;
    char *cache_text;
};

void services_open(struct source_services *services, const char *cache_folder,
                   uint32_t reader_count);

/* First the readers, who use the files; then, without files, the rest. */
void services_stop(struct source_services *services);
void services_close(struct source_services *services);

/* The cache folder, opened when first needed; fails every time if it could not be opened. The
 * descriptor stays the services'. */
tundish_status services_cache_folder(struct source_services *services, int *ret_folder);

/* Count a damaged file; the text stays the caller's and must live as long. How many there are, and
 * the last one's text. */
void services_add_damaged(struct source_services *services, const char *text);
uint64_t services_damaged(struct source_services *services, const char **ret_text);

static inline void
count_up(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

#endif
