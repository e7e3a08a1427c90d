/* limit_vocab.c - lines looked up in a million terms: limit_vocab DIR [THREADS] */
#include <stdlib.h>
#include <string.h>

#include "limit.h"
#include "words.h"

enum { BATCH_ROWS = 8192, BLOCK_ROWS = 64, BUFFER_BYTES = 1 << 20 };

static const struct words *terms;

struct line {
    const uint8_t *text;
    size_t bytes;
    uint64_t hash;
};

static void
look_up(struct share *share, const struct line *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t *batch = (int64_t *)(void *)share_slot(share);

        batch[share->rows % BATCH_ROWS] =
            words_find(terms, lines[i].hash, lines[i].text, lines[i].bytes, 0);
        if (++share->rows % BATCH_ROWS == 0)
            share->batches++;
    }
}

static void
pass(struct share *share)
{
    struct input *input = &share->input;
    struct line lines[BLOCK_ROWS];
    size_t count = 0;

    while (input_fill(input)) {
        const uint8_t *at = input->buffer, *end = input->buffer + input->used, *newline;

        while ((newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
            lines[count] =
                (struct line){ at, (size_t)(newline - at), words_hash(at, (size_t)(newline - at)) };
            words_expect(terms, lines[count].hash);
            if (++count == BLOCK_ROWS) {
                look_up(share, lines, count);
                count = 0;
            }
            at = newline + 1;
        }
        look_up(share, lines, count);
        count = 0;
        input->begin = (size_t)(at - input->buffer);
    }
    share->bytes = share->rows * sizeof(int64_t);
}

int
main(int argc, char **argv)
{
    const char *folder = limit_folder(argc, argv), *path = limit_path("%s/lookups.txt", folder);
    const struct limit limit = { BATCH_ROWS * sizeof(int64_t), BUFFER_BYTES, true, pass };

    terms = words_load(limit_path("%s/terms.txt", folder), 1);
    return limit_measure(&limit, &path, 1, limit_threads(argc, argv));
}
