/* jpeg_huffman.c - decode several Huffman codes with each table look-up, from bytes whose stuffing
 * was removed beforehand. */
#include "content/images/turbo2/jpeg_parts.h"

#include <stdint.h>
#include <string.h>

#include "core/bytes.h"

#include <jpegint.h>

enum {
    LOOK = 11, /* bits of one look-up */
    LOOKS = 1 << LOOK,
    CODE_BITS_MAX = 16,
    LAST = DCTSIZE2 - 1,
    BLOCK_BYTES_MAX = 64 * 4, /* 64 codes of up to 16 bits, each with up to 15 more */
    WINDOW = 4096
};

/* A single code: its length and its symbol. */
struct code {
    uint8_t bits; /* 0: longer than a look-up */
    uint8_t symbol;
};

struct code_table {
    struct code short_codes[LOOKS];
    uint32_t
        after[CODE_BITS_MAX + 1]; /* for each length in bits, the first code too large; 16 wide */
    int32_t offset[CODE_BITS_MAX + 1]; /* from a code to its symbol's index */
    uint8_t symbols[256];
};

/* A code and the number after it, if both fit in a look-up. */
struct number {
    uint8_t bits; /* 0: it does not */
    uint8_t advance;
    int16_t value;
};

struct dc_table {
    struct number numbers[LOOKS];
    struct code_table single;
};

/* One or two coefficients, with the distance of each from the one before. */
struct coefficients {
    uint8_t bits;
    uint8_t advance; /* of both; NO_ADVANCE: something else */
    uint8_t first_advance;
    uint8_t is_end; /* of the block */
    int16_t first, last;
};

enum { NO_ADVANCE = DCTSIZE2 };

struct ac_table {
    struct coefficients coefficients[LOOKS];
    struct code_table single;
};

/* Bits from the left. `count` of them are valid; more may be. */
struct bits {
    uint64_t word;
    unsigned count;
    const uint8_t *next;
};

struct jpeg_huffman {
    struct jpeg_entropy_decoder pub; /* first: the library holds this */
    struct bits bits;
    bool has_stopped;
    bool at_marker; /* the window ends where `source` points to a marker */
    const uint8_t *window_end;
    const uint8_t *low; /* from here on, a block may need more bytes */
    const uint8_t *source, *source_end;
    uint32_t mcus_left;
    unsigned restarts_in, next_restart;
    int32_t last_dc[MAX_COMPS_IN_SCAN];
    struct dc_table *dc[MAX_COMPS_IN_SCAN];
    struct ac_table *ac[MAX_COMPS_IN_SCAN];
    JBLOCK passed_over; /* for blocks that nobody wants */
    uint8_t window[WINDOW + BLOCK_BYTES_MAX + 16];
};

/* The zigzag order of coefficients in a block (ITU T.81, figure A.6). */
static const uint8_t natural_order[DCTSIZE2] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* Build the table of single codes. libjpeg has checked that codes fit in 16 bits and symbols in the
 * table. */
static void
make_code_table(const JHUFF_TBL *from, struct code_table *to)
{
    uint32_t code = 0;
    int32_t index = 0;

    memset(to->short_codes, 0, sizeof to->short_codes);
    memcpy(to->symbols, from->huffval, sizeof to->symbols);
    for (unsigned bits = 1; bits <= CODE_BITS_MAX; bits++, code <<= 1) {
        to->offset[bits] = index - (int32_t)code;
        for (unsigned i = 0; i < from->bits[bits]; i++, code++, index++) {
            struct code entry = { (uint8_t)bits, from->huffval[index & 255] };

            for (unsigned k = 0; bits <= LOOK && k < 1U << (LOOK - bits); k++)
                to->short_codes[((code << (LOOK - bits)) + k) & (LOOKS - 1)] = entry;
        }
        to->after[bits] = code << (CODE_BITS_MAX - bits);
    }
}

/* Extend `size` bits to a number (T.81, F.2.2.1): a leading 0 means negative. */
static inline int32_t
extended(uint32_t bits, unsigned size)
{
    int32_t below = (int32_t)((UINT32_C(1) << size) - 1);

    return (int32_t)bits - (bits << 1 >> size != 0 ? 0 : below);
}

