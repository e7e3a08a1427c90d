/* example_single.c - features with one value, in the form that writers give them.
 *
 * Of such an entry, all but the value follows from the feature and the entry's length, so a few
 * words are compared to confirm tags, name and all four lengths at once. Which feature to compare
 * with is hashed from the name, not guessed from the feature before: records lack features here and
 * there, and each wrong guess is a mispredicted branch.
 */
#include <stdlib.h>
#include <string.h>

#include "content/records/example_parsing.h"
#include "core/memory.h"

/* Lengths below this have one byte. */
enum { LENGTH_END = 128 };

/* Entry, its length, name, its length; after the name: value, length of the feature, its kind,
 * length of the list, its values, and their length. */
enum { BEFORE_NAME = 4, AFTER_NAME = 6, HEADER_BYTES = BEFORE_NAME + AFTER_NAME };
enum { ENTRY_HEADER_BYTES = 2, WINDOW_BYTES = 16 };

enum { FACTORS_TRIED = 64 };

/* A header byte by byte, as far as it does not depend on the entry's length, and what is added to
 * each byte for each byte of length. */
struct header {
    int bytes[BEFORE_NAME + LENGTH_END + AFTER_NAME];
    int factors[BEFORE_NAME + LENGTH_END + AFTER_NAME];
};

static struct header
header_of(const struct example_feature *feature)
{
    const int name = (int)feature->name_bytes, after = BEFORE_NAME + name;
    struct header header = { .bytes = { TAG_ENTRY, 0, TAG_KEY, name }, .factors = { 0, 1 } };

    for (int i = 0; i < name; i++)
        header.bytes[BEFORE_NAME + i] = (uint8_t)feature->name[i];
    header.bytes[after] = TAG_VALUE;
    header.bytes[after + 2] = example_kind_tag(feature->dtype);
    header.bytes[after + 4] = TAG_PACKED;
    for (int i = 1; i < AFTER_NAME; i += 2) {
        /* Each length is that of the entry without all that stands up to it. */
        header.bytes[after + i] = ENTRY_HEADER_BYTES - (after + i + 1);
        header.factors[after + i] = 1;
    }
    return header;
}

/* The word of up to eight bytes; a negative byte borrows from the next one, which the factor's
 * product gives back. */
static uint64_t
word_of(const int *bytes, int count)
{
    uint64_t word = 0;

    for (int i = 0; i < 8 && i < count; i++)
        word += (uint64_t)(int64_t)bytes[i] << 8 * i;
    return word;
}

static uint64_t
mask_of(int count)
{
    return count >= 8 ? UINT64_MAX : count <= 0 ? 0 : UINT64_MAX >> (64 - 8 * count);
}

/* The window at `from` of a header of `end` bytes. */
static struct entry_window
window_of(const struct header *header, int from, int end)
{
    const int *bytes = &header->bytes[from], *factors = &header->factors[from];
    const int left = end - from;

    return (struct entry_window){
        .base = { word_of(bytes, left), word_of(bytes + 8, left - 8) },
        .factor = { word_of(factors, left), word_of(factors + 8, left - 8) },
        .mask = { mask_of(left), mask_of(left - 8) },
    };
}

static struct single_head
single_head(const struct example_parser *parser, uint32_t f)
{
    const struct example_feature *feature = &parser->features[f];
    struct single_head head = { .room = 0 };
    struct header header;
    int bytes;

    if (feature->is_list || feature->value_count != 1 || parser->first[f] != (int32_t)f ||
        parser->same[f] != NOBODY || feature->name_bytes >= LENGTH_END - HEADER_BYTES)
        return head;
    header = header_of(feature);
    bytes = HEADER_BYTES + (int)feature->name_bytes;
    head.bit = UINT64_C(1) << f % 64;
    head.word = f / 64;
    head.header_bytes = (uint8_t)bytes;
    head.least = (uint8_t)(bytes - ENTRY_HEADER_BYTES);
    head.room = (uint8_t)(LENGTH_END - head.least);
    head.kind = example_kind_tag(feature->dtype);
    head.first = window_of(&header, 0, bytes);
    if (bytes > WINDOW_BYTES)
        head.last = window_of(&header, bytes - WINDOW_BYTES, bytes);
    if (bytes > 2 * WINDOW_BYTES) {
        head.middle = (const uint8_t *)feature->name + WINDOW_BYTES - BEFORE_NAME;
        head.middle_bytes = (uint64_t)(bytes - 2 * WINDOW_BYTES);
    }
    return head;
}

