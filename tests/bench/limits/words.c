/* words.c - a table of words. */
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/memory.h"

struct word {
    uint64_t hash;
    uint32_t offset; /* in the text */
    uint16_t bytes;
    uint16_t is_used;
};

struct words {
    struct word *places;
    uint64_t mask;
    uint8_t *text;
    int64_t *ids;
};

uint64_t
words_hash(const uint8_t *word, size_t bytes)
{
    uint64_t hash = bytes * UINT64_C(0x9E3779B97F4A7C15);

    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t piece;

        memcpy(&piece, word + at, sizeof(piece));
        if (bytes - at < 8)
            piece &= (UINT64_C(1) << 8 * (bytes - at)) - 1;
        hash = (hash ^ piece) * UINT64_C(0xD6E8FEB86659FD93);
        hash ^= hash >> 32;
    }
    return hash;
}

void
words_expect(const struct words *words, uint64_t hash)
{
    __builtin_prefetch(&words->places[hash & words->mask]);
}

int64_t
words_find(const struct words *words, uint64_t hash, const uint8_t *word, size_t bytes,
           int64_t otherwise)
{
    for (uint64_t place = hash & words->mask; words->places[place].is_used;
         place = (place + 1) & words->mask) {
        const struct word *entry = &words->places[place];

        if (entry->hash == hash && entry->bytes == bytes &&
            memcmp(words->text + entry->offset, word, bytes) == 0)
            return words->ids[place];
    }
    return otherwise;
}

static uint8_t *
read_whole(const char *path, size_t *ret_bytes)
{
    FILE *file = fopen(path, "r");
    struct stat info;
    uint8_t *text;

    if (file == NULL || fstat(fileno(file), &info) != 0) {
        perror(path);
        exit(1);
    }
    text = tnd_zalloc(1, (size_t)info.st_size + 8);
    *ret_bytes = fread(text, 1, (size_t)info.st_size, file);
    fclose(file);
    return text;
}

static void
put(struct words *words, size_t offset, size_t bytes, int64_t id)
{
    uint64_t hash = words_hash(words->text + offset, bytes), place = hash & words->mask;

    while (words->places[place].is_used)
        place = (place + 1) & words->mask;
    words->places[place] = (struct word){ hash, (uint32_t)offset, (uint16_t)bytes, 1 };
    words->ids[place] = id;
}

struct words *
words_load(const char *path, int64_t first)
{
    struct words *words = tnd_zalloc(1, sizeof(*words));
    size_t text_bytes, count = 0;

    words->text = read_whole(path, &text_bytes);
    for (size_t i = 0; i < text_bytes; i++)
        count += words->text[i] == '\n';
    for (words->mask = 15; words->mask < 2 * count;)
        words->mask = 2 * words->mask + 1;
    words->places = tnd_zalloc(words->mask + 1, sizeof(*words->places));
    words->ids = tnd_zalloc(words->mask + 1, sizeof(*words->ids));
    for (size_t offset = 0; offset < text_bytes;) {
        const uint8_t *end = memchr(words->text + offset, '\n', text_bytes - offset);
        size_t bytes = end == NULL ? text_bytes - offset : (size_t)(end - words->text) - offset;

        put(words, offset, bytes, first++);
        offset += bytes + 1;
    }
    return words;
}
