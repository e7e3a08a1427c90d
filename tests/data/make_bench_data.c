/* make_bench_data.c - write what the benchmarks read besides the click log.
 *
 *     make_bench_data images DIR      images-0.tfrecord, images-1.tfrecord: 1,251 records each of
 *                                     about 115 KB of noise, as an ImageNet shard has
 *     make_bench_data text DIR        text.txt: 500,000 sentences; words.txt: 50,000 of their words
 *     make_bench_data blocks DIR KIB  blocks-KIB.npy: a few rows of KIB KiB of float32, the first
 *                                     value of each being its number
 *     make_bench_data terms DIR       terms.txt: a million terms; lookups.txt: four million draws
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

#include "draw.h"
#include "sample_output.h"

enum { SEED = 20240607 };

#define IMAGE_SHARDS 2
#define IMAGES_PER_SHARD 1251
#define IMAGE_BYTES_MAX 180000
#define WORD_COUNT 80000       /* in the text; */
#define KNOWN_WORD_COUNT 50000 /* of them in words.txt */
#define WORD_BYTES 32
#define SENTENCE_COUNT 500000
#define BLOCK_COUNT 4
#define NPY_HEADER_BYTES 128
#define TERM_COUNT 1000000
#define LOOKUP_COUNT 4000000

static void
fill_with_noise(uint64_t *words, size_t count, uint64_t row)
{
    for (size_t i = 0; i < count; i++)
        words[i] = draw_bits(SEED, row, i);
}

static size_t
image_bytes(uint64_t row)
{
    double bytes = 114660.0 + 12000.0 * draw_normal(SEED, row, 1);

    return (size_t)fmin(fmax(bytes, 60000.0), IMAGE_BYTES_MAX);
}

static void
write_images(const char *folder)
{
    static uint64_t noise[IMAGE_BYTES_MAX / 8 + 1];

    for (uint64_t shard = 0; shard < IMAGE_SHARDS; shard++) {
        struct output output;

        output_open(&output, "%s/images-%" PRIu64 ".tfrecord", folder, shard);
        for (uint64_t i = 0; i < IMAGES_PER_SHARD; i++) {
            uint64_t row = shard * IMAGES_PER_SHARD + i;

            fill_with_noise(noise, sizeof(noise) / sizeof(noise[0]), row);
            output_record(&output, noise, image_bytes(row));
        }
        output_close(&output);
    }
}

/* One to four syllables, and a consonant behind some. A word's number stands in its syllables, so
 * no two words are alike. */
static void
spell(uint32_t number, char word[WORD_BYTES])
{
    static const char *const onsets[] = { "b", "c", "d", "f", "g", "h", "k",  "l",  "m",  "n",
                                          "p", "r", "s", "t", "v", "w", "st", "tr", "ch", "pl" };
    static const char *const vowels[] = { "a", "e", "i", "o", "u", "ai", "ea", "ou" };
    uint32_t rest = number;

    word[0] = '\0';
    do {
        strcat(word, onsets[rest % 20]);
        strcat(word, vowels[rest / 20 % 8]);
        rest /= 160;
    } while (rest-- > 0);
    if (draw_uniform(SEED, number, 2) < 0.4)
        strcat(word, "x");
}

static void
write_word(FILE *file, const char *word, double decoration, bool is_first)
{
    char first = is_first || (decoration >= 0.12 && decoration < 0.20) ? (char)(word[0] - 'a' + 'A')
                                                                       : word[0];

    if (decoration < 0.08)
        fprintf(file, "%c%s,", first, word + 1);
    else if (decoration < 0.10)
        fprintf(file, "\"%c%s\"", first, word + 1);
    else if (decoration < 0.12)
        fprintf(file, "%c'%s", first, word + 1);
    else
        fprintf(file, "%c%s", first, word + 1);
}

