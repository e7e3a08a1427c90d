/* stats_private.h - internals of the metrics writer. */
#ifndef STATS_STATS_PRIVATE_H
#define STATS_STATS_PRIVATE_H

#include <pthread.h>

#include "stats/memory_pressure.h"
#include "stats/processors.h"
#include "stats/stats_writer.h"

enum { PATH_BYTES = 160 };

struct unseen;

/* A set's values, or a track (kind TND_STATS_KINDS). */
struct dropped {
    struct dropped *next;
    enum tnd_stats_kind kind;
    void *slot;
};

/* As in a TEXT entry. */
struct text_name {
    char name[16], stream[TND_STATS_VALUE_BYTES];
};

struct stats {
    char path[PATH_BYTES];
    int file;
    struct tnd_mapped *map;
    struct tnd_stats_header *header; /* in the map: written only, since others may write there */
    uint64_t file_bytes, note_count; /* as in the header, and so the next two */
    _Atomic uint64_t used_bytes;
    uint64_t tracks_offset;
    bool cut_was_said;
    uint64_t entries_end, tracks_begin; /* below and from here on there is memory */
    uint64_t kinds[TND_STATS_KINDS];    /* offsets of their entries; 0: not there yet */
    pthread_mutex_t lock;               /* guards appending, unseen and notes */
    struct unseen *unseen;              /* what found no room */
    uint64_t unseen_count;
    bool unseen_was_said;
    struct dropped *dropped; /* sets and tracks that may be used again */
    struct text_name *texts; /* those in the file */
    uint32_t text_count;
    struct tnd_stats_server *server;
    struct processors *processors; /* looked at by stats_show_process alone, as are the next */
    struct memory_pressure memory_pressure;
    int64_t processors_seen_ns;
    struct tnd_stats_rival *rival; /* NULL: none is shown */
    int64_t shown_rival;
    _Atomic bool has_relayed; /* there are files of other nodes */
};

#endif
