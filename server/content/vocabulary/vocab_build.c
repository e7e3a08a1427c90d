/* vocab_build.c - build a table's bytes from terms. */
#include "content/vocabulary/vocab_table.h"
#include "content/vocabulary/vocab_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/crc32c.h"
#include "core/hash_farm.h"
#include "core/magic.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/status.h"

/* At 0.5 about one term in forty is outside its home bucket, mostly rare ones from the end of the
 * list. At 0.7 it is one in twelve, and a lookup takes a twentieth longer. */
#define TERMS_PER_BUCKET (VOCAB_BUCKET_TERMS * 0.5)

/* Terms with equal hashes, by accident or intent, would make every probe long. Then try another
 * seed, a few times. Seeds are constants, so all builds make the same table. */
#define TOLERABLE_PROBE 64
#define SEED_ATTEMPTS 8

struct builder {
    const struct vocab_terms *terms;
    struct vocab_header header;
    struct vocab_layout layout;
    uint8_t *table;
    struct vocab_bucket *buckets;
    uint8_t *stored; /* the terms in the table */
};

/* A term's entry in a bucket. */
struct slot_entry {
    struct byte_view term; /* of strings: as it is stored */
    uint64_t home, key;
    uint32_t value, pass_bit;
};

/* So many terms ahead their buckets are fetched. */
enum { AHEAD = 32 };

/* Up to 60 bytes of a term for a message, with \xHH for bytes that are not printable ASCII. */
struct shown {
    char text[256];
};

static struct shown
show(struct byte_view term)
{
    struct shown shown;
    size_t at = 0;

    for (uint64_t i = 0; i < term.size && i < 60; i++) {
        if (term.data[i] >= 0x20 && term.data[i] < 0x7F && term.data[i] != '\\')
            shown.text[at++] = (char)term.data[i];
        else
            at += (size_t)snprintf(shown.text + at, 5, "\\x%02x", term.data[i]);
    }
    snprintf(shown.text + at, sizeof shown.text - at, "%s", term.size > 60 ? "..." : "");
    return shown;
}

/* The stored term at *position, which moves to the next one. */
static struct byte_view
stored_term(const struct builder *builder, uint64_t *position)
{
    const uint8_t *at = builder->stored + *position;
    uint64_t prefix = *at < 255 ? 1 : 5, bytes = *at < 255 ? *at : load_u32(at + 1);

    *position += prefix + bytes;
    return (struct byte_view){ at + prefix, bytes };
}

static struct byte_view
stored_line(const struct builder *builder, uint64_t line)
{
    const uint64_t *index = (const void *)(builder->table + builder->layout.index);
    uint64_t position = index[line / VOCAB_INDEX_STEP];

    for (uint64_t i = 0; i < line % VOCAB_INDEX_STEP; i++)
        (void)stored_term(builder, &position);
    return stored_term(builder, &position);
}

/* Refuse a duplicate key, as TensorFlow's hash table does, and name both lines. */
static tundish_status
refuse_repeated(const struct builder *builder, uint64_t first, uint64_t again)
{
    const struct vocab_terms *terms = builder->terms;
    const unsigned long long a = first, b = again;

    if (terms->integers != NULL)
        return tnd_fail(TUNDISH_E_PIPELINE,
                        "%s: key %lld has value %llu and again value %llu (%ss %llu and %llu): "
                        "each term may occur once",
                        terms->name, (long long)terms->integers[first], a, b, terms->line_word,
                        a + 1, b + 1);
    return tnd_fail(TUNDISH_E_PIPELINE,
                    "%s: key \"%s\" has value %llu and again value %llu (%ss %llu and %llu): each "
                    "term may occur once",
                    terms->name, show(stored_line(builder, first)).text, a, b, terms->line_word,
                    a + 1, b + 1);
}

/* Compute a term's entry: the value itself for a short one, and a hash tag with the term's position
 * for a long one. *position is that of the stored term, and moves to the next. */
static struct slot_entry
entry_of(const struct builder *builder, uint64_t line, uint64_t *position)
{
    const int64_t *integers = builder->terms->integers;
    const uint64_t seed = builder->header.seed, at = *position;
    struct slot_entry entry = { .value = (uint32_t)line + 1 };
    uint64_t hash;

    if (integers == NULL)
        entry.term = stored_term(builder, position);
    if (integers == NULL && !vocab_is_short(entry.term)) {
        hash = vocab_hash_long(entry.term, seed);
        entry.key = vocab_long_key(hash) | at;
        entry.pass_bit = vocab_pass_bit(vocab_long_key(hash));
    } else {
        entry.key = integers != NULL ? (uint64_t)integers[line] : vocab_short_key(entry.term);
        hash = vocab_hash_short(entry.key, seed);
        entry.pass_bit = vocab_pass_bit(entry.key);
    }
    entry.home = vocab_home(hash, builder->header.bucket_count);
    __builtin_prefetch(&builder->buckets[entry.home], 1);
    return entry;
}

