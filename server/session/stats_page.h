/* stats_page.h - figures of a running server, in a file that others map and read.
 *
 * Beside the socket, named PATH.stats, mode 0600. One writer, the server, which only stores; a
 * reader can neither stall nor disturb it, and reads on after it died. Counters only ever grow
 * while the server lives.
 */
#ifndef SESSION_STATS_PAGE_H
#define SESSION_STATS_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/status.h"

#define STATS_MAGIC UINT64_C(0x3154415453444e54) /* "TNDSTAT1", little-endian */

enum { STATS_STREAMS = 16, STATS_LANES = 64 };

struct stats_lane {
    _Atomic uint64_t published, released; /* batches and ends, counted from the start */
    _Atomic uint64_t trainer_waits;       /* 1: its trainer is out of batches */
    uint64_t reserved;
};

struct stats_stream {
    char name[64];
    _Atomic uint64_t epoch, step; /* of the last batch published */
    _Atomic uint64_t steps;       /* published */
    _Atomic uint64_t rows_read, bytes_read, rows_skipped;
    _Atomic uint64_t work_ns, wait_ns; /* of all threads that make content; waiting: for slots */
    _Atomic uint64_t failed;
    uint32_t thread_count, lane_count;
    struct stats_lane lanes[STATS_LANES];
};

struct stats_page {
    _Atomic uint64_t magic; /* stored last */
    int64_t process;
    uint32_t stream_count, reserved;
    int64_t started_ns; /* CLOCK_MONOTONIC */
    struct stats_stream streams[STATS_STREAMS];
};

/* Make the file for the server at `socket_path`; what a dead server left is replaced. */
tundish_status stats_page_create(const char *socket_path, struct stats_page **ret_page);
void stats_page_remove(const char *socket_path, struct stats_page *page);

/* Map the file of a running server, read-only. E_SERVER_GONE if there is none. */
tundish_status stats_page_map(const char *socket_path, const struct stats_page **ret_page);
void stats_page_unmap(const struct stats_page *page);

#endif
