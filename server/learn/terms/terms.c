/* terms.c - counting terms.
 *
 * Nearly all of the time is spent waiting for memory, so counting a known term touches one cache
 * line, its slot's. A short text is in its slot whole, as a number that no other text of its length
 * has, and the slot has its count. Only a long text is compared with the one in the list.
 */
#include "learn/terms/terms.h"

#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/memory.h"
#include "learn/terms/term_runs.h"

enum {
    FIRST_SLOTS = 64,
    FIRST_BLOCK_BYTES = 4096,
    BLOCK_BYTES = 256 * 1024,
    SPILL_BYTES = 256 * 1024
};

/* The texts of a chunk are hashed and their slots are prefetched before the first one is looked
 * up. */
enum { CHUNK = 32 };

/* The low bits of a slot's tally: the length of a short text, or LONG_TEXT. */
enum { SHORT_BYTES = 8, LONG_TEXT = 9, KIND_BITS = 4, KIND_MASK = (1 << KIND_BITS) - 1 };
enum { TALLY_ONE = 1 << KIND_BITS };

struct slot {
    uint64_t hash;
    uint32_t number; /* of the term + 1; 0: free */
    uint32_t tally;  /* the kind of text; above it, counts not yet added to the term */
};

/* The bytes of terms, in blocks: the list points into them, so they must not move. */
struct text_block {
    struct text_block *next;
    size_t used_bytes, bytes;
    uint8_t data[];
};

struct terms {
    struct terms_memory *memory;
    int64_t held_bytes;
    struct slot *slots;
    uint32_t slot_count;
    struct term *list;
    uint32_t count, capacity;
    struct text_block *texts;
    struct term_runs runs;
};

struct text_key {
    uint64_t hash;
    uint32_t kind;
};

struct terms *
terms_open(struct terms_memory *memory, int folder)
{
    struct terms *terms = tnd_zalloc(1, sizeof *terms);

    terms->memory = memory;
    terms->runs = (struct term_runs){ .folder = folder, .file = -1 };
    atomic_fetch_add_explicit(&memory->table_count, 1, memory_order_relaxed);
    return terms;
}

static void
hold_bytes(struct terms *terms, int64_t bytes)
{
    terms->held_bytes += bytes;
    atomic_fetch_add_explicit(&terms->memory->used_bytes, bytes, memory_order_relaxed);
}

static void
empty(struct terms *terms)
{
    while (terms->texts != NULL) {
        struct text_block *next = terms->texts->next;

        free(terms->texts);
        terms->texts = next;
    }
    free(terms->slots);
    free(terms->list);
    terms->slots = NULL;
    terms->list = NULL;
    terms->slot_count = terms->count = terms->capacity = 0;
    hold_bytes(terms, -terms->held_bytes);
}

void
terms_close(struct terms *terms)
{
    if (terms == NULL)
        return;
    empty(terms);
    term_runs_close(&terms->runs);
    atomic_fetch_sub_explicit(&terms->memory->table_count, 1, memory_order_relaxed);
    free(terms);
}

/* Up to eight bytes as a number, the first byte lowest. The loads overlap instead of reading past
 * the text. */
static uint64_t
short_word(const uint8_t *data, size_t size)
{
    if (size == 8)
        return load_u64(data);
    if (size >= 4)
        return load_u32(data) | (uint64_t)load_u32(data + size - 4) << (8 * (size - 4));
    if (size == 0)
        return 0;
    return data[0] | (uint64_t)data[size / 2] << (8 * (size / 2)) |
           (uint64_t)data[size - 1] << (8 * (size - 1));
}

/* The finalizer of SplitMix64. It is a bijection, so two short texts of one length have equal
 * hashes only if they are equal. */
static uint64_t
mix(uint64_t word)
{
    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return word ^ word >> 31;
}

static struct text_key
key_of(struct byte_view text)
{
    if (text.size <= SHORT_BYTES)
        return (struct text_key){ mix(short_word(text.data, text.size)), (uint32_t)text.size };
    return (struct text_key){ tnd_hash_farm(text.data, text.size), LONG_TEXT };
}

/* Is the text with this key in the slot? Its bytes are needed only if it is long. */
static inline bool
is_of_key(const struct slot *slot, struct text_key key)
{
    return slot->number != 0 && slot->hash == key.hash &&
           ((slot->tally ^ key.kind) & KIND_MASK) == 0;
}

/* Find the slot of the text, or the free slot where it belongs. Linear probing ends because a
 * quarter of the slots is free. */