static bool
is_same_term(const struct builder *builder, const struct slot_entry *entry, uint64_t key)
{
    uint64_t position = key & ((UINT64_C(1) << VOCAB_TAG_SHIFT) - 1);

    if (builder->terms->integers != NULL || vocab_is_short(entry->term))
        return key == entry->key;
    return key >> VOCAB_TAG_SHIFT == entry->key >> VOCAB_TAG_SHIFT &&
           bytes_are_equal(entry->term, stored_term(builder, &position));
}

/* Put a term into the first free slot from its home on. Terms are never removed, so an equal term
 * would be found before that slot. */
static tundish_status
insert_term(struct builder *builder, const struct slot_entry *entry)
{
    uint64_t at = entry->home;

    for (uint64_t probe = 1;; probe++) {
        struct vocab_bucket *bucket = &builder->buckets[at];

        for (size_t i = 0; i < VOCAB_BUCKET_TERMS; i++) {
            if (bucket->values[i] == 0) {
                bucket->keys[i] = entry->key;
                bucket->values[i] = entry->value;
                if (probe > builder->header.longest_probe)
                    builder->header.longest_probe = probe;
                return TUNDISH_OK;
            }
            if (is_same_term(builder, entry, bucket->keys[i]))
                return refuse_repeated(builder, bucket->values[i] - 1, entry->value - 1);
        }
        bucket->passed_on |= entry->pass_bit;
        at = at + 1 == builder->header.bucket_count ? 0 : at + 1;
        must(probe <= builder->header.bucket_count);
    }
}

static tundish_status
insert_once(struct builder *builder)
{
    struct slot_entry ahead[AHEAD];
    uint64_t count = builder->terms->count, position = 0;
    tundish_status status = TUNDISH_OK;

    for (uint64_t line = 0; line < count && line < AHEAD; line++)
        ahead[line] = entry_of(builder, line, &position);
    for (uint64_t line = 0; status == TUNDISH_OK && line < count; line++) {
        status = insert_term(builder, &ahead[line % AHEAD]);
        if (line + AHEAD < count)
            ahead[line % AHEAD] = entry_of(builder, line + AHEAD, &position);
    }
    return status;
}

static tundish_status
insert_all(struct builder *builder)
{
    tundish_status status = TUNDISH_OK;

    for (int attempt = 0; attempt < SEED_ATTEMPTS; attempt++) {
        builder->header.seed =
            vocab_fold((uint64_t)attempt, UINT64_C(0x2D358DCCAA6C78A5)) | 1; /* odd */
        builder->header.longest_probe = 0;
        memset(builder->buckets, 0, builder->header.bucket_count * sizeof *builder->buckets);
        status = insert_once(builder);
        if (status != TUNDISH_OK || builder->header.longest_probe <= TOLERABLE_PROBE)
            break;
    }
    return status;
}

/* Terms below 255 bytes have a length of one byte; others have 255 and four more. */
static uint64_t
prefix_bytes(uint64_t term_bytes)
{
    return term_bytes < 255 ? 1 : 5;
}

/* The next of the strings. *at is 0 before the first. */
static struct byte_view
next_string(const struct vocab_terms *terms, uint64_t *at)
{
    return terms->text != NULL ? vocab_text_next(terms->text, at) : terms->strings[(*at)++];
}

/* Compute the sizes of the table, and refuse what exceeds the format. */
static tundish_status
measure(struct builder *builder)
{
    const struct vocab_terms *terms = builder->terms;
    uint64_t terms_bytes = 0, at = 0, bucket_count;

    if (terms->count > VOCAB_MAX_COUNT)
        return tnd_fail(TUNDISH_E_PIPELINE, "%s has %llu terms; a vocabulary may have %llu",
                        terms->name, (unsigned long long)terms->count,
                        (unsigned long long)VOCAB_MAX_COUNT);
    if (terms->integers != NULL) {
        terms_bytes = terms->count * sizeof(int64_t);
    } else {
        for (uint64_t line = 0; line < terms->count; line++) {
            uint64_t bytes = next_string(terms, &at).size;

            terms_bytes += prefix_bytes(bytes) + bytes;
            if (bytes > VOCAB_MAX_TERM_BYTES || terms_bytes > VOCAB_MAX_TEXT_BYTES)
                return tnd_fail(TUNDISH_E_PIPELINE, "%s: the terms up to %s %llu are too long",
                                terms->name, terms->line_word, (unsigned long long)line + 1);
        }
    }
    bucket_count = (uint64_t)((double)terms->count / TERMS_PER_BUCKET) + 1;
    builder->header.count = terms->count;
    builder->header.bucket_count = bucket_count;
    builder->header.terms_bytes = terms_bytes;
    must(vocab_layout((enum vocab_keys)builder->header.keys, terms->count, bucket_count,
                      terms_bytes, &builder->layout));
    builder->header.file_bytes = builder->layout.file_bytes;
    return TUNDISH_OK;
}

