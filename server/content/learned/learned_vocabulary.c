/* learned_vocabulary.c - read vocabularies that `tundish analyze` wrote, as lines or as records. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "content/learned/learned.h"
#include "content/learned/learned_file.h"
#include "content/learned/learning.h"
#include "content/records/number.h"
#include "content/records/unpacker.h"
#include "core/crc32c.h"
#include "core/memory.h"

enum { BLOCK_BYTES = 1 << 16, LENGTH_BYTES = 12, CHECKSUM_BYTES = 4 };

static const char BLANK[] = "__SPACE__"; /* tf.Transform's */

struct learned_form
learned_form_of(const struct spec_stage *stage)
{
    const struct content_learning *learning = learned_learning_of(stage);

    return learning->form != NULL ? learning->form(stage)
                                  : (struct learned_form){ .suffix = ".vocabulary.txt" };
}

bool
learned_form_needs_blanks(const struct learned_form *form)
{
    return form->has_frequency && !form->is_records;
}

struct byte_view
learned_without_blanks(struct byte_view text, struct scratch *scratch)
{
    size_t count = 0, at = 0;
    uint8_t *to;

    for (size_t i = 0; i < text.size; i++)
        /* Count first: most terms have no blank, and need no copy. */
        count += text.data[i] == ' ';
    if (count == 0)
        return text;
    to = scratch_alloc(scratch, text.size + count * (sizeof BLANK - 2));
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == ' ') {
            memcpy(to + at, BLANK, sizeof BLANK - 1);
            at += sizeof BLANK - 1;
        } else {
            to[at++] = text.data[i];
        }
    return (struct byte_view){ to, at };
}

struct entries {
    size_t count;
    struct byte_view *list;
};

static void
add_entry(struct entries *entries, const uint8_t *data, size_t bytes)
{
    entries->list = tnd_grow(entries->list, entries->count, sizeof *entries->list);
    entries->list[entries->count++] = (struct byte_view){ data, bytes };
}

/* Split at line feeds. The files are this program's own, so a carriage return is part of its
 * term. */
static void
split_lines(const struct learned_file *file, struct entries *entries)
{
    const uint8_t *at = file->bytes, *end = file->bytes + file->byte_count;

    while (at < end) {
        const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));

        if (stop == NULL)
            stop = end;
        add_entry(entries, at, (size_t)(stop - at));
        at = stop + 1;
    }
}

static bool
has_checksum(const uint8_t *data, size_t bytes)
{
    uint32_t stored;

    memcpy(&stored, data + bytes, sizeof stored);
    return stored == tnd_crc32c_mask(tnd_crc32c(0, data, bytes));
}

/* Split a TFRecord file: a length and its masked CRC, then the data and its own. The CRC is checked
 * before the length is believed. */
static tundish_status
split_records(const char *path, const struct learned_file *file, struct entries *entries)
{
    size_t at = 0;

    while (at < file->byte_count) {
        const uint8_t *head = file->bytes + at;
        size_t left = file->byte_count - at;
        uint64_t length = 0;
        bool is_good = left >= LENGTH_BYTES && has_checksum(head, sizeof length);

        if (is_good) {
            memcpy(&length, head, sizeof length);
            is_good = length <= left - LENGTH_BYTES &&
                      left - LENGTH_BYTES - length >= CHECKSUM_BYTES &&
                      has_checksum(head + LENGTH_BYTES, length);
        }
        if (!is_good)
            return tnd_fail(TUNDISH_E_DATA, "%s: record %zu is damaged or truncated", path,
                            entries->count);
        add_entry(entries, head + LENGTH_BYTES, length);
        at += LENGTH_BYTES + length + CHECKSUM_BYTES;
    }
    return TUNDISH_OK;
}

/* Drop the frequency before each term. In a line the term ends at the next blank, as for
 * TensorFlow's table initializer. */
static tundish_status
drop_frequencies(const char *path, const struct learned_form *form, struct entries *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        struct byte_view *entry = &entries->list[i];
        const uint8_t *end = entry->data + entry->size;
        const uint8_t *blank = entry->size > 0 ? memchr(entry->data, ' ', entry->size) : NULL;
        const uint8_t *next;

        if (blank == NULL)
            return tnd_fail(TUNDISH_E_DATA, "%s: entry %zu has no frequency before its term", path,
                            i);
        blank++;
        next = form->is_records || blank == end ? NULL : memchr(blank, ' ', (size_t)(end - blank));
        *entry = (struct byte_view){ blank, (uint64_t)((next != NULL ? next : end) - blank) };
    }
    return TUNDISH_OK;
}

