/* fuzz_vocab_table.c - table files with a sound seal and anything else in them.
 *
 * The input replaces the bytes of a good table from the first on, header included; the header's
 * checksum is then made to agree, since a fuzzer would never find it. Mapping may refuse; lookups
 * must end inside the table and give lines of it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
    (void)vocab_table_is_whole(vocab);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t *good;
    static uint64_t good_bytes;
    struct byte_view terms[TERMS];
    const struct vocab_content content = { 0 };
    struct vocab_header header;
    struct vocab *vocab;
    int file = memfd_create("table", MFD_CLOEXEC);

    for (size_t i = 0; i < TERMS; i++)
        terms[i] = bytes_of_text(texts[i]);
    if (good == NULL)
        must(vocab_build(
                 &(struct vocab_terms){
                     .name = "fuzz", .strings = terms, .count = TERMS, .line_word = "item" },
                 &content, &good, &good_bytes) == TUNDISH_OK);
    must(file >= 0 && pwrite(file, good, good_bytes, 0) == (ssize_t)good_bytes);
    /* The header's page is mostly empty: what is behind the header belongs to the body. */
    if (bytes > sizeof header)
        must(pwrite(file, data + sizeof header, bytes - sizeof header, VOCAB_HEADER_BYTES) > 0);
    memcpy(&header, good, sizeof header);
    memcpy(&header, data, bytes < sizeof header ? bytes : sizeof header);
    header.header_crc = tnd_crc32c(0, &header, offsetof(struct vocab_header, header_crc));
    must(pwrite(file, &header, sizeof header, 0) == (ssize_t)sizeof header);
    if (vocab_table_map(file, VOCAB_STRINGS, NULL, &vocab) == TUNDISH_OK) {
        use(vocab, terms);
        vocab_close(vocab);
    }
    close(file);
    return 0;
}
