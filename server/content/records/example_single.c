/* example_single.c - features with one value, in the form that writers give them.
 *
 * All of such an entry but its value follows from the feature and the entry's length, so a few
 * words are compared to confirm tags, name and all four lengths at once. Which feature to compare
 * with is hashed from the name, not guessed from the feature before: records lack features here and
 * there, and each wrong guess is a mispredicted branch.
 */
#include <stdlib.h>
#include <string.h>

#include "content/records/example_parsing.h"
#include "core/cpu.h"
#include "core/memory.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Lengths below this have one byte. */
enum { LENGTH_END = 128 };

/* Entry, its length, name, its length; after the name: value, length of the feature, its kind,
 * length of the list, its values, and their length. */
enum { BEFORE_NAME = 4, AFTER_NAME = 6, HEADER_BYTES = BEFORE_NAME + AFTER_NAME };

enum { FACTORS_TRIED = 64 };

/* A header byte by byte, as far as it does not depend on the entry's length, and where that is to
 * be added. */
struct header {
    uint8_t bytes[BEFORE_NAME + LENGTH_END + AFTER_NAME];
    uint8_t plus_length[BEFORE_NAME + LENGTH_END + AFTER_NAME];
};

static struct header
header_of(const struct example_feature *feature)
{
    const int name = (int)feature->name_bytes, after = BEFORE_NAME + name;
    struct header header = { .bytes = { TAG_ENTRY, 0, TAG_KEY, (uint8_t)name },
                             .plus_length = { 0, UINT8_MAX } };

    memcpy(header.bytes + BEFORE_NAME, feature->name, feature->name_bytes);
    header.bytes[after] = TAG_VALUE;
    header.bytes[after + 2] = example_kind_tag(feature->dtype);
    header.bytes[after + 4] = TAG_PACKED;
    for (int i = 1; i < AFTER_NAME; i += 2) {
        /* Each length is that of the entry without all that stands up to it. */
        header.bytes[after + i] = (uint8_t)(ENTRY_HEADER_BYTES - (after + i + 1));
        header.plus_length[after + i] = UINT8_MAX;
    }
    return header;
}

void
example_single_header(const struct example_parser *parser, uint32_t feature, uint8_t length,
                      uint8_t *ret_header)
{
    const struct header header = header_of(&parser->features[feature]);

    for (int i = 0; i < parser->singles[feature].header_bytes; i++)
        ret_header[i] = (uint8_t)(header.bytes[i] + (header.plus_length[i] & length));
}

/* The window at `from` of a header of `end` bytes. */
static struct entry_window
window_of(const struct header *header, int from, int end)
{
    struct entry_window window = { .base = { 0 } };

    for (int i = 0; i < WINDOW_BYTES && from + i < end; i++) {
        window.base[i] = header->bytes[from + i];
        window.plus_length[i] = header->plus_length[from + i];
        window.mask[i] = UINT8_MAX;
    }
    return window;
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
    head.feature = f;
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
    parser->runs = example_runs_open(parser);
    parser->take_singles = example_take_singles_best();
}

void
example_singles_close(struct example_parser *parser)
{
    free(parser->singles);
    example_runs_close(parser->runs);
}

#define MORE_FOLLOWS UINT64_C(0x8080808080808080)

/* Eight times seven bits, moved together. */
typedef uint64_t join_sevens(uint64_t word);

static inline uint64_t
join_by_shifts(uint64_t word)
{
    word = (word & UINT64_C(0x7f007f007f007f00)) >> 1 | (word & UINT64_C(0x007f007f007f007f));
    word = (word & UINT64_C(0x3fff00003fff0000)) >> 2 | (word & UINT64_C(0x00003fff00003fff));
    return (word & UINT64_C(0x0fffffff00000000)) >> 4 | (word & UINT64_C(0x000000000fffffff));
}

/* A varint that takes all `bytes`. One of up to eight is put together without a branch: how long
 * numbers are is not to be predicted. One of ten is a negative number. */