/* Inflate a whole file, with zeros after it for parsers that read ahead. */
static tundish_status
inflate_all(int descriptor, struct learned_file *file)
{
    struct unpacker *unpacker = unpacker_open(descriptor, PACKING_GZIP);
    size_t capacity = 0, got = 0;
    tundish_status status;

    do {
        if (capacity - file->byte_count < 2 * BLOCK_BYTES) {
            capacity = 2 * capacity + 4 * BLOCK_BYTES;
            file->bytes = tnd_realloc(file->bytes, capacity, 1);
        }
        status = unpacker_next(unpacker, file->bytes + file->byte_count, BLOCK_BYTES, &got);
        file->byte_count += got;
    } while (status == TUNDISH_OK && got == BLOCK_BYTES);
    memset(file->bytes + file->byte_count, 0, BLOCK_BYTES);
    unpacker_close(unpacker);
    return status;
}

static tundish_status
read_packed(const char *path, struct learned_file *ret_file)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct learned_file file = { 0 };
    tundish_status status;

    if (descriptor < 0)
        return tnd_fail_errno(errno, "%s", path);
    status = inflate_all(descriptor, &file);
    close(descriptor);
    if (status != TUNDISH_OK) {
        learned_file_close(&file);
        return tnd_fail_while(status, "reading %s", path);
    }
    *ret_file = file;
    return TUNDISH_OK;
}

static tundish_status
open_integers(const struct stage_config *config, const char *path, const struct entries *entries,
              struct vocab **ret_vocab)
{
    int64_t *integers = tnd_zalloc(entries->count + 1, sizeof *integers);
    tundish_status status = TUNDISH_OK;

    for (size_t i = 0; i < entries->count && status == TUNDISH_OK; i++) {
        struct byte_view entry = entries->list[i];

        if (!number_int64(entry.data, entry.size, &integers[i]))
            status = tnd_fail(TUNDISH_E_DATA, "%s:%zu: '%.*s' is not an integer", path, i + 1,
                              (int)(entry.size < 40 ? entry.size : 40), (const char *)entry.data);
    }
    if (status == TUNDISH_OK)
        status =
            vocab_open_integers(config->cache_folder, path, integers, entries->count, ret_vocab);
    free(integers);
    return status;
}

static tundish_status
open_entries(const struct stage_config *config, const char *path, enum vocab_keys keys,
             const struct learned_form *form, const struct learned_file *file,
             struct vocab **ret_vocab)
{
    struct entries entries = { 0 };
    tundish_status status = TUNDISH_OK;

    if (form->is_records)
        status = split_records(path, file, &entries);
    else
        split_lines(file, &entries);
    if (status == TUNDISH_OK && form->has_frequency)
        status = drop_frequencies(path, form, &entries);
    if (status == TUNDISH_OK)
        status = keys == VOCAB_STRINGS ? vocab_open_terms(config->cache_folder, path, entries.list,
                                                          entries.count, ret_vocab)
                                       : open_integers(config, path, &entries, ret_vocab);
    free(entries.list);
    return status;
}

/* Parse first and compare with the recorded hash afterwards: a damaged file then says itself what
 * is wrong. */
static tundish_status
open_checked(const struct stage_config *config, const char *path, enum vocab_keys keys,
             const struct learned_form *form, struct vocab **ret_vocab)
{
    struct learned_file file = { 0 };
    struct vocab *vocab = NULL;
    uint64_t hash = 0;
    tundish_status status =
        form->is_records ? read_packed(path, &file) : learned_file_read(path, &file);

    if (status == TUNDISH_OK) {
        learned_file_note(config, &file);
        status = open_entries(config, path, keys, form, &file, &vocab);
        learned_file_close(&file);
    }
    if (status == TUNDISH_OK)
        status = learned_file_hash(path, &hash);
    if (status == TUNDISH_OK)
        status = learned_file_check(config, path, hash);
    if (status == TUNDISH_OK)
        *ret_vocab = vocab;
    else
        vocab_close(vocab);
    return status;
}

tundish_status
learned_vocab_open(const struct stage_config *config, const char *name, enum vocab_keys keys,
                   struct vocab **ret_vocab)
{
    const struct learned_form form = learned_form_of(config->stage);
    char *path = learned_path(config->learned, name, form.suffix);
    tundish_status status = open_checked(config, path, keys, &form, ret_vocab);

    free(path);
    return status == TUNDISH_OK ? status : learned_complain_of(config);
}
