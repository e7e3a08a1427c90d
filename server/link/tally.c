/* tally.c - values are merged two by two, in any order, with the same result. */
#include "link/tally.h"

#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/memory.h"

enum {
    CHAINS = 256,
    ENTRY_BYTES = 8
}; /* an entry of LINK_EACH and LINK_KINDS: rank, length, bytes */

struct tallies {
    struct tally *chains[CHAINS];
    struct link_key *changed; /* keys, since a tally may be forgotten */
    size_t changed_count, changed_room;
};

struct tallies *
tallies_open(void)
{
    return tnd_zalloc(1, sizeof(struct tallies));
}

static void
drop(struct tally **at)
{
    struct tally *tally = *at;

    *at = tally->next;
    for (uint32_t i = 0; i < tally->part_count; i++)
        free(tally->parts[i].value.bytes);
    free(tally->parts);
    free(tally->own.bytes);
    free(tally->told.bytes);
    free(tally->total.bytes);
    free(tally);
}

void
tallies_close(struct tallies *tallies)
{
    for (size_t i = 0; i < CHAINS; i++)
        while (tallies->chains[i] != NULL)
            drop(&tallies->chains[i]);
    free(tallies->changed);
    free(tallies);
}

static struct tally **
find(const struct tallies *tallies, const struct link_key *key)
{
    struct tally *const *at = &tallies->chains[tnd_hash_farm(key, sizeof *key) % CHAINS];

    while (*at != NULL && memcmp(&(*at)->key, key, sizeof *key) != 0)
        at = &(*at)->next;
    return (struct tally **)at;
}

struct tally *
tallies_find(const struct tallies *tallies, const struct link_key *key)
{
    return *find(tallies, key);
}

struct tally *
tallies_make(struct tallies *tallies, const struct link_key *key, enum link_merge merge,
             bool is_running)
{
    struct tally **at = find(tallies, key);

    if (*at == NULL) {
        *at = tnd_zalloc(1, sizeof **at);
        (*at)->key = *key;
        (*at)->merge = merge;
        (*at)->is_running = is_running;
    }
    return (*at)->merge == merge && (*at)->is_running == is_running ? *at : NULL;
}

void
tallies_forget(struct tallies *tallies, const struct link_key *key)
{
    struct tally **at = find(tallies, key);

    if (*at != NULL)
        drop(at);
}

void
tallies_note_change(struct tallies *tallies, struct tally *tally)
{
    if (tally->has_changed)
        return;
    tally->has_changed = true;
    if (tallies->changed_count == tallies->changed_room) {
        tallies->changed_room = tallies->changed_room * 2 + 8;
        tallies->changed =
            tnd_realloc(tallies->changed, tallies->changed_room, sizeof *tallies->changed);
    }
    tallies->changed[tallies->changed_count++] = tally->key;
}

struct tally *
tallies_take_changed(struct tallies *tallies)
{
    while (tallies->changed_count > 0) {
        struct tally *tally = *find(tallies, &tallies->changed[--tallies->changed_count]);

        if (tally != NULL && tally->has_changed) {
            tally->has_changed = false;
            return tally;
        }
    }
    return NULL;
}

