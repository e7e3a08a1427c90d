/* term_runs.c - sorted terms in a file without a name.
 *
 * A record has the length of its text, the count, documents and weight, and then the text. The file
 * has no name and no other process can open it, so its contents are not checked.
 */
#include "learn/terms/term_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "core/read_write.h"

enum { HEAD_BYTES = 32, BUFFER_BYTES = 64 * 1024, WRITE_BYTES = 1 << 20 };

static tundish_status
open_file(struct term_runs *runs)
{
    if (runs->file >= 0)
        return TUNDISH_OK;
    runs->file = openat(runs->folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (runs->file < 0)
        return tnd_fail_errno(errno, "cannot make a file for terms in the cache folder");
    return TUNDISH_OK;
}

static tundish_status
write_all(int file, const uint8_t *bytes, size_t count, int64_t *at)
{
    int error = tnd_write_at(file, bytes, count, (uint64_t)*at);

    if (error != 0)
        return tnd_fail_errno(error, "cannot write terms to the cache folder");
    *at += (int64_t)count;
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

/* Writes terms to the end of the file. */
struct writer {
    int file;
    int64_t at;
    uint8_t *buffer;
    size_t used, capacity;
};

static tundish_status
writer_put(struct writer *writer, const struct term *term)
{
    size_t bytes = HEAD_BYTES + term->text.size;
    tundish_status status = TUNDISH_OK;

    if (writer->capacity - writer->used < bytes) {
        status = write_all(writer->file, writer->buffer, writer->used, &writer->at);
        writer->used = 0;
    }
    if (status != TUNDISH_OK)
        return status;
    if (writer->capacity < bytes) {
        writer->capacity = bytes > WRITE_BYTES ? bytes : WRITE_BYTES;
        writer->buffer = tnd_realloc(writer->buffer, writer->capacity, 1);
    }
    writer->used += encode(term, writer->buffer + writer->used);
    return TUNDISH_OK;
}

static struct writer
writer_open(const struct term_runs *runs)
{
    return (struct writer){
        .file = runs->file,
        .at = runs->count > 0 ? runs->list[runs->count - 1].end : 0,
    };
}

/* End the run, which begins where the last one ends. */
static tundish_status
writer_close(struct writer *writer, struct term_runs *runs, uint32_t level, tundish_status status)
{
    int64_t begin = runs->count > 0 ? runs->list[runs->count - 1].end : 0;

    if (status == TUNDISH_OK)
        status = write_all(writer->file, writer->buffer, writer->used, &writer->at);
    free(writer->buffer);
    if (status != TUNDISH_OK)
        return status;
    runs->list = tnd_realloc(runs->list, runs->count + 1, sizeof *runs->list);
    runs->list[runs->count++] = (struct term_run){ begin, writer->at, level };
    return TUNDISH_OK;
}

/* Merge all runs from `first` on, and write the result after them. */
static tundish_status
write_merged(struct term_runs *runs, uint32_t first, uint32_t level, const struct term_order *order)
{
    struct writer writer = writer_open(runs);
    struct term_merge *merge = NULL;
    struct term term;
    tundish_status status = term_merge_open_runs(runs, first, order, &merge);

    while (status == TUNDISH_OK && (status = term_merge_next(merge, &term)) == TUNDISH_OK)
        status = writer_put(&writer, &term);
    term_merge_close(merge);
    return writer_close(&writer, runs, level, status == TUNDISH_NO_VALUE ? TUNDISH_OK : status);
}

/* Merge the last runs of a level into one of the next level, if there are enough of them. So a term
 * is written once for each level, and few runs are ever open. Their part of the file is given back;
 * where the file system cannot do that, the file is only longer. */
static tundish_status
lift(struct term_runs *runs, const struct term_order *order)
{
    uint32_t level = runs->list[runs->count - 1].level, first = runs->count;
    struct term_run merged;
    int64_t begin;
    tundish_status status;

    while (first > 0 && runs->list[first - 1].level == level)
        first--;
    if (runs->count - first < TERM_RUNS_A_LEVEL)
        return TUNDISH_NO_VALUE;
    status = write_merged(runs, first, level + 1, order);
    if (status != TUNDISH_OK)
        return status;
    merged = runs->list[runs->count - 1];
    begin = runs->list[first].begin;
    (void)!fallocate(runs->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin,
                     merged.begin - begin);
    runs->list[first] = merged;
    runs->count = first + 1;
    return TUNDISH_OK;
}

tundish_status
term_runs_write(struct term_runs *runs, struct term *list, uint32_t count,
                const struct term_order *order)
{
    tundish_status status = open_file(runs);
    struct writer writer = writer_open(runs);

    if (status != TUNDISH_OK)
        return status;
    term_sort(list, count, order);
    for (uint32_t i = 0; i < count && status == TUNDISH_OK; i++)
        status = writer_put(&writer, &list[i]);
    status = writer_close(&writer, runs, 0, status);
    while (status == TUNDISH_OK)
        status = lift(runs, order);
    return status == TUNDISH_NO_VALUE ? TUNDISH_OK : status;
}

void
term_runs_close(struct term_runs *runs)
{
    if (runs->file >= 0)
        close(runs->file);
    free(runs->list);
    *runs = (struct term_runs){ .folder = runs->folder, .file = -1 };
}

/* Make sure that the buffer has `bytes` more bytes. */
static tundish_status
fill_run(struct term_reader *reader, size_t bytes)
{
    size_t room, left, got;
    int error;

    if (reader->filled - reader->begin >= bytes)
        return TUNDISH_OK;
    memmove(reader->buffer, reader->buffer + reader->begin, reader->filled - reader->begin);
    reader->filled -= reader->begin;
    reader->begin = 0;
    if (reader->capacity < bytes) {
        reader->capacity = bytes;
        reader->buffer = tnd_realloc(reader->buffer, reader->capacity, 1);
    }
    room = reader->capacity - reader->filled;
    left = (size_t)(reader->end - reader->at);
    error = tnd_read_at(reader->file, reader->buffer + reader->filled, room < left ? room : left,
                        (uint64_t)reader->at, &got);
    reader->filled += got;
    reader->at += (int64_t)got;
    /* The end of the file inside a run is an error of the disk. */
    if (error != 0 || reader->filled < bytes)
        return tnd_fail_errno(error != 0 ? error : EIO, "cannot read terms from the cache folder");
    return TUNDISH_OK;
}

tundish_status
term_reader_step(struct term_reader *reader)
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
    status = fill_run(reader, HEAD_BYTES);
    if (status != TUNDISH_OK)
        return status;
    memcpy(&term->text.size, reader->buffer + reader->begin, 8);
    status = fill_run(reader, HEAD_BYTES + term->text.size);
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
        .at = runs->list[run].begin,
        .end = runs->list[run].end,
        .capacity = BUFFER_BYTES,
        .buffer = tnd_alloc(BUFFER_BYTES),
    };
    return term_reader_step(reader);
}

void
term_reader_open_list(struct term_reader *reader, const struct term *list, uint32_t count)
{
    *reader = (struct term_reader){ .file = -1, .list = list, .left = count };
    term_reader_step(reader);
}

void
term_reader_close(struct term_reader *reader)
{
    free(reader->buffer);
    *reader = (struct term_reader){ .file = -1 };
}
