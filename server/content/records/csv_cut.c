/* csv_cut.c - cut records without quotes 64 bytes at a time, and others byte by byte. */
#include "content/records/csv_cut.h"

#include <string.h>

#include "core/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Masks of a block of 64 bytes: its delimiters, and the bytes that make a record not plain. */
struct masks {
    uint64_t delimiters, others;
};

/* Bytes that a plain record cannot contain. Where quotes have no meaning, a line feed takes the
 * quote's place in the comparisons. */
#define LINE_FEED '\n'
#define CARRIAGE_RETURN '\r'
#define QUOTE_OF(rules) ((rules)->quotes ? '"' : LINE_FEED)

/* One body for every instruction set. They differ in how they search 64 bytes and in how they write
 * the positions of a mask's bits. A record may have fewer than 64 bytes: there are readable bytes
 * after every record. */
#define DEFINE_CUT(name, attributes, look, write_down)                                             \
    attributes static int64_t name(const struct csv_rules *rules, struct byte_view record,         \
                                   uint32_t *ret_ends, int64_t capacity)                           \
    {                                                                                              \
        int64_t count = 0;                                                                         \
                                                                                                   \
        if (record.size >= UINT32_MAX)                                                             \
            return -1;                                                                             \
        for (uint64_t at = 0; at < record.size; at += 64) {                                        \
            struct masks masks = look(rules, record.data + at);                                    \
            int64_t more;                                                                          \
                                                                                                   \
            if (record.size - at < 64) {                                                           \
                masks.delimiters &= (UINT64_C(1) << (record.size - at)) - 1;                       \
                masks.others &= (UINT64_C(1) << (record.size - at)) - 1;                           \
            }                                                                                      \
            if (masks.others != 0)                                                                 \
                return -1;                                                                         \
            more = __builtin_popcountll(masks.delimiters);                                         \
            if (count + more >= capacity)                                                          \
                return many_fields(rules, record, at, masks.delimiters, ret_ends, count,           \
                                   capacity);                                                      \
            write_down(masks.delimiters, more, (uint32_t)at, &ret_ends[count]);                    \
            count += more;                                                                         \
        }                                                                                          \
        ret_ends[count++] = (uint32_t)record.size;                                                 \
        return count;                                                                              \
    }

/* The record has more fields than there is room for. Read on all the same: a quote in the rest
 * makes the record not plain. */
static int64_t
many_fields(const struct csv_rules *rules, struct byte_view record, uint64_t at,
            uint64_t delimiters, uint32_t *ret_ends, int64_t count, int64_t capacity)
{
    for (; delimiters != 0 && count < capacity; delimiters &= delimiters - 1)
        ret_ends[count++] = (uint32_t)at + (uint32_t)__builtin_ctzll(delimiters);
    if (count < capacity) {
        ret_ends[count++] = (uint32_t)record.size;
        return count;
    }
    at += 64;
    for (; at < record.size; at++)
        if (record.data[at] == LINE_FEED || record.data[at] == CARRIAGE_RETURN ||
            record.data[at] == QUOTE_OF(rules))
            return -1;
    return capacity + 1;
}

/* A bit for each zero byte among eight. The additions cannot carry between bytes, and the
 * multiplication collects the top bits. */
static inline uint64_t
zero_bytes(uint64_t word)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    uint64_t zeros = ~(((word & low) + low) | word | low);

    return (zeros >> 7) * UINT64_C(0x0102040810204080) >> 56;
}

static inline struct masks
look_portable(const struct csv_rules *rules, const uint8_t *bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    struct masks masks = { 0, 0 };

    for (unsigned i = 0; i < 64; i += 8) {
        uint64_t word = load_u64(bytes + i);

        masks.delimiters |= zero_bytes(word ^ ones * rules->delimiter) << i;
        masks.others |=
            (zero_bytes(word ^ ones * LINE_FEED) | zero_bytes(word ^ ones * CARRIAGE_RETURN) |
             zero_bytes(word ^ ones * (uint8_t)QUOTE_OF(rules)))
            << i;
    }
    return masks;
}