static void
copy_terms(struct builder *builder)
{
    const struct vocab_terms *terms = builder->terms;
    uint8_t *to = builder->stored;
    uint64_t *index = (void *)(builder->table + builder->layout.index);
    uint64_t at = 0;

    if (terms->integers != NULL) {
        memcpy(to, terms->integers, terms->count * sizeof *terms->integers);
        return;
    }
    for (uint64_t line = 0; line < terms->count; line++) {
        struct byte_view term = next_string(terms, &at);
        uint32_t bytes = (uint32_t)term.size;

        if (line % VOCAB_INDEX_STEP == 0)
            index[line / VOCAB_INDEX_STEP] = (uint64_t)(to - builder->stored);
        *to = bytes < 255 ? (uint8_t)bytes : 255;
        if (bytes >= 255)
            memcpy(to + 1, &bytes, sizeof bytes);
        to += prefix_bytes(bytes);
        if (bytes > 0)
            memcpy(to, term.data, bytes);
        to += bytes;
    }
}

/* Fingerprint the terms alone, so that a file and a list agree, and so do builds that lay out
 * buckets differently. */
static uint64_t
fingerprint_of(const struct builder *builder)
{
    uint64_t hash = tnd_hash_farm(builder->stored, builder->header.terms_bytes);

    return tnd_hash_farm_cat(tnd_hash_farm_cat(hash, builder->header.count), builder->header.keys);
}

static tundish_status
build(struct builder *builder)
{
    struct vocab_header *header = &builder->header;
    tundish_status status = measure(builder);

    if (status != TUNDISH_OK)
        return status;
    /* Page alignment matches that of the mapped file. The allocation may fail: its size comes from
     * a user's file. */
    builder->table = aligned_alloc(4096, (header->file_bytes + 4095) / 4096 * 4096);
    if (builder->table == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "%s: no memory for a table of %llu bytes",
                        builder->terms->name, (unsigned long long)header->file_bytes);
    madvise(builder->table, header->file_bytes, MADV_HUGEPAGE); /* buckets are met at random */
    builder->buckets = (void *)(builder->table + builder->layout.buckets);
    builder->stored = builder->table + builder->layout.terms;
    copy_terms(builder);
    if (builder->terms->text != NULL)
        vocab_text_forget(builder->terms->text);
    status = insert_all(builder);
    if (status != TUNDISH_OK)
        return status;
    header->fingerprint = fingerprint_of(builder);
    header->body_crc =
        tnd_crc32c(0, builder->table + VOCAB_HEADER_BYTES, header->file_bytes - VOCAB_HEADER_BYTES);
    header->header_crc = tnd_crc32c(0, header, offsetof(struct vocab_header, header_crc));
    /* Padding after the header must not carry old memory into the file. */
    memset(builder->table, 0, VOCAB_HEADER_BYTES);
    memcpy(builder->table, header, sizeof *header);
    return TUNDISH_OK;
}

tundish_status
vocab_build(const struct vocab_terms *terms, const struct vocab_content *content,
            uint8_t **ret_table, uint64_t *ret_table_bytes)
{
    struct builder builder = {
        .terms = terms,
        .header = { .magic = TND_VOCABULARY_MAGIC,
                    .version = VOCAB_VERSION,
                    .byte_order = VOCAB_BYTE_ORDER,
                    .keys = terms->integers != NULL ? VOCAB_INTEGERS : VOCAB_STRINGS,
                    .hash = VOCAB_HASH,
                    .content = *content },
    };
    tundish_status status = build(&builder);

    if (status != TUNDISH_OK) {
        free(builder.table);
        return status;
    }
    *ret_table = builder.table;
    *ret_table_bytes = builder.header.file_bytes;
    return TUNDISH_OK;
}