static int
compare(struct byte_view a, struct byte_view b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common > 0 ? memcmp(a.data, b.data, common) : 0;

    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static struct byte_view
view(const struct tally_value *value)
{
    return (struct byte_view){ value->bytes, value->byte_count };
}

static uint8_t *
copy_of(struct byte_view bytes)
{
    uint8_t *copy = tnd_alloc(bytes.size + 1);

    if (bytes.size > 0)
        memcpy(copy, bytes.data, bytes.size);
    return copy;
}

/* The first entry, with its head; no bytes: there is none, or it is not whole. */
static struct byte_view
first_entry(struct byte_view from)
{
    uint32_t byte_count = from.size >= ENTRY_BYTES ? load_u32(from.data + 4) : UINT32_MAX;

    if (from.size < ENTRY_BYTES || byte_count > from.size - ENTRY_BYTES)
        return (struct byte_view){ 0 };
    return (struct byte_view){ from.data, ENTRY_BYTES + byte_count };
}

static void
pass_over(struct byte_view *from, struct byte_view entry)
{
    from->data += entry.size;
    from->size -= entry.size;
}

bool
link_next_of_each(struct byte_view *rest, uint32_t *ret_rank, struct byte_view *ret_bytes)
{
    struct byte_view entry = first_entry(*rest);

    if (entry.size == 0)
        return false;
    *ret_rank = load_u32(entry.data);
    *ret_bytes = (struct byte_view){ entry.data + ENTRY_BYTES, entry.size - ENTRY_BYTES };
    pass_over(rest, entry);
    return true;
}

bool
link_are_same(const struct link_total *total)
{
    struct byte_view kinds = { total->bytes, total->byte_count };

    return first_entry(kinds).size == kinds.size;
}

static bool
has_entries(enum link_merge merge)
{
    return merge == LINK_EACH || merge == LINK_KINDS;
}

/* Entries of EACH stand in the order of their ranks, those of KINDS in that of their bytes. */
static int
compare_entries(enum link_merge merge, struct byte_view a, struct byte_view b)
{
    uint32_t rank = load_u32(a.data), other = load_u32(b.data);

    if (merge == LINK_KINDS)
        return compare((struct byte_view){ a.data + ENTRY_BYTES, a.size - ENTRY_BYTES },
                       (struct byte_view){ b.data + ENTRY_BYTES, b.size - ENTRY_BYTES });
    return (rank > other) - (rank < other);
}

/* The entries of both. If two are equal, the one of the lower rank is kept. */
static struct tally_value
merge_entries(enum link_merge merge, struct byte_view a, struct byte_view b)
{
    struct tally_value merged = { .bytes = tnd_alloc(a.size + b.size + 1) };

    while (a.size > 0 || b.size > 0) {
        struct byte_view first = first_entry(a), other = first_entry(b), taken;
        int order = first.size == 0   ? 1
                    : other.size == 0 ? -1
                                      : compare_entries(merge, first, other);

        taken = order > 0 || (order == 0 && load_u32(other.data) < load_u32(first.data)) ? other
                                                                                         : first;
        if (order <= 0)
            pass_over(&a, first);
        if (order >= 0)
            pass_over(&b, other);
        memcpy(merged.bytes + merged.byte_count, taken.data, taken.size);
        merged.byte_count += taken.size;
    }
    return merged;
}

static struct tally_value
merge_any(struct byte_view a, struct byte_view b)
{
    struct byte_view longer = a.size >= b.size ? a : b, shorter = a.size >= b.size ? b : a;
    struct tally_value merged = { .bytes = copy_of(longer), .byte_count = longer.size };

    for (size_t i = 0; i < shorter.size; i++)
        merged.bytes[i] |= shorter.data[i];
    return merged;
}

static struct tally_value
merge_two(enum link_merge merge, const struct tally_value *a, const struct tally_value *b)
{
    bool is_first = compare(view(a), view(b)) < 0;
    const struct tally_value *taken = is_first == (merge == LINK_LOWEST) ? a : b;
    struct tally_value merged;

    if (has_entries(merge))
        merged = merge_entries(merge, view(a), view(b));
    else if (merge == LINK_ANY)
        merged = merge_any(view(a), view(b));
    else
        merged =
            (struct tally_value){ .bytes = copy_of(view(taken)), .byte_count = taken->byte_count };
    merged.nodes = a->nodes + b->nodes;
    return merged;
}

void
tally_set(struct tally_value *value, enum link_merge merge, uint32_t rank, struct byte_view bytes)
{
    size_t head = has_entries(merge) ? ENTRY_BYTES : 0;
    uint32_t byte_count = (uint32_t)bytes.size;

    free(value->bytes);
    *value = (struct tally_value){ .nodes = 1, .byte_count = head + bytes.size };
    value->bytes = tnd_alloc(value->byte_count + 1);
    if (head > 0) {
        memcpy(value->bytes, &rank, 4);
        memcpy(value->bytes + 4, &byte_count, 4);
    }
    if (bytes.size > 0)
        memcpy(value->bytes + head, bytes.data, bytes.size);
}

void
tally_move(struct tally_value *to, struct tally_value *from)
{
    free(to->bytes);
    *to = *from;
    *from = (struct tally_value){ 0 };
}

static bool
is_whole(struct byte_view entries)
{
    for (struct byte_view entry; entries.size > 0; pass_over(&entries, entry)) {
        entry = first_entry(entries);
        if (entry.size == 0)
            return false;
    }
    return true;
}

bool
tally_hear(struct tally *tally, uint32_t rank, struct tally_value *value)
{
    struct tally_part *part;
    uint32_t index = 0;

    if (has_entries(tally->merge) && !is_whole(view(value)))
        return false;
    while (index < tally->part_count && tally->parts[index].rank != rank)
        index++;
    if (index == tally->part_count) {
        tally->parts = tnd_realloc(tally->parts, tally->part_count + 1, sizeof *tally->parts);
        tally->parts[tally->part_count++] = (struct tally_part){ .rank = rank };
    }
    part = &tally->parts[index];
    tally_move(&part->value, value);
    return true;
}

uint32_t
tally_nodes(const struct tally *tally)
{
    uint32_t nodes = tally->own.nodes;

    for (uint32_t i = 0; i < tally->part_count; i++)
        nodes += tally->parts[i].value.nodes;
    return nodes;
}

struct tally_value
tally_merged(const struct tally *tally)
{
    struct tally_value merged = tally->own;

    merged.bytes = copy_of(view(&tally->own));
    for (uint32_t i = 0; i < tally->part_count; i++) {
        const struct tally_value *part = &tally->parts[i].value;
        struct tally_value both;

        if (merged.nodes == 0) {
            both = *part;
            both.bytes = copy_of(view(part));
        } else {
            both = merge_two(tally->merge, &merged, part);
        }
        free(merged.bytes);
        merged = both;
    }
    return merged;
}

bool
tally_same_bytes(const struct tally_value *a, const struct tally_value *b)
{
    return compare(view(a), view(b)) == 0;
}
