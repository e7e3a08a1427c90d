/* test_vocab_table.c - terms back from their lines, and tables that somebody has damaged. */
#include "unit/test_file.h"
#include "vocab_fixture.h"

#include "content/vocabulary/vocab_table.h"
#include "content/vocabulary/vocab_text.h"
#include "core/crc32c.h"

static void
every_line_gives_its_term_back(void **state)
{
    struct byte_view terms[300];
    uint8_t *bytes = malloc(300 * 700);
    struct vocab *vocab;
    struct byte_view term;

    (void)state;
    for (size_t i = 0; i < 300; i++) {
        uint64_t size = i < 280 ? i : i * 2; /* on both sides of the one-byte length */

        terms[i] = (struct byte_view){ bytes + i * 700, size };
        for (uint64_t j = 0; j < size; j++)
            bytes[i * 700 + j] = (uint8_t)(i * 31 + j * 7);
    }
    assert_int_equal(vocab_open_terms(cache, "list", terms, 300, &vocab), TUNDISH_OK);
    for (int64_t i = 0; i < 300; i++) {
        assert_true(vocab_term(vocab, i, &term));
        assert_true(bytes_are_equal(term, terms[i]));
    }
    assert_false(vocab_term(vocab, -1, &term));
    assert_false(vocab_term(vocab, 300, &term));
    vocab_close(vocab);
    free(bytes);
}

/* A table in memory that can be damaged and mapped. */
struct victim {
    uint8_t *bytes;
    uint64_t size;
    int file;
};

static struct victim
make_victim(size_t count)
{
    struct byte_view *terms = calloc(count, sizeof *terms);
    char *text = malloc(count * 32);
    struct vocab_content content = { 7, 8, 9, 0 };
    struct vocab_terms list = {
        .name = "list", .strings = terms, .count = count, .line_word = "item"
    };
    struct victim victim;

    for (size_t i = 0; i < count; i++) {
        sprintf(text + i * 32, i % 3 == 0 ? "%zu" : i % 3 == 1 ? "%08zu" : "a long term %zu", i);
        terms[i] = bytes_of_text(text + i * 32);
    }
    assert_int_equal(vocab_build(&list, &content, &victim.bytes, &victim.size), TUNDISH_OK);
    victim.file = open(top, O_TMPFILE | O_RDWR, 0600);
    assert_true(victim.file >= 0);
    free(terms);
    free(text);
    return victim;
}

static tundish_status
map_victim(const struct victim *victim, struct vocab **ret_vocab)
{
    struct vocab_content content = { 7, 8, 9, 0 };

    assert_int_equal(ftruncate(victim->file, 0), 0);
    assert_int_equal(pwrite(victim->file, victim->bytes, victim->size, 0), victim->size);
    return vocab_table_map(victim->file, VOCAB_STRINGS, &content, ret_vocab);
}

static void
seal_body(struct victim *victim)
{
    struct vocab_header *header = (void *)victim->bytes;

    header->body_crc =
        tnd_crc32c(0, victim->bytes + VOCAB_HEADER_BYTES, victim->size - VOCAB_HEADER_BYTES);
}

static void
seal_header(struct victim *victim)
{
    struct vocab_header *header = (void *)victim->bytes;

    header->header_crc = tnd_crc32c(0, header, offsetof(struct vocab_header, header_crc));
}

static void
free_victim(struct victim *victim)
{
    close(victim->file);
    free(victim->bytes);
}

