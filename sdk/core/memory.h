/* memory.h - allocation that cannot fail, for the server. It ends the process, with a sentence,
 * when the kernel gives no more memory: lookahead is bounded and computed beforehand, so a limit is
 * too low, or the machine beyond help. The SDK does not use it. */
#ifndef TND_CORE_MEMORY_H
#define TND_CORE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tundish/tundish.h"

/* Before `count` threads are started: are there addresses for their stacks, and for what they
 * allocate first? There the allocator may crash by itself. E_MEMORY: there are not. */
tundish_status tnd_memory_for_threads(uint32_t count);

void *tnd_alloc(size_t bytes); /* not initialised */
/* `bytes` is a multiple of the alignment. Not initialised. */
void *tnd_alloc_aligned(size_t alignment, size_t bytes);
/* For what is touched here and there, all over: of huge pages where it is large, since each touch
 * would miss the TLB. Not initialised. */
void *tnd_alloc_scattered(size_t bytes);
void *tnd_zalloc(size_t count, size_t bytes); /* zeros; overflow ends the process */
void *tnd_realloc(void *old, size_t count, size_t bytes);
void tnd_must_have(bool memory); /* the same for what others allocate: did they get it? */
char *tnd_strdup(const char *text);
char *tnd_strndup(const char *text, size_t bytes); /* always ends with a NUL */
char *tnd_memory_joined(const char *begin, const char *between,
                        const char *end); /* one text of three */
char *tnd_sprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Room for one item more in a list that only grows this way. It doubles whenever `count` is a power
 * of two, so nobody has to store how much there is. */
static inline void *
tnd_grow(void *list, size_t count, size_t bytes)
{
    return (count & (count - 1)) != 0 ? list : tnd_realloc(list, count == 0 ? 1 : 2 * count, bytes);
}

#endif