/* Fill in all look-ups that start with a code and contain its number. */
static void
enter_numbers(struct code code, uint32_t first_look, struct number *numbers)
{
    unsigned size = code.symbol & 15, spare = LOOK - code.bits - size;

    for (uint32_t bits = 0; bits < UINT32_C(1) << size; bits++)
        for (uint32_t k = 0; k < UINT32_C(1) << spare; k++)
            numbers[first_look + (bits << spare) + k] =
                (struct number){ .bits = (uint8_t)(code.bits + size),
                                 .advance = (uint8_t)((code.symbol >> 4) + 1),
                                 .value = (int16_t)extended(bits, size) };
}

static void
make_numbers(const struct code_table *table, bool zero_is_number, struct number *numbers)
{
    for (uint32_t look = 0; look < LOOKS;) {
        struct code code = table->short_codes[look];
        unsigned size = code.symbol & 15;
        bool fits = code.bits != 0 && code.bits + size <= LOOK && (size != 0 || zero_is_number);

        if (fits)
            enter_numbers(code, look, numbers);
        else
            memset(&numbers[look], 0, sizeof *numbers << (code.bits != 0 ? LOOK - code.bits : 0));
        look += code.bits != 0 ? UINT32_C(1) << (LOOK - code.bits) : 1;
    }
}

static void
make_dc_table(const JHUFF_TBL *from, struct dc_table *to)
{
    make_code_table(from, &to->single);
    make_numbers(&to->single, true, to->numbers);
}

static void
make_ac_table(const JHUFF_TBL *from, struct ac_table *to)
{
    struct number numbers[LOOKS];

    make_code_table(from, &to->single);
    make_numbers(&to->single, false, numbers);
    for (uint32_t look = 0; look < LOOKS; look++) {
        struct number one = numbers[look], two = numbers[look << one.bits & (LOOKS - 1)];
        struct code code = to->single.short_codes[look];
        bool is_pair = one.bits + two.bits <= LOOK && two.bits != 0;

        if (one.bits == 0)
            to->coefficients[look] =
                (struct coefficients){ .bits = code.bits,
                                       .advance = NO_ADVANCE,
                                       .is_end = code.bits != 0 && code.symbol == 0 };
        else
            to->coefficients[look] = (struct coefficients){
                .bits = (uint8_t)(one.bits + (is_pair ? two.bits : 0)),
                .advance = (uint8_t)(one.advance + (is_pair ? two.advance : 0)),
                .first_advance = one.advance,
                .first = one.value,
                .last = is_pair ? two.value : one.value,
            };
    }
}

/* Copy bytes to the window without stuffing (FF 00 becomes FF), up to a marker or the end of the
 * room. False: the file ends without a marker. */
static bool
lay_out(struct jpeg_huffman *huffman, uint8_t *to)
{
    uint8_t *end = huffman->window + WINDOW;

    while (to < end) {
        size_t left = (size_t)(huffman->source_end - huffman->source);
        size_t room = (size_t)(end - to), count = left < room ? left : room;
        const uint8_t *mark = memchr(huffman->source, 0xFF, count);

        if (mark != NULL)
            count = (size_t)(mark - huffman->source);
        memcpy(to, huffman->source, count);
        to += count;
        huffman->source += count;
        if (mark == NULL && to < end)
            return false;
        if (mark == NULL)
            break;
        if (left - count < 2)
            return false;
        if (mark[1] != 0) {
            huffman->at_marker = true;
            memset(to, 0, BLOCK_BYTES_MAX + 16);
            break;
        }
        *to++ = 0xFF;
        huffman->source += 2;
    }
    huffman->window_end = to;
    huffman->low = huffman->at_marker ? to : to - BLOCK_BYTES_MAX - 8;
    return true;
}

/* Make sure that a block's bytes are in the window from `next` on. False: they are not in the
 * file. */
static bool
top_up(struct jpeg_huffman *huffman, struct bits *bits)
{
    size_t left;

    if (huffman->at_marker)
        return bits->next <= huffman->window_end + 8;
    left = (size_t)(huffman->window_end - bits->next);
    memmove(huffman->window, bits->next, left);
    bits->next = huffman->window;
    return lay_out(huffman, huffman->window + left);
}

static bool
begin_segment(struct jpeg_huffman *huffman)
{
    memset(huffman->last_dc, 0, sizeof huffman->last_dc);
    huffman->at_marker = false;
    huffman->bits = (struct bits){ .next = huffman->window };
    return lay_out(huffman, huffman->window);
}

/* Whether all bits up to the marker were read, except for those that fill the last byte. */
static bool
end_segment(struct jpeg_huffman *huffman)
{
    struct bits *bits = &huffman->bits;
    int64_t left;

    if (!huffman->at_marker && !top_up(huffman, bits))
        return false;
    left = (huffman->window_end - bits->next) * 8 + (int64_t)bits->count;
    return huffman->at_marker && left >= 0 && left < 8;
}

