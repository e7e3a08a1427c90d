/* vocab_text.c - read a text file of terms as TensorFlow does. */
#include "content/vocabulary/vocab_text.h"

#include <inttypes.h>
#include <stdlib.h>

#include "content/text/texts.h"
#include "core/crc32c.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "core/read_write.h"
#include "core/status.h"

tundish_status
vocab_text_read(int file, const char *path, uint64_t size, struct vocab_text *ret_text)
{
    struct vocab_text text = { .path = path, .size = size };
    tundish_status status = TUNDISH_OK;
    size_t got = 0;
    int error;

    if (size > VOCAB_MAX_TEXT_BYTES)
        return tnd_fail(TUNDISH_E_PIPELINE,
                        "vocabulary %s has %" PRIu64 " bytes, more than %" PRIu64, path, size,
                        VOCAB_MAX_TEXT_BYTES);
    text.bytes = tnd_alloc(size + 1);
    error = tnd_read_at(file, text.bytes, size, 0, &got);
    if (error != 0)
        status = tnd_fail_errno(error, "cannot read vocabulary %s", path);
    else if (got < size)
        status = tnd_fail(TUNDISH_E_DATA, "vocabulary %s became shorter while it was read", path);
    if (status != TUNDISH_OK) {
        free(text.bytes);
        return status;
    }
    text.content = (struct vocab_content){
        .bytes = size,
        .hash = tnd_hash_farm(text.bytes, size),
        .crc = tnd_crc32c(0, text.bytes, size),
    };
    *ret_text = text;
    return TUNDISH_OK;
}

/* Lines as TextFileLineIterator sees them: a last line without a line feed counts. */
static uint64_t
count_lines(const struct vocab_text *text)
{
    const uint8_t *at = text->bytes;
    const uint8_t *end = text->bytes + text->size;
    uint64_t lines = 0;

    while (at != end) {
        const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));

        lines++;
        at = newline == NULL ? end : newline + 1;
    }
    return lines;
}

/* A decimal number with optional blanks around it, as strings::safe_strto64 accepts it. */
static bool
parse_integer(struct byte_view term, int64_t *ret_value)
{
    uint64_t from = 0, to = term.size;
    uint64_t magnitude = 0;
    bool is_negative;

    while (from < to && text_is_blank(term.data[from]))
        from++;
    while (to > from && text_is_blank(term.data[to - 1]))
        to--;
    is_negative = from < to && term.data[from] == '-';
    if (is_negative || (from < to && term.data[from] == '+'))
        from++;
    if (from == to)
        return false;
    for (; from < to; from++) {
        unsigned digit = (unsigned)term.data[from] - '0';

        /* The magnitude of INT64_MIN is 2^63, so stop just above it. */
        if (digit > 9 || magnitude > ((UINT64_C(1) << 63) - digit) / 10)
            return false;
        magnitude = magnitude * 10 + digit;
    }
    if (magnitude > (uint64_t)INT64_MAX + is_negative)
        return false;
    *ret_value = (int64_t)(is_negative ? -magnitude : magnitude);
    return true;
}

/* A carriage return at the end of a line is dropped, as by TensorFlow. */
struct byte_view
vocab_text_next(const struct vocab_text *text, uint64_t *at)
{
    const uint8_t *line = text->bytes + *at;
    const uint8_t *newline = memchr(line, '\n', (size_t)(text->size - *at));
    uint64_t bytes = newline == NULL ? text->size - *at : (uint64_t)(newline - line);

    *at += bytes + (newline != NULL);
    if (bytes > 0 && line[bytes - 1] == '\r')
        bytes--;
    return (struct byte_view){ line, bytes };
}

/* Add one line. An empty one is refused, as by TensorFlow. */
static tundish_status
take_line(struct vocab_text *text, struct byte_view line)
{
    const uint64_t number = text->count + 1;

    if (line.size == 0)
        return tnd_fail(TUNDISH_E_PIPELINE,
                        "vocabulary %s: empty line found at position %td (line %" PRIu64
                        "); each line must contain a term",
                        text->path, line.data - text->bytes, number);
    if (text->integers != NULL && !parse_integer(line, &text->integers[text->count]))
        return tnd_fail(TUNDISH_E_PIPELINE,
                        "vocabulary %s: \"%.*s\" in line %" PRIu64
                        " is not a valid int64; an integer vocabulary contains integers",
                        text->path, line.size < 60 ? (int)line.size : 60, (const char *)line.data,
                        number);
    text->count++;
    return TUNDISH_OK;
}

tundish_status
vocab_text_split(struct vocab_text *text, enum vocab_keys keys)
{
    tundish_status status = TUNDISH_OK;

    if (text->size == 0)
        return tnd_fail(TUNDISH_E_PIPELINE,
                        "vocabulary %s is empty; it must contain one term per line", text->path);
    if (keys == VOCAB_INTEGERS)
        text->integers = tnd_zalloc(count_lines(text), sizeof *text->integers);
    for (uint64_t at = 0; at < text->size && status == TUNDISH_OK;)
        status = take_line(text, vocab_text_next(text, &at));
    return status;
}

void
vocab_text_forget(struct vocab_text *text)
{
    free(text->bytes);
    text->bytes = NULL;
}

void
vocab_text_close(struct vocab_text *text)
{
    free(text->bytes);
    free(text->integers);
    *text = (struct vocab_text){ 0 };
}
