/* vocab_build.c - build a table's bytes from terms. */
#include "content/vocabulary/vocab_table.h"

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
    uint64_t *positions; /* of each term among the terms, for LONG keys */
};

/* A term's entry in a bucket. */
struct slot_entry {
    uint64_t hash, key;
    uint32_t value, pass_bit;
};

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

/* Refuse a duplicate key, as TensorFlow's hash table does, and name both lines. */
static tundish_status
refuse_repeated(const struct vocab_terms *terms, uint64_t first, uint64_t again)
{
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
                    terms->name, show(terms->strings[first]).text, a, b, terms->line_word, a + 1,
                    b + 1);
}

/* Compute a term's entry: the value itself for a short one, and a hash tag with the term's position
 * for a long one. */
static struct slot_entry
entry_of(const struct builder *builder, uint64_t line)
{
    const struct vocab_terms *terms = builder->terms;
    const uint64_t seed = builder->header.seed;
    struct slot_entry entry = { .value = (uint32_t)line + 1 };

    if (terms->integers == NULL && !vocab_is_short(terms->strings[line])) {
        entry.hash = vocab_hash_long(terms->strings[line], seed);
        entry.key = vocab_long_key(entry.hash) | builder->positions[line];
        entry.pass_bit = vocab_pass_bit(vocab_long_key(entry.hash));
        return entry;
    }
    entry.key = terms->integers != NULL ? (uint64_t)terms->integers[line]
                                        : vocab_short_key(terms->strings[line]);
    entry.hash = vocab_hash_short(entry.key, seed);
    entry.pass_bit = vocab_pass_bit(entry.key);
    return entry;
}

static bool
is_same_term(const struct builder *builder, const struct slot_entry *entry, uint64_t key,
             uint32_t value)
{
    const struct byte_view *strings = builder->terms->strings;

    if (strings == NULL || vocab_is_short(strings[entry->value - 1]))
        return key == entry->key;
    return key >> VOCAB_TAG_SHIFT == entry->key >> VOCAB_TAG_SHIFT &&
           bytes_are_equal(strings[entry->value - 1], strings[value - 1]);
}

/* Put a term into the first free slot from its home on. Terms are never removed, so an equal term
 * would be found before that slot. */
static tundish_status
insert_term(struct builder *builder, uint64_t line)
{
    const struct slot_entry entry = entry_of(builder, line);
    uint64_t at = vocab_home(entry.hash, builder->header.bucket_count);

    for (uint64_t probe = 1;; probe++) {
        struct vocab_bucket *bucket = &builder->buckets[at];

        for (size_t i = 0; i < VOCAB_BUCKET_TERMS; i++) {
            if (bucket->values[i] == 0) {
                bucket->keys[i] = entry.key;
                bucket->values[i] = entry.value;
                if (probe > builder->header.longest_probe)
                    builder->header.longest_probe = probe;
                return TUNDISH_OK;
            }
            if (is_same_term(builder, &entry, bucket->keys[i], bucket->values[i]))
                return refuse_repeated(builder->terms, bucket->values[i] - 1, line);
        }
        bucket->passed_on |= entry.pass_bit;
        at = at + 1 == builder->header.bucket_count ? 0 : at + 1;
        must(probe <= builder->header.bucket_count);
    }
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
        for (uint64_t line = 0; status == TUNDISH_OK && line < builder->terms->count; line++)
            status = insert_term(builder, line);
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

/* Compute the sizes of the table, and refuse what exceeds the format. */
static tundish_status
measure(struct builder *builder)
{
    const struct vocab_terms *terms = builder->terms;
    uint64_t terms_bytes = 0;
    uint64_t bucket_count;

    if (terms->count > VOCAB_MAX_COUNT)
        return tnd_fail(TUNDISH_E_PIPELINE, "%s has %llu terms; a vocabulary may have %llu",
                        terms->name, (unsigned long long)terms->count,
                        (unsigned long long)VOCAB_MAX_COUNT);
    if (terms->integers != NULL) {
        terms_bytes = terms->count * sizeof(int64_t);
    } else {
        builder->positions = tnd_zalloc(terms->count, sizeof *builder->positions);
        for (uint64_t line = 0; line < terms->count; line++) {
            uint64_t bytes = terms->strings[line].size;

            builder->positions[line] = terms_bytes;
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
    uint8_t *to = builder->table + builder->layout.terms;
    uint64_t *index = (void *)(builder->table + builder->layout.index);

    if (terms->integers != NULL) {
        memcpy(to, terms->integers, terms->count * sizeof *terms->integers);
        return;
    }
    for (uint64_t line = 0; line < terms->count; line++) {
        struct byte_view term = terms->strings[line];
        uint32_t bytes = (uint32_t)term.size;

        if (line % VOCAB_INDEX_STEP == 0)
            index[line / VOCAB_INDEX_STEP] = builder->positions[line];
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
    uint64_t hash =
        tnd_hash_farm(builder->table + builder->layout.terms, builder->header.terms_bytes);

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
    builder->buckets = (void *)(builder->table + builder->layout.buckets);
    status = insert_all(builder);
    if (status != TUNDISH_OK)
        return status;
    copy_terms(builder);
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

    free(builder.positions);
    if (status != TUNDISH_OK) {
        free(builder.table);
        return status;
    }
    *ret_table = builder.table;
    *ret_table_bytes = builder.header.file_bytes;
    return TUNDISH_OK;
}