static bool
restart(struct jpeg_huffman *huffman)
{
    if (!end_segment(huffman) || huffman->source[1] != JPEG_RST0 + huffman->next_restart)
        return false;
    huffman->next_restart = (huffman->next_restart + 1) % 8;
    huffman->source += 2;
    return begin_segment(huffman);
}

/* Refill to at least 56 bits without a branch. Bytes may be read twice, but with the same
 * values. */
static inline void
refill(struct bits *bits)
{
    bits->word |= __builtin_bswap64(load_u64(bits->next)) >> bits->count;
    bits->next += (63 - bits->count) >> 3;
    bits->count |= 56;
}

static inline void
skip_bits(struct bits *bits, unsigned count)
{
    bits->word <<= count;
    bits->count -= count;
}

/* Read one code. False: there is no such code. 40 of 56 bits remain. */
static bool
next_code(const struct code_table *table, struct bits *bits, uint8_t *ret_symbol)
{
    struct code code = table->short_codes[bits->word >> (64 - LOOK)];
    uint32_t look = (uint32_t)(bits->word >> (64 - CODE_BITS_MAX));
    unsigned count = LOOK + 1;

    if (code.bits != 0) {
        skip_bits(bits, code.bits);
        *ret_symbol = code.symbol;
        return true;
    }
    while (count <= CODE_BITS_MAX && look >= table->after[count])
        count++;
    if (count > CODE_BITS_MAX)
        return false;
    *ret_symbol =
        table->symbols[((int32_t)(look >> (CODE_BITS_MAX - count)) + table->offset[count]) & 255];
    skip_bits(bits, count);
    return true;
}

static int32_t
next_number(struct bits *bits, unsigned size)
{
    uint32_t value;

    if (size == 0)
        return 0;
    value = (uint32_t)(bits->word >> (64 - size));
    skip_bits(bits, size);
    return extended(value, size);
}

/* Read one coefficient, or a run of zeros, after position `k`. False: it is not valid there. */
static bool
next_coefficient(const struct code_table *table, struct bits *bits, JCOEF *block, unsigned *k)
{
    uint8_t symbol;
    unsigned size, run;

    if (!next_code(table, bits, &symbol))
        return false;
    size = symbol & 15;
    run = symbol >> 4;
    if (size == 0 && run != 15) {
        *k = DCTSIZE2; /* the end of the block; the library takes any run for it */
        return true;
    }
    *k += run + 1;
    if (*k > LAST)
        return false;
    if (size != 0)
        block[natural_order[*k]] = (JCOEF)next_number(bits, size);
    return true;
}

/* Read what the table of coefficients does not cover. The bits are a copy, so that the caller's
 * stay in registers. */
static __attribute__((noinline)) bool
read_rare(const struct ac_table *table, struct bits *bits, JCOEF *block, unsigned *k)
{
    refill(bits);
    return next_coefficient(&table->single, bits, block, k);
}

enum { LOOKS_AT_ONCE = 4 }; /* without a refill */

static inline bool
read_ac(const struct ac_table *table, struct bits *bits, JCOEF *block)
{
    struct bits at = *bits;
    unsigned k = 0;

    while (k < LAST) {
        struct coefficients next = { 0 };
        int looks = 0;

        refill(&at);
        for (; looks < LOOKS_AT_ONCE && k < LAST; looks++) {
            next = table->coefficients[at.word >> (64 - LOOK)];
            if (k + next.advance > LAST)
                break;
            block[natural_order[k + next.first_advance]] = next.first;
            k += next.advance;
            block[natural_order[k]] = next.last;
            skip_bits(&at, next.bits);
        }
        if (looks == LOOKS_AT_ONCE || k == LAST)
            continue;
        if (next.is_end) {
            skip_bits(&at, next.bits);
            break;
        } else {
            struct bits rare = at;
            unsigned rare_k = k;

            if (!read_rare(table, &rare, block, &rare_k))
                return false;
            at = rare;
            k = rare_k;
        }
    }
    *bits = at;
    return true;
}

static inline bool
read_dc(const struct dc_table *table, struct bits *bits, int32_t *last)
{
    struct number number;
    uint8_t size;

    refill(bits);
    number = table->numbers[bits->word >> (64 - LOOK)];
    if (number.bits != 0) {
        skip_bits(bits, number.bits);
        *last += number.value;
    } else {
        if (!next_code(&table->single, bits, &size) || size > 15)
            return false;
        *last += next_number(bits, size);
    }
    return *last >= INT16_MIN && *last <= INT16_MAX;
}

