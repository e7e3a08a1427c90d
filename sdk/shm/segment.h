/* segment.h - memory that two processes share. The kernel frees it with the last of them. */
#ifndef TND_SHM_SEGMENT_H
#define TND_SHM_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "tundish/tundish.h"

/* A segment of the server: mapped for writing here, handed on through `read_descriptor`. */
struct tnd_segment {
    uint8_t *bytes; /* NULL: none */
    uint64_t segment_bytes;
    int read_descriptor; /* what consumers get; they cannot write through it */
    bool is_memfd;
    char note[160]; /* not empty: why /dev/shm was not used although it was asked for */
};

#define TND_SEGMENT_NONE                                                                           \
    {                                                                                              \
        .bytes = NULL, .read_descriptor = -1                                                       \
    }

/* Memory of the kernel's, zeroed and there (no SIGBUS later), under no name. In /dev/shm, or in a
 * sealed memfd if asked for or if /dev/shm has no room. E_MEMORY, E_SYSTEM. */
tundish_status tnd_segment_create(uint64_t segment_bytes, bool memfd, bool huge_pages,
                                  struct tnd_segment *ret_segment);

/* The bytes of batches that fit into memory now, in /dev/shm unless memfd is asked for. */
uint64_t tnd_segment_room(bool memfd);

/* Is there memory for `count` objects of bytes_each? The limit is limit_bytes; 0 stands for the
 * machine's memory, which is not examined for small amounts. */
struct tnd_room {
    uint64_t wanted_bytes; /* UINT64_MAX: more than can be counted */
    uint64_t limit_bytes;
};
bool tnd_segment_memory_holds(uint64_t count, uint64_t bytes_each, uint64_t limit_bytes,
                              struct tnd_room *ret_room);

/* A page that one consumer writes and the server reads: always a sealed memfd. The process
 * that receives the descriptor may map it for writing. */
tundish_status tnd_segment_create_returns(uint64_t segment_bytes, struct tnd_segment *ret_segment);

/* Unmap, close. Accepts TND_SEGMENT_NONE and zeros. */
void tnd_segment_close(struct tnd_segment *segment);

/* Map what another process sent. E_CORRUPT unless the file has exactly that many bytes. The
 * descriptor stays the caller's. */
tundish_status tnd_segment_map(int descriptor, uint64_t segment_bytes, bool writable,
                               void **ret_bytes);
void tnd_segment_unmap(void *bytes, uint64_t segment_bytes); /* accepts NULL */

/* Remove names in /dev/shm that a server killed between shm_open and shm_unlink left there. Returns
 * how many. */
unsigned tnd_segment_sweep(void);

#endif
