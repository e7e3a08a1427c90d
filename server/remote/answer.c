/* answer.c - see answer.h. */
#include "remote/answer.h"

#include <expat.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

void
answer_begin(struct answer *answer)
{
    *answer = (struct answer){ .retry_after_s = -1 };
}

/* A header's value without blanks around it; what does not fit is left out as a whole, since half a
 * tag is another tag. */
static void
keep_text(const char *value, size_t bytes, char *to, size_t room)
{
    if (bytes >= room)
        return;
    memcpy(to, value, bytes);
    to[bytes] = '\0';
}

/* Digits only, at least one. Returns where they end, or NULL. */
static const char *
read_number(const char *at, const char *end, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *begin = at;

    for (; at < end && *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number) || number > INT64_MAX)
            return NULL;
    if (at == begin)
        return NULL;
    *ret_number = number;
    return at;
}

/* bytes FIRST-LAST/TOTAL, where TOTAL may be *; or bytes * /TOTAL. */
static void
read_range(struct answer *answer, const char *at, const char *end)
{
    uint64_t first = 0, last = 0, total = 0;
    bool has_range = false, is_untold;

    if (end - at < 6 || strncasecmp(at, "bytes ", 6) != 0)
        return;
    at += 6;
    if (at < end && *at == '*') {
        at++;
    } else {
        at = read_number(at, end, &first);
        if (at == NULL || at == end || *at != '-')
            return;
        at = read_number(at + 1, end, &last);
        if (at == NULL || last < first)
            return;
        has_range = true;
    }
    if (at == end || *at != '/')
        return;
    is_untold = end - at == 2 && at[1] == '*';
    answer->has_total = read_number(at + 1, end, &total) == end && (!has_range || last < total);
    answer->total = total;
    answer->has_range = has_range && (answer->has_total || is_untold);
    answer->first = first;
    answer->last = last;
}

static bool
is_named(const char *line, size_t bytes, const char *name)
{
    return bytes == strlen(name) && strncasecmp(line, name, bytes) == 0;
}

/* As HTTP writes dates: Sun, 06 Nov 1994 08:49:37 GMT. 0: it is none. */
static int64_t
read_date(const char *value, size_t bytes)
{
    char text[ANSWER_WORD_BYTES];
    struct tm date = { 0 };
    const char *end;

    if (bytes >= sizeof text)
        return 0;
    memcpy(text, value, bytes);
    text[bytes] = '\0';
    end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &date);
    return end != NULL && *end == '\0' ? timegm(&date) : 0;
}

static void
read_retry_after(struct answer *answer, const char *value, const char *end)
{
    uint64_t number = 0;

    if (read_number(value, end, &number) == end)
        answer->retry_after_s = (int64_t)number;
    else
        answer->retry_at_s = read_date(value, (size_t)(end - value));
}

/* "identity" is none. It is shown to people, so it has to be a word. */
static void
read_encoding(struct answer *answer, const char *value, size_t bytes)
{
    keep_text(value, bytes, answer->encoding, sizeof answer->encoding);
    if (is_named(value, bytes, "identity") || is_named(value, bytes, "aws-chunked"))
        answer->encoding[0] = '\0';
    for (char *at = answer->encoding; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || (unsigned char)*at >= 0x7F)
            *at = '?';
}

static void
read_length(struct answer *answer, const char *value, const char *end)
{
    answer->has_length = read_number(value, end, &answer->length) == end;
    answer->has_bad_length = !answer->has_length;
}

static void
take_header(struct answer *answer, const char *line, size_t name_bytes, const char *value,
            const char *end)
{
    size_t bytes = (size_t)(end - value);

    if (is_named(line, name_bytes, "content-length"))
        read_length(answer, value, end);
    else if (is_named(line, name_bytes, "transfer-encoding"))
        answer->is_chunked = true;
    else if (is_named(line, name_bytes, "content-range"))
        read_range(answer, value, end);
    else if (is_named(line, name_bytes, "etag"))
        keep_text(value, bytes, answer->tag, sizeof answer->tag);
    else if (is_named(line, name_bytes, "last-modified"))
        keep_text(value, bytes, answer->modified, sizeof answer->modified);
    else if (is_named(line, name_bytes, "x-amz-bucket-region"))
        keep_text(value, bytes, answer->region, sizeof answer->region);
    else if (is_named(line, name_bytes, "retry-after"))
        read_retry_after(answer, value, end);
    else if (is_named(line, name_bytes, "date"))
        answer->date_s = read_date(value, bytes);
    else if (is_named(line, name_bytes, "content-encoding"))
        read_encoding(answer, value, bytes);
}

int64_t
answer_pause_s(const struct answer *answer, int64_t now_s)
{
    int64_t pause_s = answer->retry_after_s;

    if (answer->retry_at_s != 0)
        pause_s = answer->retry_at_s - (answer->date_s != 0 ? answer->date_s : now_s);
    return pause_s > 0 ? pause_s : 0;
}

void
answer_line(struct answer *answer, const char *line, size_t bytes)
{
    const char *end = line + bytes, *colon, *value;
    uint64_t code = 0;

    while (end > line && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (end - line > 5 && memcmp(line, "HTTP/", 5) == 0) {
        const char *blank = memchr(line, ' ', (size_t)(end - line));

        answer_begin(answer);
        if (blank != NULL && read_number(blank + 1, end, &code) != NULL && code < 1000)
            answer->code = (int)code;
        return;
    }
    colon = memchr(line, ':', (size_t)(end - line));
    if (colon == NULL)
        return;
    for (value = colon + 1; value < end && (*value == ' ' || *value == '\t'); value++)
        continue;
    take_header(answer, line, (size_t)(colon - line), value, end);
}

/* The element that is open, and where its text goes. */
struct error_reader {
    struct answer_error *error;
    char *to;
    size_t used, room;
};

static void
begin_element(void *context, const XML_Char *name, const XML_Char **attributes)
{
    struct error_reader *reader = context;

    (void)attributes;
    reader->to = NULL;
    reader->used = 0;
    reader->room = ANSWER_WORD_BYTES - 1;
    if (strcmp(name, "Code") == 0) {
        reader->to = reader->error->code;
    } else if (strcmp(name, "Region") == 0) {
        reader->to = reader->error->region;
    } else if (strcmp(name, "Message") == 0) {
        reader->to = reader->error->message;
        reader->room = ANSWER_TEXT_BYTES - 1;
    }
}

static void
end_element(void *context, const XML_Char *name)
{
    struct error_reader *reader = context;

    (void)name;
    reader->to = NULL;
}

/* Unprintable letters would come into a log. */
static void
take_text(void *context, const XML_Char *text, int bytes)
{
    struct error_reader *reader = context;

    for (int i = 0; i < bytes && reader->to != NULL && reader->used < reader->room; i++) {
        reader->to[reader->used++] = (unsigned char)text[i] < ' ' ? ' ' : text[i];
        reader->to[reader->used] = '\0';
    }
}

void
answer_read_error(const char *body, size_t bytes, struct answer_error *ret_error)
{
    struct error_reader reader = { .error = ret_error };
    XML_Parser parser = XML_ParserCreate(NULL);

    *ret_error = (struct answer_error){ 0 };
    if (parser == NULL)
        return;
    XML_SetUserData(parser, &reader);
    XML_SetElementHandler(parser, begin_element, end_element);
    XML_SetCharacterDataHandler(parser, take_text);
    /* Half a body is enough: the code stands first. */
    (void)XML_Parse(parser, body, (int)bytes, 0);
    XML_ParserFree(parser);
}