static void
write_sentence(FILE *file, uint64_t row, char (*words)[WORD_BYTES])
{
    double length = fmin(fmax(20.0 + 4.5 * draw_normal(SEED, row, 3), 3.0), 60.0);

    for (uint64_t i = 0; i < (uint64_t)length; i++) {
        uint32_t rank = draw_zipf(draw_uniform(SEED, row, 5 + 2 * i), WORD_COUNT);

        if (i > 0)
            putc(' ', file);
        write_word(file, words[rank], draw_uniform(SEED, row, 6 + 2 * i), i == 0);
    }
    fputs(".\n", file);
}

static void
write_text(const char *folder)
{
    char(*words)[WORD_BYTES] = tnd_zalloc(WORD_COUNT, sizeof(*words));
    struct output text, known;

    output_open(&known, "%s/words.txt", folder);
    for (uint32_t i = 0; i < WORD_COUNT; i++) {
        spell(i, words[i]);
        if (i < KNOWN_WORD_COUNT)
            fprintf(known.file, "%s\n", words[i]);
    }
    output_close(&known);
    output_open(&text, "%s/text.txt", folder);
    for (uint64_t row = 0; row < SENTENCE_COUNT; row++)
        write_sentence(text.file, row, words);
    output_close(&text);
    free(words);
}

/* What numpy.load and from_tensor_slices read: a float32 matrix. */
static void
write_npy_header(FILE *file, uint64_t rows, uint64_t columns)
{
    char header[NPY_HEADER_BYTES + 1];
    int length = NPY_HEADER_BYTES - 10; /* of the text, behind the magic and its own length */

    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)length;
    header[9] = 0;
    snprintf(header + 10, sizeof header - 10, "%-*s\n", length - 1, "");
    length =
        snprintf(header + 10, sizeof header - 10,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRIu64 ", %" PRIu64 "), }",
                 rows, columns);
    header[10 + length] = ' ';
    fwrite(header, 1, NPY_HEADER_BYTES, file);
}

static void
write_blocks(const char *folder, uint64_t kib)
{
    uint64_t value_count = kib * 256;
    float *block = tnd_zalloc(value_count, sizeof(*block));
    struct output output;

    for (uint64_t i = 0; i < value_count; i++)
        block[i] = (float)draw_uniform(SEED, kib, i);
    output_open(&output, "%s/blocks-%" PRIu64 ".npy", folder, kib);
    write_npy_header(output.file, BLOCK_COUNT, value_count);
    for (uint64_t i = 0; i < BLOCK_COUNT; i++) {
        block[0] = (float)i;
        fwrite(block, sizeof(*block), value_count, output.file);
    }
    output_close(&output);
    free(block);
}

static void
write_term(FILE *file, uint32_t number)
{
    fprintf(file, "%016" PRIx64 "%" PRIu32 "\n", draw_bits(SEED, number, 4), number);
}

static void
write_terms(const char *folder)
{
    struct output terms, lookups;

    output_open(&terms, "%s/terms.txt", folder);
    for (uint32_t i = 0; i < TERM_COUNT; i++)
        write_term(terms.file, i);
    output_close(&terms);
    output_open(&lookups, "%s/lookups.txt", folder);
    for (uint64_t row = 0; row < LOOKUP_COUNT; row++)
        write_term(lookups.file,
                   draw_zipf(draw_uniform(SEED, row, 5), TERM_COUNT + TERM_COUNT / 20));
    output_close(&lookups);
}

int
main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "", *folder = argc > 2 ? argv[2] : "";
    bool has_size = strcmp(kind, "blocks") == 0;

    if (argc != (has_size ? 4 : 3))
        fail("usage: make_bench_data images|text|terms DIR, or blocks DIR KIB");
    make_folder("%s", folder);
    if (has_size)
        write_blocks(folder, parse_number("KIB", argv[3], 1, 1 << 20));
    else if (strcmp(kind, "images") == 0)
        write_images(folder);
    else if (strcmp(kind, "text") == 0)
        write_text(folder);
    else if (strcmp(kind, "terms") == 0)
        write_terms(folder);
    else
        fail("'%s' is not one of images, text, blocks, terms", kind);
    return 0;
}