static struct slot *
find_term(const struct terms *terms, struct byte_view text, struct text_key key)
{
    uint32_t mask = terms->slot_count - 1;

    for (uint32_t at = (uint32_t)key.hash & mask;; at = (at + 1) & mask) {
        struct slot *slot = &terms->slots[at];

        if (slot->number == 0)
            return slot;
        if (is_of_key(slot, key) &&
            (key.kind != LONG_TEXT || bytes_are_equal(terms->list[slot->number - 1].text, text)))
            return slot;
    }
}

static void
grow(struct terms *terms, uint32_t count)
{
    uint32_t old_count = terms->slot_count;
    struct slot *old = terms->slots;

    /* Zeroed by writing, not by calloc: a page that is read before it is written is mapped
     * twice. */
    terms->slots = tnd_alloc((size_t)count * sizeof *terms->slots);
    memset(terms->slots, 0, (size_t)count * sizeof *terms->slots);
    terms->slot_count = count;
    hold_bytes(terms, (int64_t)(count - old_count) * (int64_t)sizeof *terms->slots);
    for (uint32_t i = 0; i < old_count; i++) {
        uint32_t at = (uint32_t)old[i].hash & (count - 1);

        if (old[i].number == 0)
            continue;
        while (terms->slots[at].number != 0)
            at = (at + 1) & (count - 1);
        terms->slots[at] = old[i];
    }
    free(old);
}

/* Make room for one more term, and keep a quarter of the slots free. */
static void
make_room(struct terms *terms)
{
    if (terms->count >= terms->slot_count / 4 * 3)
        grow(terms, terms->slot_count == 0 ? FIRST_SLOTS : 2 * terms->slot_count);
    if (terms->count == terms->capacity) {
        uint32_t capacity = terms->capacity == 0 ? 64 : 2 * terms->capacity;

        terms->list = tnd_realloc(terms->list, capacity, sizeof *terms->list);
        hold_bytes(terms, (int64_t)(capacity - terms->capacity) * (int64_t)sizeof *terms->list);
        terms->capacity = capacity;
    }
}

static const uint8_t *
keep_term(struct terms *terms, struct byte_view text)
{
    struct text_block *block = terms->texts;
    uint8_t *to;

    if (block == NULL || block->bytes - block->used_bytes < text.size) {
        /* The first blocks are small, since a column with few terms should not hold much. */
        size_t bytes = block == NULL ? FIRST_BLOCK_BYTES : 2 * block->bytes;

        bytes = bytes > BLOCK_BYTES ? BLOCK_BYTES : bytes;
        /* A long text gets a block of its own rather than waste the rest of one. */
        bytes = text.size > bytes / 8 ? text.size : bytes;
        block = tnd_alloc(sizeof *block + bytes);
        *block = (struct text_block){ .next = terms->texts, .bytes = bytes };
        terms->texts = block;
        hold_bytes(terms, (int64_t)bytes);
    }
    to = block->data + block->used_bytes;
    if (text.size > 0)
        memcpy(to, text.data, text.size);
    block->used_bytes += text.size;
    return to;
}

static struct slot *
find_or_add(struct terms *terms, struct byte_view text, struct text_key key)
{
    struct slot *slot = terms->slot_count == 0 ? NULL : find_term(terms, text, key);

    if (slot != NULL && slot->number != 0)
        return slot;
    make_room(terms);
    slot = find_term(terms, text, key);
    terms->list[terms->count++] = (struct term){ .text = { keep_term(terms, text), text.size } };
    *slot = (struct slot){ key.hash, terms->count, key.kind };
    return slot;
}

struct term *
terms_at(struct terms *terms, struct byte_view text)
{
    uint32_t number =
        find_or_add(terms, text, key_of(text))->number; /* a new term may move the list */

    return &terms->list[number - 1];
}

/* Add the count in a slot to its term. */
static void
settle(struct terms *terms, struct slot *slot)
{
    terms->list[slot->number - 1].count += slot->tally >> KIND_BITS;
    slot->tally &= KIND_MASK;
}

static void
settle_all(struct terms *terms)
{
    for (uint32_t i = 0; i < terms->slot_count; i++)
        if (terms->slots[i].number != 0)
            settle(terms, &terms->slots[i]);
}

