/* words.h - words of any length to their lines. */
#ifndef WORDS_H
#define WORDS_H

#include <stddef.h>
#include <stdint.h>

struct words;

/* The lines of a file, numbered from `first`. Ends the program if it cannot be read. */
struct words *words_load(const char *path, int64_t first);

/* `word` has 8 readable bytes at least after its end. */
uint64_t words_hash(const uint8_t *word, size_t bytes);
void words_expect(const struct words *words, uint64_t hash); /* it will be asked for soon */
int64_t words_find(const struct words *words, uint64_t hash, const uint8_t *word, size_t bytes,
                   int64_t otherwise);

#endif
