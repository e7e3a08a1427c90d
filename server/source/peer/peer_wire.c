/* peer_wire.c - requests as bytes. All nodes run the same program on the same kind of machine. */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "source/peer/peer_private.h"

/* The index is in messages, so the order never changes. */
static const struct scanner_ops *const scanners[] = {
    &scanner_tfrecord, &scanner_text_line,  &scanner_fixed_length_record,
    &scanner_csv,      &scanner_webdataset, &scanner_parquet,
};

enum { SCANNERS = sizeof scanners / sizeof *scanners, NAME_BYTES_MAX = 1 << 16 };
enum { EXTENSIONS_MAX = 4096, SAMPLES_MAX = 256 };

/* The count if it is none of them. */
static uint32_t
find_scanner(const struct record_format *format)
{
    uint32_t i = 0;

    while (i < SCANNERS && scanners[i] != format->scanner)
        i++;
    return i;
}

bool
peer_reads(const struct record_format *format)
{
    return find_scanner(format) < SCANNERS;
}

void
peer_buffer_add(struct peer_buffer *text, const void *bytes, size_t byte_count)
{
    if (text->room - text->used < byte_count) {
        text->room = 2 * text->room + byte_count + 256;
        text->bytes = tnd_realloc(text->bytes, text->room, 1);
    }
    if (byte_count > 0)
        memcpy(text->bytes + text->used, bytes, byte_count);
    text->used += byte_count;
}

static void
add_word(struct peer_buffer *text, uint64_t word)
{
    uint32_t value = (uint32_t)word;

    peer_buffer_add(text, &value, sizeof value);
}

static void
add_samples(struct peer_buffer *text, const struct sample_columns *columns)
{
    add_word(text, columns->count);
    for (uint32_t i = 0; i < columns->count; i++)
        add_word(text, columns->columns[i].extension_count);
    for (uint32_t i = 0; i < columns->extension_count; i++) {
        add_word(text, columns->extensions[i].size);
        peer_buffer_add(text, columns->extensions[i].data, columns->extensions[i].size);
    }
}

/* Without the columns, every sample is a row. */
static bool
has_samples(const struct record_format *format)
{
    return format->scanner == &scanner_webdataset && format->numbers[0] != 0;
}

void
peer_buffer_add_file(struct peer_buffer *text, const struct source_file *file, uint32_t count)
{
    struct peer_file about = { .scanner = find_scanner(&file->format),
                               .packing = file->format.packing,
                               .name_bytes = (uint32_t)strlen(file->name),
                               .count = count };

    memcpy(about.numbers, file->format.numbers, sizeof about.numbers);
    peer_buffer_add(text, &about, sizeof about);
    peer_buffer_add(text, file->name, about.name_bytes);
    if (has_samples(&file->format))
        add_samples(text, file->format.samples);
}

bool
peer_take(struct byte_view *from, void *to, size_t byte_count)
{
    if (from->size < byte_count)
        return false;
    memcpy(to, from->data, byte_count);
    from->data += byte_count;
    from->size -= byte_count;
    return true;
}

static bool
take_extension(struct byte_view *from, struct sample_columns *columns)
{
    struct byte_view *extension = &columns->extensions[columns->extension_count];
    uint32_t bytes;

    if (!peer_take(from, &bytes, sizeof bytes) || bytes > NAME_BYTES_MAX || bytes > from->size)
        return false;
    *extension =
        (struct byte_view){ (const uint8_t *)tnd_strndup((const char *)from->data, bytes), bytes };
    columns->extension_count++;
    from->data += bytes;
    from->size -= bytes;
    return true;
}

static bool
take_columns(struct byte_view *from, struct sample_columns *columns)
{
    uint32_t count = 0, extension_count = 0;

    if (!peer_take(from, &count, sizeof count) || count == 0 || count > SAMPLE_COLUMNS_MAX)
        return false;
    columns->skip_missing = true;
    columns->count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct sample_column *column = &columns->columns[i];

        column->first = extension_count;
        if (!peer_take(from, &column->extension_count, sizeof column->extension_count) ||
            column->extension_count > EXTENSIONS_MAX - extension_count)
            return false;
        extension_count += column->extension_count;
    }
    columns->extensions = tnd_zalloc(extension_count + 1, sizeof *columns->extensions);
    while (columns->extension_count < extension_count)
        if (!take_extension(from, columns))
            return false;
    return true;
}

static void
samples_close(struct peer_samples *samples)
{
    for (uint32_t i = 0; i < samples->columns.extension_count; i++)
        free((void *)(uintptr_t)samples->columns.extensions[i].data);
    free(samples->columns.extensions);
    free(samples);
}

/* Files that are open point to them, so each is kept once. NULL: there are too many. */
static const struct sample_columns *
keep_samples(struct peers *peers, struct peer_samples *samples)
{
    struct peer_samples **link = &peers->samples;
    uint32_t count = 0;

    pthread_mutex_lock(&peers->lock);
    for (; *link != NULL && (*link)->hash != samples->hash; link = &(*link)->next)
        count++;
    if (*link == NULL && count < SAMPLES_MAX) {
        *link = samples;
        samples = NULL;
    }
    pthread_mutex_unlock(&peers->lock);
    if (samples != NULL)
        samples_close(samples);
    return *link != NULL ? &(*link)->columns : NULL;
}

/* The hash is checked: it is by the hash that files are told apart. */
static bool
take_samples(struct peers *peers, struct byte_view *from, struct record_format *format)
{
    struct peer_samples *samples = tnd_zalloc(1, sizeof *samples);

    samples->hash = format->numbers[0];
    if (!take_columns(from, &samples->columns) ||
        sample_columns_hash(&samples->columns) != samples->hash) {
        samples_close(samples);
        return false;
    }
    format->samples = keep_samples(peers, samples);
    return format->samples != NULL;
}

void
peer_free_samples(struct peers *peers)
{
    for (struct peer_samples *samples = peers->samples, *next; samples != NULL; samples = next) {
        next = samples->next;
        samples_close(samples);
    }
}

bool
peer_take_file(struct peers *peers, struct byte_view *from, struct peer_wanted *ret_wanted)
{
    struct peer_file file;
    struct record_format format = { 0 };
    const char *name;

    /* Every field is checked before it is used. A record length of 0 would never end. */
    if (!peer_take(from, &file, sizeof file) || file.scanner >= SCANNERS ||
        file.packing > PACKING_ANY || file.name_bytes > NAME_BYTES_MAX ||
        file.name_bytes > from->size ||
        (scanners[file.scanner]->contents != NULL && file.packing != PACKING_NONE) ||
        (scanners[file.scanner] == &scanner_fixed_length_record && file.numbers[FIXED_RECORD] <= 0))
        return false;
    name = (const char *)from->data;
    from->data += file.name_bytes;
    from->size -= file.name_bytes;
    format.scanner = scanners[file.scanner];
    format.packing = (enum packing)file.packing;
    memcpy(format.numbers, file.numbers, sizeof file.numbers);
    if (has_samples(&format) && !take_samples(peers, from, &format))
        return false;
    *ret_wanted = (struct peer_wanted){ .name = tnd_strndup(name, file.name_bytes),
                                        .format = format,
                                        .count = file.count };
    return true;
}