static void
a_changed_bit_in_the_header_is_noticed(void **state)
{
    struct victim victim = make_victim(10);
    struct vocab *vocab;

    (void)state;
    assert_int_equal(map_victim(&victim, &vocab), TUNDISH_OK);
    vocab_close(vocab);
    for (size_t bit = 0; bit < sizeof(struct vocab_header) * 8; bit++) {
        victim.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(map_victim(&victim, &vocab), TUNDISH_E_CORRUPT);
        victim.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free_victim(&victim);
}

/* A bit of a key, of a value, of a filter, of the index, of a term: any of them. */
static void
a_changed_bit_in_the_body_is_noticed(void **state)
{
    struct victim victim = make_victim(40);
    struct vocab *vocab;

    (void)state;
    for (size_t bit = VOCAB_HEADER_BYTES * 8; bit < victim.size * 8; bit += 37) {
        victim.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(map_victim(&victim, &vocab), TUNDISH_E_CORRUPT);
        victim.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_int_equal(map_victim(&victim, &vocab), TUNDISH_OK);
    vocab_close(vocab);
    free_victim(&victim);
}

static void
a_shorter_or_longer_file_is_refused(void **state)
{
    struct victim victim = make_victim(10);
    struct vocab *vocab;
    uint64_t size = victim.size;

    (void)state;
    victim.bytes = realloc(victim.bytes, size + 8);
    for (victim.size = 0; victim.size < size; victim.size += 61)
        assert_int_equal(map_victim(&victim, &vocab), TUNDISH_E_CORRUPT);
    victim.size = size + 1;
    assert_int_equal(map_victim(&victim, &vocab), TUNDISH_E_CORRUPT);
    free_victim(&victim);
}

static void
numbers_out_of_range_are_refused_though_sealed(void **state)
{
    struct victim victim = make_victim(10);
    struct vocab_header *header = (void *)victim.bytes;
    const struct vocab_header sound = *header;
    struct vocab *vocab;
    uint64_t *const numbers[] = { &header->count, &header->bucket_count, &header->terms_bytes,
                                  &header->file_bytes };
    const uint64_t values[] = { 0, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 58,
                                UINT64_C(1) << 30 };

    (void)state;
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 5; j++) {
            *numbers[i] = values[j];
            seal_header(&victim);
            assert_int_equal(map_victim(&victim, &vocab), TUNDISH_E_CORRUPT);
            *header = sound;
        }
    free_victim(&victim);
}

/* Whatever stands after a sealed header, a lookup stays inside the table, ends, and gives a line
 * of the vocabulary or none. Sanitizers see the rest. */
static void
rubbish_in_the_body_gives_lines_or_nothing(void **state)
{
    struct victim victim = make_victim(200);
    struct vocab_header *header = (void *)victim.bytes;
    struct byte_view terms[256];
    char text[256][32];
    int64_t lines[256];
    struct vocab *vocab;
    struct byte_view term;

    (void)state;
    srand(11);
    for (size_t i = 0; i < 256; i++) {
        sprintf(text[i], i % 3 == 0 ? "%zu" : i % 3 == 1 ? "%08zu" : "a long term %zu", i);
        terms[i] = bytes_of_text(text[i]);
    }
    for (int round = 0; round < 300; round++) {
        int changes = round % 2 == 0 ? 40 : 4000;

        for (int i = 0; i < changes; i++)
            victim
                .bytes[VOCAB_HEADER_BYTES + (unsigned)rand() % (victim.size - VOCAB_HEADER_BYTES)] =
                (uint8_t)(round % 3 == 0 ? 0xFF : rand());
        header->longest_probe = round % 5 == 0 ? UINT64_MAX : 3;
        seal_body(&victim);
        seal_header(&victim);
        assert_int_equal(map_victim(&victim, &vocab), TUNDISH_OK);
        vocab_lookup(vocab, terms, 256, lines);
        for (size_t i = 0; i < 256; i++)
            assert_true(lines[i] >= -1 && lines[i] < 200);
        for (int64_t line = 0; line < 200; line++)
            if (vocab_term(vocab, line, &term))
                assert_true(term.data >= vocab->terms &&
                            term.data + term.size <= vocab->terms + vocab->terms_bytes);
        vocab_close(vocab);
    }
    free_victim(&victim);
}

static void
a_damaged_table_in_the_cache_is_built_again(void **state)
{
    struct vocab *vocab = open_text("v.txt", "a\nb\nc\n");
    struct path table = only_table();
    int file = open(table.text, O_RDWR);

    (void)state;
    vocab_close(vocab);
    assert_int_equal(pwrite(file, "rubbish", 7, 40), 7);
    close(file);
    vocab = open_text("v.txt", "a\nb\nc\n");
    assert_int_equal(line_of(vocab, "c"), 2);
    vocab_close(vocab);
    assert_int_equal(truncate(table.text, 100), 0);
    vocab = open_text("v.txt", "a\nb\nc\n");
    assert_int_equal(line_of(vocab, "b"), 1);
    vocab_close(vocab);
}

/* Whichever bit of the file a disk changes, the terms have the lines of the text. */
static void
a_flipped_bit_in_the_cache_changes_no_line(void **state)
{
    const char text[] = "a\nbcd\nlonger than eight\n12345678\n";
    struct vocab *vocab = open_text("v.txt", text);
    struct path table = only_table();
    struct stat about;

    (void)state;
    vocab_close(vocab);
    assert_int_equal(stat(table.text, &about), 0);
    for (off_t at = VOCAB_HEADER_BYTES; at < about.st_size; at += 3) {
        int file = open(table.text, O_RDWR);
        uint8_t byte;

        assert_int_equal(pread(file, &byte, 1, at), 1);
        byte ^= (uint8_t)(1 << at % 8);
        assert_int_equal(pwrite(file, &byte, 1, at), 1);
        close(file);
        vocab = open_text("v.txt", text);
        assert_int_equal(line_of(vocab, "a"), 0);
        assert_int_equal(line_of(vocab, "bcd"), 1);
        assert_int_equal(line_of(vocab, "longer than eight"), 2);
        assert_int_equal(line_of(vocab, "12345678"), 3);
        assert_int_equal(line_of(vocab, "b"), -1);
        vocab_close(vocab);
    }
}

/* Of which the bytes are gone by then: the table itself has the terms. */
static void
a_text_and_its_lines_make_the_same_table(void **state)
{
    enum { COUNT = 3000 };
    struct vocab_content content = { 7, 8, 9, 0 };
    struct byte_view lines[COUNT];
    struct vocab_text text = { .path = "text", .bytes = malloc(COUNT * 32) };
    char *copy = malloc(COUNT * 32);
    uint8_t *of_text, *of_lines;
    uint64_t text_bytes, lines_bytes;

    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        text.size += (uint64_t)sprintf((char *)text.bytes + text.size,
                                       i % 2 == 0 ? "%zu\r\n" : "a longer term %zu\n", i);
    memcpy(copy, text.bytes, text.size);
    assert_int_equal(vocab_text_split(&text, VOCAB_STRINGS), TUNDISH_OK);
    assert_int_equal(text.count, COUNT);
    for (uint64_t i = 0, at = 0; i < COUNT; i++) {
        lines[i] = vocab_text_next(&text, &at);
        lines[i].data = (const uint8_t *)copy + (lines[i].data - text.bytes);
    }
    assert_int_equal(vocab_build(&(struct vocab_terms){ .name = "text",
                                                        .text = &text,
                                                        .count = text.count,
                                                        .line_word = "line" },
                                 &content, &of_text, &text_bytes),
                     TUNDISH_OK);
    assert_null(text.bytes);
    assert_int_equal(vocab_build(&(struct vocab_terms){ .name = "lines",
                                                        .strings = lines,
                                                        .count = COUNT,
                                                        .line_word = "line" },
                                 &content, &of_lines, &lines_bytes),
                     TUNDISH_OK);
    assert_int_equal(text_bytes, lines_bytes);
    assert_memory_equal(of_text, of_lines, text_bytes);
    free(of_text);
    free(of_lines);
    free(copy);
    vocab_text_close(&text);
}

TEST_FILE(test_vocab_table)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_line_gives_its_term_back, empty_cache),
        cmocka_unit_test_setup(a_changed_bit_in_the_header_is_noticed, empty_cache),
        cmocka_unit_test_setup(a_changed_bit_in_the_body_is_noticed, empty_cache),
        cmocka_unit_test_setup(a_shorter_or_longer_file_is_refused, empty_cache),
        cmocka_unit_test_setup(numbers_out_of_range_are_refused_though_sealed, empty_cache),
        cmocka_unit_test_setup(rubbish_in_the_body_gives_lines_or_nothing, empty_cache),
        cmocka_unit_test_setup(a_damaged_table_in_the_cache_is_built_again, empty_cache),
        cmocka_unit_test_setup(a_flipped_bit_in_the_cache_changes_no_line, empty_cache),
        cmocka_unit_test(a_text_and_its_lines_make_the_same_table),
    };

    return cmocka_run_group_tests(tests, make_top, remove_top);
}
