/* vocab_table.c - check the layout of table.h, map a table and read its terms. */
#include "content/vocabulary/vocab_table.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/crc32c.h"
#include "core/magic.h"
#include "core/mapped.h"
#include "core/memory.h"
#include "core/own_file.h"
#include "core/read_write.h"
#include "core/status.h"

#define AT(field, offset)                                                                          \
    _Static_assert(offsetof(struct vocab_header, field) == (offset), #field " moved")

AT(version, 8);
AT(seed, 24);
AT(fingerprint, 64);
AT(content, 72);
AT(file_bytes, 96);
AT(header_crc, 108);

bool
vocab_layout(enum vocab_keys keys, uint64_t count, uint64_t bucket_count, uint64_t terms_bytes,
             struct vocab_layout *ret_layout)
{
    uint64_t index_bytes = 0;

    if (count > VOCAB_MAX_COUNT || bucket_count == 0 || bucket_count > VOCAB_MAX_COUNT ||
        terms_bytes > VOCAB_MAX_TEXT_BYTES)
        return false;
    if (keys == VOCAB_STRINGS)
        index_bytes = (count + VOCAB_INDEX_STEP - 1) / VOCAB_INDEX_STEP * sizeof(uint64_t);
    else if (keys != VOCAB_INTEGERS || terms_bytes != count * sizeof(int64_t))
        return false;
    ret_layout->buckets = VOCAB_HEADER_BYTES;
    ret_layout->index = ret_layout->buckets + bucket_count * sizeof(struct vocab_bucket);
    ret_layout->terms = ret_layout->index + index_bytes;
    ret_layout->file_bytes = ret_layout->terms + terms_bytes;
    return true;
}

/* Whether a header can be trusted: versions, checksum, and a layout that fills exactly the file.
 * Every later access relies on these bounds. */
static bool
header_is_sound(const struct vocab_header *header, enum vocab_keys keys,
                const struct vocab_content *content, uint64_t file_bytes)
{
    struct vocab_layout layout;

    return header->magic == TND_VOCABULARY_MAGIC && header->byte_order == VOCAB_BYTE_ORDER &&
           header->version == VOCAB_VERSION && header->hash == VOCAB_HASH &&
           header->header_crc == tnd_crc32c(0, header, offsetof(struct vocab_header, header_crc)) &&
           header->keys == (uint32_t)keys && header->file_bytes == file_bytes &&
           vocab_layout(keys, header->count, header->bucket_count, header->terms_bytes, &layout) &&
           layout.file_bytes == file_bytes &&
           (content == NULL || memcmp(content, &header->content, sizeof *content) == 0);
}

/* The header of a table file. */
static bool
read_header(int file, const struct stat *about, struct vocab_header *ret_header)
{
    size_t got = 0;

    return tnd_own_file_is_ours(about) && about->st_size >= VOCAB_HEADER_BYTES &&
           tnd_read_at(file, ret_header, sizeof *ret_header, 0, &got) == 0 &&
           got == sizeof *ret_header;
}

static void
set_up(struct vocab *vocab, enum vocab_keys keys, const struct vocab_header *header,
       struct tnd_mapped *mapped)
{
    const uint8_t *bytes = tnd_mapped_bytes(mapped);
    struct vocab_layout layout = { 0 };

    (void)vocab_layout(keys, header->count, header->bucket_count, header->terms_bytes, &layout);
    *vocab = (struct vocab){
        .buckets = (const void *)(bytes + layout.buckets),
        .bucket_count = header->bucket_count,
        .longest_probe =
            /* A probe never needs more steps than there are buckets, whatever the header says. */
        header->longest_probe < header->bucket_count ? header->longest_probe : header->bucket_count,
        .seed = header->seed,
        .count = (uint32_t)header->count,
        .keys = keys,
        .index = (const void *)(bytes + layout.index),
        .terms = bytes + layout.terms,
        .terms_bytes = header->terms_bytes,
        .fingerprint = header->fingerprint,
        .file = mapped,
        .mapped_bytes = header->file_bytes,
    };
}

/* The body is read once, through the mapping that is used: a disk that changed a bit would give
 * other lines for as long as the table stays, which is years. Lookups soon touch nearly every
 * page of the buckets anyway. */
static bool
body_is_sound(const struct vocab_header *header, struct tnd_mapped *mapped)
{
    const uint8_t *bytes = tnd_mapped_bytes(mapped);

    (void)madvise(tnd_mapped_bytes(mapped), header->file_bytes, MADV_WILLNEED);
    return header->body_crc ==
           tnd_crc32c(0, bytes + VOCAB_HEADER_BYTES, header->file_bytes - VOCAB_HEADER_BYTES);
}

tundish_status
vocab_table_map(int file, enum vocab_keys keys, const struct vocab_content *content,
                struct vocab **ret_vocab)
{
    struct vocab_header header;
    struct stat about;
    struct tnd_mapped *mapped;
    struct vocab *vocab;
    tundish_status status;

    if (fstat(file, &about) != 0)
        return tnd_fail_errno(errno, "cannot look at a vocabulary table");
    if (!read_header(file, &about, &header) ||
        !header_is_sound(&header, keys, content, (uint64_t)about.st_size))
        return tnd_fail(TUNDISH_E_CORRUPT, "not a vocabulary table of this version and text");
    status = tnd_mapped_open(file, header.file_bytes, TND_MAPPED_READ, &mapped);
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "vocabulary table");
    if (!body_is_sound(&header, mapped)) {
        tnd_mapped_close(mapped);
        return tnd_fail(TUNDISH_E_CORRUPT, "the checksum of the vocabulary table is wrong");
    }
    vocab = tnd_alloc(sizeof *vocab);
    set_up(vocab, keys, &header, mapped);
    *ret_vocab = vocab;
    return TUNDISH_OK;
}

void
vocab_close(struct vocab *vocab)
{
    if (vocab == NULL)
        return;
    tnd_mapped_close(vocab->file);
    free(vocab);
}

enum vocab_keys
vocab_keys(const struct vocab *vocab)
{
    return vocab->keys;
}

uint64_t
vocab_bytes(const struct vocab *vocab)
{
    return vocab->mapped_bytes;
}

uint64_t
vocab_count(const struct vocab *vocab)
{
    return vocab->count;
}

uint64_t
vocab_fingerprint(const struct vocab *vocab)
{
    return vocab->fingerprint;
}

bool
vocab_term(const struct vocab *vocab, int64_t line, struct byte_view *ret_term)
{
    struct byte_view term;
    uint64_t next;

    if (vocab->keys != VOCAB_STRINGS || line < 0 || line >= (int64_t)vocab->count)
        return false;
    /* The index knows the position of every VOCAB_INDEX_STEPth term; walk the lengths from
     * there. */
    next = vocab->index[line / VOCAB_INDEX_STEP];
    for (int64_t i = line / VOCAB_INDEX_STEP * VOCAB_INDEX_STEP; i <= line; i++)
        if (!vocab_term_at(vocab, next, &term, &next))
            return false;
    *ret_term = term;
    return true;
}

bool
vocab_integer(const struct vocab *vocab, int64_t line, int64_t *ret_term)
{
    if (vocab->keys != VOCAB_INTEGERS || line < 0 || line >= (int64_t)vocab->count)
        return false;
    memcpy(ret_term, vocab->terms + (uint64_t)line * sizeof *ret_term, sizeof *ret_term);
    return true;
}
