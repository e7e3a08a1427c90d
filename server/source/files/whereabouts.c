/* whereabouts.c - see whereabouts.h. */
#include "source/files/whereabouts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/must.h"
#include "source/files/files_private.h"
#include "source/scan/scan.h"

static const char *
packing_name(enum packing packing)
{
    switch (packing) {
    case PACKING_NONE:
        return NULL;
    case PACKING_GZIP:
        return "GZIP";
    case PACKING_ZLIB:
        return "ZLIB";
    case PACKING_ANY:
        return "archive";
    }
    return NULL;
}

/* Count the records before the one at `offset`: a damaged file has no list of all of them. */
static bool
count_before(struct source_file *file, uint64_t offset, uint64_t *ret_record)
{
    uint64_t words[2 * RECORD_GROUP], record = 0;
    struct scan_cursor cursor;
    bool found = false;
    size_t count = 0;

    scan_cursor_open(&cursor, file, NULL);
    while (!found && scan_cursor_next(&cursor, words, RECORD_GROUP, &count) == ORDER_OK)
        for (size_t i = 0; i < count && !found; i++, record++)
            if (words[2 * i] == offset) {
                *ret_record = record;
                found = true;
            }
    scan_cursor_close(&cursor);
    return found;
}

static bool
find_record(struct source_file *file, uint64_t offset, uint64_t *ret_record)
{
    const struct record_list *list;

    if (scan_complete(file, NULL, &list) == TUNDISH_OK)
        return record_list_find(list, offset, ret_record);
    return count_before(file, offset, ret_record);
}

void
whereabouts_of_reference(struct source_files *files, const uint64_t *words,
                         struct whereabouts *ret_where)
{
    struct source_file *file = files_file(files, reference_file(words));

    must(file != NULL);
    ret_where->file = (struct byte_view){ (const uint8_t *)file->name, strlen(file->name) };
    ret_where->path = file->format.scanner != NULL ? file->path : NULL; /* NULL: a spool */
    ret_where->packing = packing_name(file->packing);
    ret_where->has_bytes = true;
    ret_where->offset = words[0];
    ret_where->length = reference_length(words);
    if (file->format.scanner != NULL)
        ret_where->has_record = find_record(file, words[0], &ret_where->record);
}

void
whereabouts_of(const struct plan_node *source, struct source_files *files, const uint64_t *words,
               struct whereabouts *ret_where)
{
    *ret_where = (struct whereabouts){ 0 };
    if (source->source->refers_to_records)
        whereabouts_of_reference(files, words, ret_where);
    if (source->source->tell != NULL)
        source->source->tell(source->state, files, words, ret_where);
}

/* 0: it cannot be read. */
static uint64_t
line_of(struct source_file *file, uint64_t offset)
{
    enum { CHUNK_BYTES = 1 << 16 };
    char *bytes = tnd_alloc(CHUNK_BYTES);
    uint64_t line = 1;

    for (uint64_t at = 0; at < offset && line > 0;) {
        size_t count = offset - at < CHUNK_BYTES ? (size_t)(offset - at) : CHUNK_BYTES;
        const char *found = bytes, *end = bytes + count;

        if (file_read(file, bytes, count, at) != TUNDISH_OK) {
            line = 0;
            break;
        }
        while ((found = memchr(found, '\n', (size_t)(end - found))) != NULL) {
            line++;
            found++;
        }
        at += count;
    }
    free(bytes);
    return line;
}

void
whereabouts_say(const struct source_files *files, const uint64_t *words, bool is_quick,
                char text[WHEREABOUTS_TEXT_BYTES])
{
    struct source_file *file = files_file(files, reference_file(words));
    uint64_t line = 0;

    must(file != NULL);
    if (!is_quick && file->format.scanner != NULL && file->format.scanner->is_text &&
        file->peers == NULL && !file->is_url)
        line = line_of(file, words[0]);
    if (line > 0)
        snprintf(text, WHEREABOUTS_TEXT_BYTES, "line %llu", (unsigned long long)line);
    else
        snprintf(text, WHEREABOUTS_TEXT_BYTES, "at byte %llu", (unsigned long long)words[0]);
}

tundish_status
whereabouts_read(struct source_files *files, const uint64_t *words, uint8_t **ret_bytes)
{
    struct source_file *file = files_file(files, reference_file(words));
    uint8_t *bytes = tnd_alloc((size_t)reference_length(words) + 1);
    tundish_status status;

    must(file != NULL);
    status = file_read(file, bytes, reference_length(words), words[0]);
    if (status != TUNDISH_OK) {
        free(bytes);
        return status;
    }
    *ret_bytes = bytes;
    return TUNDISH_OK;
}