/* Write positions eight at a time, even beyond the last: a loop of exactly the mask's length would
 * be mispredicted at every block. The array has slack for it. */
static inline __attribute__((always_inline)) void
write_down_bits(uint64_t mask, int64_t count, uint32_t at, uint32_t *ends)
{
    for (int64_t i = 0; i < count; i += 8)
        for (int64_t k = 0; k < 8; k++) {
            ends[i + k] = at + (mask != 0 ? (uint32_t)__builtin_ctzll(mask) : 0);
            mask &= mask - 1;
        }
}

DEFINE_CUT(cut_portable, , look_portable, write_down_bits)

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2,bmi,popcnt")))
#define AVX512 __attribute__((target("avx512bw,avx512f,avx512vbmi2,bmi,popcnt")))

AVX2 static inline uint64_t
mask_avx2(__m256i low, __m256i high)
{
    return (uint32_t)_mm256_movemask_epi8(low) | (uint64_t)(uint32_t)_mm256_movemask_epi8(high)
                                                     << 32;
}

/* Find line ends and quotes with one shuffle. They differ in their low four bits, so a byte is one
 * of them if it equals the entry for its low bits. The entry 0x80 matches nothing: the shuffle
 * gives 0 for bytes from 0x80 on. */
AVX2 static inline __m256i
others_avx2(__m256i bytes, __m256i by_lower_half)
{
    return _mm256_cmpeq_epi8(_mm256_shuffle_epi8(by_lower_half, bytes), bytes);
}

AVX2 static inline struct masks
look_avx2(const struct csv_rules *rules, const uint8_t *bytes)
{
    const char none = (char)0x80, quote = rules->quotes ? '"' : none;
    const __m256i by_lower_half = _mm256_setr_epi8(
        none, none, quote, none, none, none, none, none, none, none, LINE_FEED, none, none,
        CARRIAGE_RETURN, none, none, none, none, quote, none, none, none, none, none, none, none,
        LINE_FEED, none, none, CARRIAGE_RETURN, none, none);
    const __m256i delimiter = _mm256_set1_epi8((char)rules->delimiter);
    __m256i low = _mm256_loadu_si256((const void *)bytes);
    __m256i high = _mm256_loadu_si256((const void *)(bytes + 32));

    return (struct masks){
        mask_avx2(_mm256_cmpeq_epi8(low, delimiter), _mm256_cmpeq_epi8(high, delimiter)),
        mask_avx2(others_avx2(low, by_lower_half), others_avx2(high, by_lower_half))
    };
}

AVX512 static inline struct masks
look_avx512(const struct csv_rules *rules, const uint8_t *bytes)
{
    __m512i block = _mm512_loadu_si512((const void *)bytes);

    return (struct masks){ _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8((char)rules->delimiter)),
                           _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(LINE_FEED)) |
                               _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(CARRIAGE_RETURN)) |
                               _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(QUOTE_OF(rules))) };
}

AVX512 static inline void
write_down_avx512(uint64_t mask, int64_t count, uint32_t at, uint32_t *ends)
{
    const __m512i places = _mm512_set_epi8(
        63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41,
        40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18,
        17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i base = _mm512_set1_epi32((int)at);
    __m512i found = _mm512_maskz_compress_epi8(mask, places);

    for (int64_t i = 0; i < count; i += 16) {
        __m512i sixteen = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(found));

        _mm512_storeu_si512((void *)&ends[i], _mm512_add_epi32(sixteen, base));
        found = _mm512_shuffle_i32x4(found, found, 0x39);
    }
}

DEFINE_CUT(cut_avx2, AVX2, look_avx2, write_down_bits)
DEFINE_CUT(cut_avx512, AVX512, look_avx512, write_down_avx512)

#endif

csv_cut *
csv_cut_best(void)
{
#ifdef __x86_64__
    if (tnd_cpu_has(TND_CPU_VBMI2))
        return cut_avx512;
    if (tnd_cpu_has(TND_CPU_AVX2))
        return cut_avx2;
#endif
    return cut_portable;
}