static void
tally_chunk(struct terms *terms, const struct byte_view *texts, size_t count)
{
    struct text_key keys[CHUNK];

    if (terms->slot_count == 0)
        grow(terms, FIRST_SLOTS);
    for (size_t i = 0; i < count; i++) {
        keys[i] = key_of(texts[i]);
        __builtin_prefetch(&terms->slots[keys[i].hash & (terms->slot_count - 1)], 1);
    }
    for (size_t i = 0; i < count; i++) {
        struct slot *slot = &terms->slots[keys[i].hash & (terms->slot_count - 1)];

        /* Nearly always a short text that is in its first slot. */
        if (!is_of_key(slot, keys[i]) || keys[i].kind == LONG_TEXT)
            slot = find_or_add(terms, texts[i], keys[i]);
        /* The tally has 28 bits for the count. */
        if (slot->tally >= UINT32_MAX - TALLY_ONE)
            settle(terms, slot);
        slot->tally += TALLY_ONE;
    }
}

void
terms_tally(struct terms *terms, const struct byte_view *texts, size_t count)
{
    for (size_t at = 0; at < count; at += CHUNK) {
        size_t here = count - at < CHUNK ? count - at : CHUNK, ahead = at + here;

        for (size_t i = 0; i < CHUNK && ahead + i < count; i++)
            __builtin_prefetch(texts[ahead + i].data);
        tally_chunk(terms, texts + at, here);
    }
}

uint32_t
terms_number(const struct terms *terms, const struct term *term)
{
    return (uint32_t)(term - terms->list);
}

uint32_t
terms_count(const struct terms *terms)
{
    return terms->count;
}

const struct term *
terms_list(const struct terms *terms)
{
    return terms->list;
}

tundish_status
terms_relieve(struct terms *terms)
{
    struct terms_memory *memory = terms->memory;
    int64_t used = atomic_load_explicit(&memory->used_bytes, memory_order_relaxed);
    int64_t share = used / atomic_load_explicit(&memory->table_count, memory_order_relaxed);
    tundish_status status;

    /* A table with less than its share leaves it to a larger one: few long runs are merged faster
     * than many short ones. */
    if (used <= memory->limit_bytes || terms->held_bytes < share || terms->held_bytes < SPILL_BYTES)
        return TUNDISH_OK;
    settle_all(terms);
    status = term_runs_write(&terms->runs, terms->list, terms->count, &term_order_text);
    if (status == TUNDISH_OK)
        empty(terms);
    return status;
}

/* The other table's counts are added one by one, as if its values had been counted here. Both
 * tables are walked in the order of their slots: terms of near slots here are near there, too, once
 * this table has room for all. (Without that room, its beginning would fill up first.) */
static void
take_over(struct terms *terms, struct terms *from)
{
    uint32_t slots = terms->slot_count > 0 ? terms->slot_count : FIRST_SLOTS;

    while (slots / 4 * 3 < (uint64_t)terms->count + from->count)
        slots *= 2;
    if (slots > terms->slot_count)
        grow(terms, slots);
    settle_all(from);
    for (uint32_t i = 0; i < from->slot_count; i++) {
        const struct slot *slot = &from->slots[i];
        struct text_key key = { slot->hash, slot->tally & KIND_MASK };
        const struct term *other;
        struct term *term;
        uint32_t number;

        if (slot->number == 0)
            continue;
        other = &from->list[slot->number - 1];
        number = find_or_add(terms, other->text, key)->number; /* a new term may move the list */
        term = &terms->list[number - 1];
        term->count += other->count;
        term->documents += other->documents;
        term->weight += other->weight;
    }
    empty(from);
}

bool
terms_gather(struct terms **tables, uint32_t table_count)
{
    /* A table that is partly on the disk can only be merged. */
    for (uint32_t i = 0; i < table_count; i++)
        if (tables[i]->runs.count > 0)
            return false;
    settle_all(tables[0]);
    for (uint32_t i = 1; i < table_count; i++)
        take_over(tables[0], tables[i]);
    return true;
}

tundish_status
term_merge_open(struct terms **tables, uint32_t table_count, struct term_merge **ret_merge)
{
    struct term_reader *readers;
    uint32_t most = 0, count = 0;
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < table_count; i++)
        most += tables[i]->runs.count + 1;
    readers = tnd_zalloc(most + 1, sizeof *readers);
    for (uint32_t i = 0; i < table_count && status == TUNDISH_OK; i++) {
        struct terms *terms = tables[i];

        for (uint32_t r = 0; r < terms->runs.count && status == TUNDISH_OK; r++)
            status = term_reader_open(&readers[count++], &terms->runs, r);
        if (terms->count > 0 && status == TUNDISH_OK) {
            settle_all(terms);
            term_sort(terms->list, terms->count, &term_order_text);
            term_reader_open_list(&readers[count++], terms->list, terms->count);
        }
    }
    return term_merge_open_readers(readers, count, &term_order_text, status, ret_merge);
}