static inline __attribute__((always_inline)) bool
read_varint(const uint8_t *at, uint64_t bytes, join_sevens *join, int64_t *ret_value)
{
    const uint64_t word = load_u64(at);
    uint64_t mask, value;

    if (__builtin_expect(bytes - 1 < 8, 1)) {
        mask = UINT64_MAX >> (64 - 8 * bytes);
        *ret_value = (int64_t)join(word & mask);
        return (word & mask & MORE_FOLLOWS) == (mask >> 8 & MORE_FOLLOWS);
    }
    if (bytes == 10) {
        value = join(word) | (uint64_t)(at[8] & 127) << 56 | (uint64_t)at[9] << 63;
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
static inline __attribute__((always_inline)) bool
store_value(uint8_t kind, const uint8_t *at, uint64_t bytes, join_sevens *join, uint8_t *values,
            size_t row)
{
    if (kind == TAG_BYTES_LIST) {
        *(struct byte_view *)(void *)(values + row * sizeof(struct byte_view)) =
            (struct byte_view){ at, bytes };
        return true;
    }
    if (kind == TAG_INT64_LIST)
        return read_varint(at, bytes, join, (int64_t *)(void *)(values + row * sizeof(int64_t)));
    if (bytes != sizeof(float))
        return false;
    memcpy(values + row * sizeof(float), at, sizeof(float));
    return true;
}

/* The values of entries [first, last) of a run of texts. Apart, since a compiler keeps all of this
 * in registers only where nothing else is done. Returns `last`. */
static uint32_t
store_texts(const struct example_run *run, uint32_t first, uint32_t last, const uint8_t *base,
            uint8_t *const *targets, size_t row)
{
    for (uint32_t i = first; i < last; i++) {
        const struct run_entry entry = run->entries[i];

        ((struct byte_view *)(void *)targets[entry.feature])[row] =
            (struct byte_view){ base + entry.value_at, entry.value_bytes };
    }
    return first < last ? last : first;
}

/* One body for every instruction set. `is_like` compares a window with what stands at an address,
 * in an entry of `length` bytes; `count_same` how far bytes are like a run's; `join` is a
 * join_sevens.
 *
 * An entry of at least `least` bytes has a whole header, and readable bytes follow every record. */
#define DEFINE_TAKE_SINGLES(name, attributes, is_like, count_same, join)                           \
    attributes static inline bool name##_long_header(const struct single_head *head,               \
                                                     const uint8_t *at, uint8_t length)            \
    {                                                                                              \
        return is_like(at + head->header_bytes - WINDOW_BYTES, &head->last, length) &&             \
               (head->middle_bytes == 0 ||                                                         \
                memcmp(at + WINDOW_BYTES, head->middle, head->middle_bytes) == 0);                 \
    }                                                                                              \
                                                                                                   \
    /* As take_singles, of the entries that are as the run expects them. */                        \
    attributes static inline const uint8_t *name##_run(                                            \
        struct parsing *parsing, const struct run_place *place, const uint8_t *at,                 \
        const uint8_t *end, uint32_t *previous)                                                    \
    {                                                                                              \
        const struct example_run *run = place->run;                                                \
        const uint32_t first = place->position, begin = run->begins[first];                        \
        const size_t in_run = run->bytes - begin, in_record = (size_t)(end - at);                  \
        const size_t same = count_same(at, run->wanted + begin, run->mask + begin,                 \
                                       in_run < in_record ? in_run : in_record);                   \
        const uint32_t last = run->whole[begin + same];                                            \
        const uint8_t *const base = at - begin;                                                    \
        uint32_t i = first;                                                                        \
                                                                                                   \
        if (run->kind == TAG_BYTES_LIST)                                                           \
            i = store_texts(run, first, last, base, parsing->targets, (size_t)parsing->row);       \
        for (; i < last; i++) {                                                                    \
            const struct run_entry *entry = &run->entries[i];                                      \
                                                                                                   \
            if (!store_value(run->kind, base + entry->value_at, entry->value_bytes, join,          \
                             parsing->targets[entry->feature], (size_t)parsing->row))              \
                break;                                                                             \
        }                                                                                          \
        if (i == first)                                                                            \
            return at;                                                                             \
        parsing->seen[run->seen_word] |= run->bits[i] & ~run->bits[first];                         \
        *previous = run->entries[i - 1].feature;                                                   \
        return base + run->begins[i];                                                              \
    }                                                                                              \
                                                                                                   \
    /* The feature whose single value the entry at `at` seems to hold. NULL: none. */              \
    attributes static inline const struct single_head *name##_head(                                \
        const struct example_parser *parser, const uint8_t *at, const uint8_t *end)                \
    {                                                                                              \
        const struct single_hints *hints = &parser->hints;                                         \
        const struct single_head *head = &parser->singles[hints->slots[slot_of(hints, at)]];       \
        const uint8_t length = at[1];                                                              \
                                                                                                   \
        if ((uint64_t)length - head->least >= head->room ||                                        \
            (size_t)(end - at) < (size_t)length + ENTRY_HEADER_BYTES ||                            \
            !is_like(at, &head->first, length) ||                                                  \
            (head->header_bytes > WINDOW_BYTES && !name##_long_header(head, at, length)))          \
            return NULL;                                                                           \
        return head;                                                                               \
    }                                                                                              \
                                                                                                   \
    attributes static const uint8_t *name(struct parsing *parsing, const uint8_t *at,              \
                                          const uint8_t *end, uint32_t *previous)                  \
    {                                                                                              \
        const struct example_parser *parser = parsing->parser;                                     \
        uint8_t *const *targets = parsing->targets;                                                \
        const size_t row = (size_t)parsing->row;                                                   \
        const struct run_place *place =                                                            \
            &parsing->places[*previous <= parser->count ? *previous : parser->count + 1];          \
                                                                                                   \
        for (;;) {                                                                                 \
            const struct single_head *head;                                                        \
            uint8_t length;                                                                        \
            uint32_t f;                                                                            \
                                                                                                   \
            if (place->run != NULL)                                                                \
                at = name##_run(parsing, place, at, end, previous);                                \
            if (at >= end)                                                                         \
                return at;                                                                         \
            head = name##_head(parser, at, end);                                                   \
            if (head == NULL)                                                                      \
                return at;                                                                         \
            length = at[1];                                                                        \
            f = head->feature;                                                                     \
            if (!store_value(head->kind, at + head->header_bytes, (uint64_t)length - head->least,  \
                             join, targets[f], row))                                               \
                return at;                                                                         \
            parsing->seen[f / 64] |= UINT64_C(1) << f % 64;                                        \
            *previous = f;                                                                         \
            place = &parsing->places[f];                                                           \
            at += length + ENTRY_HEADER_BYTES;                                                     \
        }                                                                                          \
    }

static inline bool
is_like_portably(const uint8_t *at, const struct entry_window *window, uint8_t length)
{
    unsigned difference = 0;

    for (int i = 0; i < WINDOW_BYTES; i++)
        difference |=
            (unsigned)((at[i] ^ (uint8_t)(window->base[i] + (window->plus_length[i] & length))) &
                       window->mask[i]);
    return difference == 0;
}

/* Up to `bytes` bytes that differ from the wanted ones only where the mask has no ones. */
static inline size_t
count_same_portably(const uint8_t *at, const uint8_t *wanted, const uint8_t *mask, size_t bytes)
{
    size_t same = 0;

    while (same < bytes && ((at[same] ^ wanted[same]) & mask[same]) == 0)
        same++;
    return same;
}

DEFINE_TAKE_SINGLES(take_portably, , is_like_portably, count_same_portably, join_by_shifts)

int32_t
example_single_at(const struct example_parser *parser, const uint8_t *at, const uint8_t *end)
{
    const struct single_head *head = take_portably_head(parser, at, end);

    return head != NULL ? (int32_t)head->feature : NOBODY;
}

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m128i
sixteen(const uint8_t *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

AVX2 static inline bool
is_like_avx2(const uint8_t *at, const struct entry_window *window, uint8_t length)
{
    const __m128i lengths =
        _mm_and_si128(_mm_set1_epi8((char)length), sixteen(window->plus_length));
    const __m128i wanted = _mm_add_epi8(sixteen(window->base), lengths);

    return _mm_testz_si128(_mm_xor_si128(sixteen(at), wanted), sixteen(window->mask)) != 0;
}

AVX2 static inline __m256i
thirty_two(const uint8_t *at)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

AVX2 static inline size_t
count_same_avx2(const uint8_t *at, const uint8_t *wanted, const uint8_t *mask, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 32) {
        const __m256i different = _mm256_and_si256(
            _mm256_xor_si256(thirty_two(at + i), thirty_two(wanted + i)), thirty_two(mask + i));
        const uint32_t equal =
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(different, _mm256_setzero_si256()));

        if (equal != UINT32_MAX) {
            i += (size_t)__builtin_ctz(~equal);
            return i < bytes ? i : bytes;
        }
    }
    return bytes;
}

DEFINE_TAKE_SINGLES(take_avx2, AVX2, is_like_avx2, count_same_avx2, join_by_shifts)

/* Processors with AVX-512 have a fast pext; some older ones take longer for it than for shifts. */
#define AVX512 __attribute__((target("avx2,bmi2,avx512f,avx512bw")))

AVX512 static inline uint64_t
join_by_pext(uint64_t word)
{
    return _pext_u64(word, ~MORE_FOLLOWS);
}

AVX512 static inline size_t
count_same_avx512(const uint8_t *at, const uint8_t *wanted, const uint8_t *mask, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64) {
        const __m512i difference =
            _mm512_xor_si512(_mm512_loadu_si512(at + i), _mm512_loadu_si512(wanted + i));
        const uint64_t different = _mm512_test_epi8_mask(difference, _mm512_loadu_si512(mask + i));

        if (different != 0) {
            i += (size_t)__builtin_ctzll(different);
            return i < bytes ? i : bytes;
        }
    }
    return bytes;
}

DEFINE_TAKE_SINGLES(take_avx512, AVX512, is_like_avx2, count_same_avx512, join_by_pext)
#endif

example_take_singles *
example_take_singles_best(void)
{
#ifdef __x86_64__
    if (tnd_cpu_has(TND_CPU_AVX512))
        return take_avx512;
    if (tnd_cpu_has(TND_CPU_AVX2))
        return take_avx2;
#endif
    return take_portably;
}
