/* memory.h - allocation that cannot fail, for the server. It ends the process when the kernel has
 * no memory left: lookahead is bounded and computed beforehand, so that is a bug or a machine
 * beyond help. The SDK does not use it. */
#ifndef TND_CORE_MEMORY_H
#define TND_CORE_MEMORY_H

#include <stddef.h>

void *tnd_alloc(size_t bytes);
void *tnd_alloc_aligned(size_t alignment, size_t bytes);
    /* a multiple of the alignment */         /* not initialised */
void *tnd_zalloc(size_t count, size_t bytes); /* zeros; overflow ends the process */
void *tnd_realloc(void *old, size_t count, size_t bytes);
char *tnd_strdup(const char *text);
char *tnd_strndup(const char *text, size_t bytes); /* always ends with a NUL */
char *tnd_sprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