/* The state of TensorFlow's loop over a record. */
struct walk {
    const struct csv_rules *rules;
    const uint8_t *data;
    uint64_t size, at;
    struct scratch *scratch;
    const char *problem;
};

static bool
is_line_end(uint8_t byte)
{
    return byte == LINE_FEED || byte == CARRIAGE_RETURN;
}

/* Read an unquoted field. RFC 4180 allows neither quotes nor line ends in it, and TensorFlow
 * reports them. */
static struct byte_view
plain_field(struct walk *walk)
{
    uint64_t begin = walk->at;

    for (; walk->at < walk->size && walk->data[walk->at] != walk->rules->delimiter; walk->at++) {
        uint8_t byte = walk->data[walk->at];

        if ((walk->rules->quotes && byte == '"') || is_line_end(byte))
            walk->problem = "Unquoted fields cannot have quotes/CRLFs inside";
    }
    return (struct byte_view){ walk->data + begin, walk->at++ - begin };
}

/* Whether the quote at `at` ends the field: a delimiter follows, or the record ends. */
static bool
ends_field(const struct walk *walk, uint64_t at)
{
    return at + 1 == walk->size || walk->data[at + 1] == walk->rules->delimiter;
}

/* Read a quoted field after its opening quote. The first doubled quote starts a copy; a field
 * without one stays a view. */
static struct byte_view
quoted_field(struct walk *walk)
{
    uint64_t begin = walk->at;
    uint64_t used = 0;
    uint8_t *copy = NULL;

    for (; walk->at < walk->size; walk->at++) {
        if (walk->data[walk->at] == '"') {
            if (ends_field(walk, walk->at))
                break;
            if (walk->data[walk->at + 1] != '"') {
                walk->problem = "Quote inside a string has to be escaped by another quote";
                break;
            }
            if (copy == NULL) {
                used = walk->at - begin;
                copy = scratch_alloc(walk->scratch, walk->size - begin);
                memcpy(copy, walk->data + begin, used);
            }
            walk->at++;
        }
        if (copy != NULL)
            copy[used++] = walk->data[walk->at];
    }
    if (walk->at >= walk->size)
        walk->problem = "Quoted field has to end with quote followed by delim or end";
    if (copy == NULL) {
        copy = (uint8_t *)(uintptr_t)walk->data + begin;
        used = walk->at < walk->size ? walk->at - begin : 0;
    }
    walk->at += 2;
    return (struct byte_view){ copy, used };
}

int64_t
csv_fields(const struct csv_rules *rules, struct byte_view record, struct scratch *scratch,
           struct byte_view *fields, int64_t capacity, const char **ret_problem)
{
    struct walk walk = { rules, record.data, record.size, 0, scratch, NULL };
    uint32_t number = 0, selected = 0;
    int64_t count = 0;
    bool ends_open = record.size == 0 && rules->is_dataset;

    while (walk.at < walk.size || ends_open) {
        bool is_wanted = rules->select == NULL ||
                         (selected < rules->select_count && rules->select[selected] == number) ||
                         (rules->total > 0 && number >= rules->total);
        struct byte_view field = { record.data, 0 };

        if (walk.at < walk.size) {
            if (is_line_end(walk.data[walk.at]) && !rules->is_dataset) {
                walk.at++;
                continue;
            }
            if (rules->quotes && walk.data[walk.at] == '"') {
                walk.at++;
                field = quoted_field(&walk);
            } else {
                field = plain_field(&walk);
            }
            if (walk.problem != NULL) {
                *ret_problem = walk.problem;
                return -1;
            }
        }
        if (is_wanted && count++ < capacity)
            fields[count - 1] = field;
        selected += is_wanted;
        number++;
        if (!rules->is_dataset && rules->select != NULL && selected == rules->select_count)
            return count;
        /* A delimiter at the very end means one more field, which is empty. */
        ends_open = !ends_open && walk.at == walk.size && record.size > 0 &&
                    record.data[record.size - 1] == rules->delimiter;
    }
    return count;
}
