/* fuzz_vocab_table.c - table files with a sound seal and anything else in them.
 *
 * The input replaces the bytes of a good table from the first on, header included; the checksums of
 * header and body are then made to agree, since a fuzzer would never find them. Mapping may refuse;
 * lookups must end inside the table and give lines of it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "content/vocabulary/vocab_table.h"
#include "core/crc32c.h"
#include "core/must.h"

#define TERMS 24

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char *const texts[TERMS] = {
    "",
    "a",
    "ab",
    "abc",
    "abcd",
    "abcde",
    "abcdef",
    "abcdefg",
    "abcdefgh",
    "12345678",
    "abcdefghi",
    "0123456789abcdef",
    "12345679",
    "a term",
    "b term",
    "c",
    "d",
    "a longer term than most",
    "e",
    "f",
    "g",
    "h",
    "another one yet",
    "i",
};

static void
use(const struct vocab *vocab, const struct byte_view *terms)
{
    int64_t lines[TERMS];
    struct byte_view term;

    vocab_lookup(vocab, terms, TERMS, lines);
    for (int64_t i = 0; i < TERMS; i++) {
        must(lines[i] >= -1 && lines[i] < (int64_t)vocab_count(vocab));
        if (vocab_term(vocab, lines[i], &term))
            must(term.size == 0 || term.data[term.size - 1] <= 255);
    }
    (void)vocab_term(vocab, (int64_t)vocab_count(vocab) - 1, &term);
}

/* The bytes of a good table, in memory that is kept. */
static const uint8_t *
good_table(const struct byte_view *terms, uint64_t *ret_bytes)
{
    const struct vocab_content content = { 0 };
    static uint8_t *good;
    static uint64_t good_bytes;

    if (good == NULL)
        must(vocab_build(
                 &(struct vocab_terms){
                     .name = "fuzz", .strings = terms, .count = TERMS, .line_word = "item" },
                 &content, &good, &good_bytes) == TUNDISH_OK);
    *ret_bytes = good_bytes;
    return good;
}

/* The header's page is mostly empty: what is behind the header in the input belongs to the body. */
static uint8_t *
spoilt_table(const uint8_t *data, size_t bytes, const struct byte_view *terms, uint64_t *ret_bytes)
{
    uint64_t good_bytes;
    const uint8_t *good = good_table(terms, &good_bytes);
    size_t head = bytes < sizeof(struct vocab_header) ? bytes : sizeof(struct vocab_header);
    uint64_t body = bytes - head, whole = good_bytes;
    struct vocab_header header;
    uint8_t *table;

    if (VOCAB_HEADER_BYTES + body > whole)
        whole = VOCAB_HEADER_BYTES + body;
    table = calloc(1, whole);
    must(table != NULL);
    memcpy(table, good, good_bytes);
    if (head > 0)
        memcpy(table, data, head);
    if (body > 0)
        memcpy(table + VOCAB_HEADER_BYTES, data + head, body);
    memcpy(&header, table, sizeof header);
    header.body_crc = tnd_crc32c(0, table + VOCAB_HEADER_BYTES, whole - VOCAB_HEADER_BYTES);
    header.header_crc = tnd_crc32c(0, &header, offsetof(struct vocab_header, header_crc));
    memcpy(table, &header, sizeof header);
    *ret_bytes = whole;
    return table;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct byte_view terms[TERMS];
    struct vocab *vocab;
    uint8_t *table;
    uint64_t table_bytes;
    int file = memfd_create("table", MFD_CLOEXEC);

    for (size_t i = 0; i < TERMS; i++)
        terms[i] = bytes_of_text(texts[i]);
    table = spoilt_table(data, bytes, terms, &table_bytes);
    must(file >= 0 && pwrite(file, table, table_bytes, 0) == (ssize_t)table_bytes);
    /* A file that others may write to is refused before it is read. */
    must(fchmod(file, 0600) == 0);
    free(table);
    if (vocab_table_map(file, VOCAB_STRINGS, NULL, &vocab) == TUNDISH_OK) {
        use(vocab, terms);
        vocab_close(vocab);
    }
    close(file);
    return 0;
}
