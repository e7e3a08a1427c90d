/* term_runs.c - sorted terms in a file without a name.
 *
 * A record is its text's length, count, documents and weight, then the text. Nobody else can open
 * the file, so it is believed.
 */
#include "analyze/term_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"

enum { HEAD_BYTES = 32, BUFFER_BYTES = 64 * 1024, WRITE_BYTES = 1 << 20 };

int
term_order_text(const struct term *a, const struct term *b)
{
    uint64_t shorter = a->text.size < b->text.size ? a->text.size : b->text.size;
    int order = shorter == 0 ? 0 : memcmp(a->text.data, b->text.data, shorter);

    return order != 0 ? order : (a->text.size > b->text.size) - (a->text.size < b->text.size);
}

void
term_sort(struct term *list, uint32_t count, term_order *order)
{
    qsort(list, count, sizeof *list, (int (*)(const void *, const void *))order);
}

/* --- Writing ---------------------------------------------------------------------------------- */

static tundish_status
open_file(struct term_runs *runs)
{
    if (runs->file >= 0)
        return TUNDISH_OK;
    runs->file = openat(runs->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (runs->file < 0)
        return tnd_fail_errno(errno, "making a file for terms in the cache folder");
    return TUNDISH_OK;
}

static tundish_status
write_all(int file, const uint8_t *bytes, size_t count, int64_t *at)
{
    while (count > 0) {
        ssize_t done = pwrite(file, bytes, count, *at);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return tnd_fail_errno(errno, "writing terms to the cache folder");
        bytes += done;
        count -= (size_t)done;
        *at += done;
    }
    return TUNDISH_OK;
}

static size_t
encode(const struct term *term, uint8_t *to)
{
    memcpy(to, &term->text.size, 8);
    memcpy(to + 8, &term->count, 8);
    memcpy(to + 16, &term->documents, 8);
    memcpy(to + 24, &term->weight, 8);
    if (term->text.size > 0)
        memcpy(to + HEAD_BYTES, term->text.data, term->text.size);
    return HEAD_BYTES + term->text.size;
}

tundish_status
term_runs_write(struct term_runs *runs, struct term *list, uint32_t count, term_order *order)
{
    tundish_status status = open_file(runs);
    int64_t at = runs->count > 0 ? runs->ends[runs->count - 1] : 0;
    size_t capacity = WRITE_BYTES, used = 0;
    uint8_t *buffer = tnd_alloc(capacity);

    term_sort(list, count, order);
    for (uint32_t i = 0; i < count && status == TUNDISH_OK; i++) {
        size_t bytes = HEAD_BYTES + list[i].text.size;

        if (capacity - used < bytes) {
            status = write_all(runs->file, buffer, used, &at);
            used = 0;
        }
        if (capacity < bytes) {
            capacity = bytes;
            buffer = tnd_realloc(buffer, capacity, 1);
        }
        used += encode(&list[i], buffer + used);
    }
    if (status == TUNDISH_OK)
        status = write_all(runs->file, buffer, used, &at);
    free(buffer);
    if (status != TUNDISH_OK)
        return status;
    runs->ends = tnd_realloc(runs->ends, runs->count + 1, sizeof *runs->ends);
    runs->ends[runs->count++] = at;
    return TUNDISH_OK;
}

void
term_runs_close(struct term_runs *runs)
{
    if (runs->file >= 0)
        close(runs->file);
    free(runs->ends);
    *runs = (struct term_runs){ .folder = runs->folder, .file = -1 };
}

/* --- Reading ---------------------------------------------------------------------------------- */

/* See to it that `bytes` more bytes are in the buffer. */
static tundish_status
fill(struct term_reader *reader, size_t bytes)
{
    if (reader->filled - reader->begin >= bytes)
        return TUNDISH_OK;
    memmove(reader->buffer, reader->buffer + reader->begin, reader->filled - reader->begin);
    reader->filled -= reader->begin;
    reader->begin = 0;
    if (reader->capacity < bytes) {
        reader->capacity = bytes;
        reader->buffer = tnd_realloc(reader->buffer, reader->capacity, 1);
    }
    while (reader->filled < bytes) {
        size_t room = reader->capacity - reader->filled;
        size_t left = (size_t)(reader->end - reader->at);
        ssize_t got = pread(reader->file, reader->buffer + reader->filled,
                            room < left ? room : left, reader->at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return tnd_fail_errno(got < 0 ? errno : EIO, "reading terms from the cache folder");
        reader->filled += (size_t)got;
        reader->at += got;
    }
    return TUNDISH_OK;
}

/* NO_VALUE: there is no other. */
static tundish_status
step(struct term_reader *reader)
{
    struct term *term = &reader->term;
    tundish_status status;

    if (reader->file < 0) {
        if (reader->left == 0)
            return TUNDISH_NO_VALUE;
        *term = *reader->list++;
        reader->left--;
        return TUNDISH_OK;
    }
    if (reader->at == reader->end && reader->begin == reader->filled)
        return TUNDISH_NO_VALUE;
    status = fill(reader, HEAD_BYTES);
    if (status != TUNDISH_OK)
        return status;
    memcpy(&term->text.size, reader->buffer + reader->begin, 8);
    status = fill(reader, HEAD_BYTES + term->text.size);
    if (status != TUNDISH_OK)
        return status;
    memcpy(&term->count, reader->buffer + reader->begin + 8, 8);
    memcpy(&term->documents, reader->buffer + reader->begin + 16, 8);
    memcpy(&term->weight, reader->buffer + reader->begin + 24, 8);
    term->text.data = reader->buffer + reader->begin + HEAD_BYTES;
    reader->begin += HEAD_BYTES + term->text.size;
    return TUNDISH_OK;
}

tundish_status
term_reader_open(struct term_reader *reader, const struct term_runs *runs, uint32_t run)
{
    *reader = (struct term_reader){
        .file = runs->file,
        .at = run > 0 ? runs->ends[run - 1] : 0,
        .end = runs->ends[run],
        .capacity = BUFFER_BYTES,
        .buffer = tnd_alloc(BUFFER_BYTES),
    };
    return step(reader);
}

void
term_reader_open_list(struct term_reader *reader, const struct term *list, uint32_t count)
{
    *reader = (struct term_reader){ .file = -1, .list = list, .left = count };
    step(reader);
}

void
term_reader_close(struct term_reader *reader)
{
    free(reader->buffer);
    *reader = (struct term_reader){ .file = -1 };
}

/* --- A heap of readers ------------------------------------------------------------------------ */

static void
sift(struct term_reader *readers, uint32_t count, uint32_t at, term_order *order)
{
    for (;;) {
        uint32_t least = at;

        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (order(&readers[child].term, &readers[least].term) < 0)
                least = child;
        if (least == at)
            return;
        {
            struct term_reader reader = readers[at];

            readers[at] = readers[least];
            readers[least] = reader;
        }
        at = least;
    }
}

void
term_readers_order(struct term_reader *readers, uint32_t count, term_order *order)
{
    for (uint32_t i = count / 2; i-- > 0;)
        sift(readers, count, i, order);
}

tundish_status
term_readers_step(struct term_reader *readers, uint32_t *count, term_order *order)
{
    tundish_status status = step(&readers[0]);

    if (status == TUNDISH_NO_VALUE) {
        term_reader_close(&readers[0]);
        readers[0] = readers[--*count];
        readers[*count] = (struct term_reader){ .file = -1 };
        status = TUNDISH_OK;
    }
    if (status == TUNDISH_OK)
        sift(readers, *count, 0, order);
    return status;
}
