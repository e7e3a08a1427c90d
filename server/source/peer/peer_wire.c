/* peer_wire.c - requests as bytes. All nodes run the same program on the same kind of machine. */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "source/peer/peer_private.h"

/* The index is in messages, so the order never changes. */
static const struct scanner_ops *const scanners[] = {
    &scanner_tfrecord,
    &scanner_text_line,
    &scanner_fixed_length_record,
    &scanner_csv,
};

enum { SCANNERS = sizeof scanners / sizeof *scanners, NAME_BYTES_MAX = 1 << 16 };

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

bool
peer_take_file(struct byte_view *from, struct peer_file *ret_file, char **ret_name,
               struct record_format *ret_format)
{
    struct peer_file file;

    /* Every field is checked before it is used. A record length of 0 would never end. */
    if (!peer_take(from, &file, sizeof file) || file.scanner >= SCANNERS ||
        file.packing > PACKING_ANY || file.name_bytes > NAME_BYTES_MAX ||
        file.name_bytes > from->size ||
        (scanners[file.scanner] == &scanner_fixed_length_record && file.numbers[FIXED_RECORD] <= 0))
        return false;
    *ret_name = tnd_strndup((const char *)from->data, file.name_bytes);
    from->data += file.name_bytes;
    from->size -= file.name_bytes;
    *ret_format = (struct record_format){ .scanner = scanners[file.scanner],
                                          .packing = (enum packing)file.packing };
    memcpy(ret_format->numbers, file.numbers, sizeof file.numbers);
    *ret_file = file;
    return true;
}