static inline bool
read_block(struct jpeg_huffman *huffman, int component, JCOEF *block)
{
    struct bits *bits = &huffman->bits;
    int32_t *dc = &huffman->last_dc[component];

    if (bits->next >= huffman->low && !top_up(huffman, bits))
        return false;
    if (!read_dc(huffman->dc[component], bits, dc))
        return false;
    block[0] = (JCOEF)*dc;
    return read_ac(huffman->ac[component], bits, block);
}

/* After the last block, libjpeg continues at the marker. */
static bool
finish(struct jpeg_huffman *huffman, struct jpeg_source_mgr *source)
{
    if (!end_segment(huffman))
        return false;
    source->next_input_byte = huffman->source;
    source->bytes_in_buffer = (size_t)(huffman->source_end - huffman->source);
    return true;
}

static bool
read_mcu(struct jpeg_decompress_struct *info, struct jpeg_huffman *huffman, JBLOCKROW *blocks)
{
    if (info->restart_interval != 0) {
        if (huffman->restarts_in == 0 && !restart(huffman))
            return false;
        if (huffman->restarts_in == 0)
            huffman->restarts_in = info->restart_interval;
        huffman->restarts_in--;
    }
    for (int i = 0; i < info->blocks_in_MCU; i++)
        if (!read_block(huffman, info->MCU_membership[i],
                        blocks != NULL ? *blocks[i] : huffman->passed_over))
            return false;
    return --huffman->mcus_left > 0 || finish(huffman, info->src);
}

/* Replaces libjpeg's decode_mcu. Without blocks the codes are only read. FALSE makes libjpeg
 * suspend. */
static boolean
decode_mcu(j_decompress_ptr info, JBLOCKROW *blocks)
{
    struct jpeg_huffman *huffman = (struct jpeg_huffman *)info->entropy;

    if (huffman->has_stopped || huffman->mcus_left == 0 || !read_mcu(info, huffman, blocks))
        huffman->has_stopped = true;
    return huffman->has_stopped ? FALSE : TRUE;
}

static void *
alloc(struct jpeg_decompress_struct *info, size_t bytes)
{
    return info->mem->alloc_large((j_common_ptr)info, JPOOL_IMAGE, bytes);
}

/* Build the tables. Components may share one. */
static void
make_tables(struct jpeg_decompress_struct *info, struct jpeg_huffman *huffman)
{
    for (int i = 0; i < info->comps_in_scan; i++) {
        const jpeg_component_info *component = info->cur_comp_info[i];

        for (int k = 0; k < i; k++) {
            if (info->cur_comp_info[k]->dc_tbl_no == component->dc_tbl_no)
                huffman->dc[i] = huffman->dc[k];
            if (info->cur_comp_info[k]->ac_tbl_no == component->ac_tbl_no)
                huffman->ac[i] = huffman->ac[k];
        }
        if (huffman->dc[i] == NULL) {
            huffman->dc[i] = alloc(info, sizeof *huffman->dc[i]);
            make_dc_table(info->dc_huff_tbl_ptrs[component->dc_tbl_no], huffman->dc[i]);
        }
        if (huffman->ac[i] == NULL) {
            huffman->ac[i] = alloc(info, sizeof *huffman->ac[i]);
            make_ac_table(info->ac_huff_tbl_ptrs[component->ac_tbl_no], huffman->ac[i]);
        }
    }
}

bool
jpeg_huffman_install(struct jpeg_decompress_struct *info)
{
    struct jpeg_huffman *huffman;

    if (info->arith_code || info->progressive_mode || info->inputctl->has_multiple_scans)
        return false;
    huffman = alloc(info, sizeof *huffman);
    memset(huffman, 0, sizeof *huffman);
    make_tables(info, huffman);
    huffman->pub.start_pass = info->entropy->start_pass;
    huffman->pub.decode_mcu = decode_mcu;
    huffman->source = info->src->next_input_byte;
    huffman->source_end = huffman->source + info->src->bytes_in_buffer;
    huffman->mcus_left = info->MCUs_per_row * info->MCU_rows_in_scan;
    huffman->restarts_in = info->restart_interval;
    huffman->has_stopped = !begin_segment(huffman);
    info->entropy = &huffman->pub;
    return true;
}