/* Readable bytes follow every record, and no name leads further than 36 of them. */
static inline uint32_t
slot_of(const struct single_hints *hints, const uint8_t *at)
{
    const uint8_t *name = at + hints->offset + (at[3] & hints->mask);

    return load_u32(name) * hints->factor >> (32 - HINT_BITS);
}

/* Give each feature a slot. Returns how many have to share one. */
static uint32_t
fill_slots(const struct example_parser *parser, struct single_hints *hints)
{
    const uint32_t count = parser->count < UINT16_MAX ? parser->count : UINT16_MAX;
    uint32_t shared = 0;

    for (uint32_t slot = 0; slot < 1 << HINT_BITS; slot++)
        hints->slots[slot] = 0;
    for (uint32_t f = 0; f < count; f++) {
        const struct example_feature *feature = &parser->features[f];
        uint8_t entry[BEFORE_NAME + LENGTH_END + 1] = { TAG_ENTRY, 0, TAG_KEY };
        uint16_t *slot;

        if (parser->singles[f].room == 0)
            continue;
        entry[3] = (uint8_t)feature->name_bytes;
        memcpy(entry + BEFORE_NAME, feature->name, feature->name_bytes);
        entry[BEFORE_NAME + feature->name_bytes] = TAG_VALUE;
        slot = &hints->slots[slot_of(hints, entry)];
        shared += *slot != 0;
        *slot = (uint16_t)f;
    }
    return shared;
}

/* The length of a name and its first three bytes tell most features apart, its last three bytes
 * those that are numbered. */
static void
find_hints(const struct example_parser *parser, struct single_hints *hints)
{
    static const struct single_hints ways[2] = { { .offset = 3, .mask = 0 },
                                                 { .offset = 1, .mask = 31 } };
    struct single_hints best = ways[0];
    uint32_t fewest = UINT32_MAX;

    for (uint32_t i = 0; i < 2 * FACTORS_TRIED && fewest > 0; i++) {
        uint32_t shared;

        *hints = ways[i % 2];
        hints->factor = UINT32_C(0x9E3779B1) * (i | 1);
        shared = fill_slots(parser, hints);
        if (shared < fewest) {
            fewest = shared;
            best = *hints;
        }
    }
    *hints = best;
}

void
example_singles_open(struct example_parser *parser)
{
    parser->singles = tnd_zalloc(parser->count + 1, sizeof *parser->singles);
    for (uint32_t f = 0; f < parser->count; f++)
        parser->singles[f] = single_head(parser, f);
    find_hints(parser, &parser->hints);
}

void
example_singles_close(struct example_parser *parser)
{
    free(parser->singles);
}

static inline uint64_t
difference(const uint8_t *at, const struct entry_window *window, uint64_t length)
{
    const uint64_t low = load_u64(at) ^ (window->base.low + window->factor.low * length);
    const uint64_t high = load_u64(at + 8) ^ (window->base.high + window->factor.high * length);

    return (low & window->mask.low) | (high & window->mask.high);
}

/* Whether the entry of `length` bytes begins so; it has at least `least`. */
static inline bool
begins_with(const struct single_head *head, const uint8_t *at, uint64_t length)
{
    if (difference(at, &head->first, length) != 0)
        return false;
    if (head->header_bytes <= WINDOW_BYTES)
        return true;
    return difference(at + head->header_bytes - WINDOW_BYTES, &head->last, length) == 0 &&
           (head->middle_bytes == 0 ||
            memcmp(at + WINDOW_BYTES, head->middle, head->middle_bytes) == 0);
}

