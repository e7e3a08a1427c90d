/* spec_memory.h - one owner for everything that belongs to a parsed file. */
#ifndef SPEC_SPEC_MEMORY_H
#define SPEC_SPEC_MEMORY_H

#include <stddef.h>

struct spec_memory;

struct spec_memory *spec_memory_open(void);
void spec_memory_close(struct spec_memory *memory); /* frees all that was taken; accepts NULL */

/* Zeroed, aligned for any type. */
void *spec_memory_take(struct spec_memory *memory, size_t count, size_t bytes);

/* A copy of `text`, with a NUL after it. */
char *spec_memory_text(struct spec_memory *memory, const char *text, size_t text_bytes);

/* As sprintf, into this memory. */
char *spec_memory_sprintf(struct spec_memory *memory, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
