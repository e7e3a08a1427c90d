/* memory.c - allocation that cannot fail. */
#include "core/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *
check(void *memory, size_t bytes)
{
    if (memory == NULL && bytes != 0) {
        fprintf(stderr, "tundish: out of memory (%zu bytes)\n", bytes);
        abort();
    }
    return memory;
}

void *
tnd_alloc(size_t bytes)
{
    return check(malloc(bytes), bytes);
}

void *
tnd_alloc_aligned(size_t alignment, size_t bytes)
{
    return check(aligned_alloc(alignment, bytes), bytes);
}

void *
tnd_zalloc(size_t count, size_t bytes)
{
    return check(calloc(count, bytes), count * bytes);
}

void *
tnd_realloc(void *old, size_t count, size_t bytes)
{
    return check(reallocarray(old, count, bytes), count * bytes);
}

char *
tnd_strdup(const char *text)
{
    return tnd_strndup(text, strlen(text));
}

char *
tnd_strndup(const char *text, size_t bytes)
{
    char *copy = tnd_alloc(bytes + 1);

    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return copy;
}

char *
tnd_sprintf(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    return check(text, 1);
}
