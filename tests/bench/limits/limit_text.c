/* limit_text.c - sentences to 32 word numbers each: limit_text DIR [THREADS]
 *
 * Lower case, ASCII punctuation left out, cut at blanks; 0 fills up, 1 is an unknown word.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "limit.h"
#include "words.h"

enum { BATCH_ROWS = 1024, SENTENCE_WORDS = 32, BUFFER_BYTES = 1 << 18, WORDS_MAX = 128 };

static const struct words *known;

/* What becomes of a byte: 0 is left out. */
static uint8_t becomes[256];

struct sentence {
    uint8_t text[8192]; /* what is left of it, words one after the other */
    struct {
        size_t offset, bytes;
        uint64_t hash;
    } words[WORDS_MAX];
    size_t word_count;
};

static void
end_word(struct sentence *sentence, size_t start, size_t end)
{
    if (end == start || sentence->word_count == SENTENCE_WORDS)
        return;
    sentence->words[sentence->word_count].offset = start;
    sentence->words[sentence->word_count].bytes = end - start;
    sentence->words[sentence->word_count].hash = words_hash(sentence->text + start, end - start);
    words_expect(known, sentence->words[sentence->word_count].hash);
    sentence->word_count++;
}

static void
cut(struct sentence *sentence, const uint8_t *text, size_t bytes)
{
    size_t start = 0, end = 0;

    sentence->word_count = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == ' ') {
            end_word(sentence, start, end);
            start = end;
        } else {
            sentence->text[end] = becomes[text[i]];
            end += becomes[text[i]] != 0;
        }
    }
    end_word(sentence, start, end);
}

static void
take_sentence(struct share *share, struct sentence *sentence)
{
    int64_t *ids = (int64_t *)(void *)share_slot(share) + share->rows % BATCH_ROWS * SENTENCE_WORDS;

    for (size_t i = 0; i < sentence->word_count; i++)
        ids[i] =
            words_find(known, sentence->words[i].hash, sentence->text + sentence->words[i].offset,
                       sentence->words[i].bytes, 1);
    memset(ids + sentence->word_count, 0, (SENTENCE_WORDS - sentence->word_count) * sizeof(*ids));
    if (++share->rows % BATCH_ROWS == 0)
        share->batches++;
}

static void
pass(struct share *share)
{
    struct input *input = &share->input;
    struct sentence sentence;

    while (input_fill(input)) {
        const uint8_t *at = input->buffer, *end = input->buffer + input->used, *newline;

        while ((newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
            if ((size_t)(newline - at) > sizeof(sentence.text) - 8)
                abort();
            cut(&sentence, at, (size_t)(newline - at));
            take_sentence(share, &sentence);
            at = newline + 1;
        }
        input->begin = (size_t)(at - input->buffer);
    }
    share->bytes = share->rows * SENTENCE_WORDS * sizeof(int64_t);
}

int
main(int argc, char **argv)
{
    const char *folder = limit_folder(argc, argv), *path = limit_path("%s/text.txt", folder);
    const struct limit limit = { BATCH_ROWS * SENTENCE_WORDS * sizeof(int64_t), BUFFER_BYTES, true,
                                 pass };

    for (int byte = 0; byte < 256; byte++)
        becomes[byte] = (uint8_t)(ispunct(byte) ? 0 : tolower(byte));
    known = words_load(limit_path("%s/words.txt", folder), 2);
    return limit_measure(&limit, &path, 1, limit_threads(argc, argv));
}