#define MORE_FOLLOWS UINT64_C(0x8080808080808080)

/* Eight times seven bits, moved together. */
static inline uint64_t
join_sevens(uint64_t word)
{
    word = (word & UINT64_C(0x7f007f007f007f00)) >> 1 | (word & UINT64_C(0x007f007f007f007f));
    word = (word & UINT64_C(0x3fff00003fff0000)) >> 2 | (word & UINT64_C(0x00003fff00003fff));
    return (word & UINT64_C(0x0fffffff00000000)) >> 4 | (word & UINT64_C(0x000000000fffffff));
}

/* A varint that takes all `bytes`. One of up to eight is put together without a branch: how long
 * numbers are is not to be predicted. One of ten is a negative number. */
static inline bool
read_varint(const uint8_t *at, uint64_t bytes, int64_t *ret_value)
{
    const uint64_t word = load_u64(at);
    uint64_t mask, value;

    if (__builtin_expect(bytes - 1 < 8, 1)) {
        mask = UINT64_MAX >> (64 - 8 * bytes);
        *ret_value = (int64_t)join_sevens(word & mask);
        return (word & mask & MORE_FOLLOWS) == (mask >> 8 & MORE_FOLLOWS);
    }
    if (bytes == 10) {
        value = join_sevens(word) | (uint64_t)(at[8] & 127) << 56 | (uint64_t)at[9] << 63;
        *ret_value = (int64_t)value;
        return (word & MORE_FOLLOWS) == MORE_FOLLOWS && at[8] > 127 && at[9] <= 127;
    }
    if (wire_varint(at, at + bytes, &value) != at + bytes)
        return false;
    *ret_value = (int64_t)value;
    return true;
}

/* Store the value of `bytes` bytes as a feature's value of the row. False: it is not one value of
 * its kind. */
static inline bool
store_value(uint8_t kind, const uint8_t *at, uint64_t bytes, uint8_t *values, size_t row)
{
    if (kind == TAG_BYTES_LIST) {
        *(struct byte_view *)(void *)(values + row * sizeof(struct byte_view)) =
            (struct byte_view){ at, bytes };
        return true;
    }
    if (kind == TAG_INT64_LIST)
        return read_varint(at, bytes, (int64_t *)(void *)(values + row * sizeof(int64_t)));
    if (bytes != sizeof(float))
        return false;
    memcpy(values + row * sizeof(float), at, sizeof(float));
    return true;
}

const uint8_t *
example_take_singles(struct parsing *parsing, const uint8_t *at, const uint8_t *end,
                     uint32_t *previous)
{
    const struct single_head *heads = parsing->parser->singles;
    const struct single_hints *hints = &parsing->parser->hints;
    uint8_t *const *targets = parsing->targets;
    const size_t row = (size_t)parsing->row;
    uint32_t word = 0, f = *previous;
    uint64_t seen = parsing->seen[0];

    while (at < end) {
        const uint32_t hint = hints->slots[slot_of(hints, at)];
        const struct single_head *head = &heads[hint];
        const uint8_t length = at[1], bytes = (uint8_t)(length - head->least); /* of the value */

        if (bytes >= head->room || length + ENTRY_HEADER_BYTES > end - at ||
            !begins_with(head, at, length) ||
            !store_value(head->kind, at + head->header_bytes, bytes, targets[hint], row))
            break;
        f = hint;
        if (head->word != word) {
            parsing->seen[word] = seen;
            word = head->word;
            seen = parsing->seen[word];
        }
        if (seen & head->bit)
            return NULL;
        seen |= head->bit;
        at += length + ENTRY_HEADER_BYTES;
    }
    parsing->seen[word] = seen;
    *previous = f;
    return at;
}
