/* bytes.h - bytes that lie in somebody else's memory. */
#ifndef TND_CORE_BYTES_H
#define TND_CORE_BYTES_H

#include <stdint.h>

/* `size` bytes at `data`. Whoever hands out views of read buffers keeps 64 readable bytes behind
 * them, so that short terms may be loaded a word at a time. */
struct byte_view {
    const uint8_t *data;
    uint64_t size;
};

#endif
