/* column.c - a chunk, page after page: levels, then values.
 *
 * Levels say where nulls and lists are. Only what is there is among the values, so those of a page
 * with nulls are decoded side by side first, and then moved apart. */
#include "source/parquet/column.h"

#include <stdlib.h>
#include <zlib.h>

#include "core/memory.h"
#include "core/status.h"
#include "source/parquet/codec.h"
#include "source/parquet/levels.h"
#include "source/parquet/runs.h"
#include "source/parquet/spill.h"
#include "source/parquet/values.h"

struct decoding {
    const struct parquet_decode *decode;
    const struct parquet_leaf *leaf;
    struct byte_view bytes; /* not read yet */
    struct parquet_values values;
    struct parquet_buffer page;             /* unpacked */
    struct parquet_buffer repeats, defines; /* levels of a page */
    struct parquet_text fallback;           /* of texts, once it is among them */
    bool has_fallback_text;
    uint64_t entries; /* read so far: values, nulls, and lists without elements */
    uint64_t rows;    /* begun so far */
    struct parquet_column column;
};

/* A page's levels. */
struct levels {
    uint32_t entry_count;
    uint8_t *repeats;     /* NULL: every entry is a row */
    uint8_t *defines;     /* NULL: every value is there */
    uint64_t slot_count;  /* values, nulls among them */
    uint64_t value_count; /* without nulls */
};

size_t
parquet_value_bytes(tundish_dtype dtype)
{
    return dtype == TUNDISH_STRING ? sizeof(struct parquet_text) : tnd_dtype_bytes(dtype);
}

static tundish_status
damaged(const char *what)
{
    return tnd_fail(TUNDISH_E_CORRUPT, "%s", what);
}

static tundish_status
too_large(const struct decoding *decoding, uint64_t bytes)
{
    return tnd_fail(
        TUNDISH_E_MEMORY,
        "it takes %llu MiB and more unpacked, and there is room for %llu: write smaller "
        "row groups, or allow more memory (deliver.memory_limit)",
        (unsigned long long)bytes >> 20, (unsigned long long)decoding->decode->bytes_max >> 20);
}

/* May the column, or something that it is made with, take these bytes? */
static tundish_status
ask(const struct decoding *decoding, uint64_t count, size_t bytes)
{
    uint64_t all;

    if (__builtin_mul_overflow(count, bytes, &all) || all > decoding->decode->bytes_max)
        return too_large(decoding, all);
    return TUNDISH_OK;
}

static unsigned
bits_for(unsigned highest)
{
    return highest == 0 ? 0 : 32 - (unsigned)__builtin_clz(highest);
}

/* The bytes of one kind of levels: in version 1 after their length, in version 2 the head says
 * it. */
static bool
take_levels(const struct parquet_page *page, uint32_t v2_bytes, struct byte_view *rest,
            struct byte_view *ret_levels)
{
    uint64_t bytes = v2_bytes;

    if (page->type == PARQUET_DATA_PAGE) {
        if (rest->size < 4)
            return false;
        bytes = load_u32(rest->data);
        rest->data += 4;
        rest->size -= 4;
    }
    if (bytes > rest->size)
        return false;
    *ret_levels = (struct byte_view){ rest->data, bytes };
    rest->data += bytes;
    rest->size -= bytes;
    return true;
}

static tundish_status
read_levels(struct parquet_buffer *buffer, struct byte_view bytes, unsigned highest, uint32_t count,
            uint8_t **ret_levels)
{
    struct parquet_runs runs;
    uint8_t *levels = parquet_buffer_room(buffer, count);

    runs_open(&runs, bytes, bits_for(highest));
    if (!runs_read_u8(&runs, levels, count))
        return damaged("levels are missing");
    if (levels_highest(levels, count) > highest)
        return damaged("its levels are damaged");
    *ret_levels = levels;
    return TUNDISH_OK;
}

/* Are all values there, by one run? This is what optional columns without nulls look like. */
static bool
is_all_defined(const struct decoding *decoding, struct byte_view bytes, uint32_t count)
{
    struct parquet_runs runs;

    runs_open(&runs, bytes, bits_for(decoding->leaf->defined));
    return runs_pass_over(&runs, decoding->leaf->defined, count);
}

static void
count_levels(const struct decoding *decoding, struct levels *levels)
{
    const struct parquet_leaf *leaf = decoding->leaf;
    uint32_t count = levels->entry_count;

    levels->slot_count = levels->value_count = count;
    if (levels->defines == NULL)
        return;
    levels->value_count = levels_count(levels->defines, count, leaf->defined);
    /* Without lists each entry is a value, or null. */
    if (leaf->is_list)
        levels->slot_count = levels_count(levels->defines, count, leaf->element);
}

/* The rest of `rest` are values. */
static tundish_status
take_all_levels(struct decoding *decoding, const struct parquet_page *page, struct byte_view *rest,
                struct levels *ret_levels)
{
    const struct parquet_leaf *leaf = decoding->leaf;
    struct levels levels = { .entry_count = page->value_count };
    struct byte_view repeats = { 0 }, defines = { 0 };
    tundish_status status = TUNDISH_OK;

    if (page->type == PARQUET_DATA_PAGE &&
        ((leaf->is_list && page->repetition_encoding != PARQUET_RLE) ||
         (leaf->defined > 0 && page->definition_encoding != PARQUET_RLE)))
        return tnd_fail(TUNDISH_E_DATA, "its levels are bit-packed, which cannot be read");
    /* Version 2 has both lengths even where there is no such level. */
    if ((leaf->is_list || page->type == PARQUET_DATA_PAGE_V2) &&
        !take_levels(page, page->repetition_bytes, rest, &repeats))
        return damaged("its levels are damaged");
    if ((leaf->defined > 0 || page->type == PARQUET_DATA_PAGE_V2) &&
        !take_levels(page, page->definition_bytes, rest, &defines))
        return damaged("its levels are damaged");
    if (leaf->is_list)
        status = read_levels(&decoding->repeats, repeats, 1, levels.entry_count, &levels.repeats);
    if (status == TUNDISH_OK && leaf->defined > 0 &&
        !is_all_defined(decoding, defines, levels.entry_count))
        status = read_levels(&decoding->defines, defines, leaf->defined, levels.entry_count,
                             &levels.defines);
    if (status != TUNDISH_OK)
        return status;
    count_levels(decoding, &levels);
    *ret_levels = levels;
    return TUNDISH_OK;
}

/* Where lists begin. An entry that is not repeated begins a row; one below `element` is a list
 * without elements, or null. */
static tundish_status
add_rows(struct decoding *decoding, const struct levels *levels)
{
    struct parquet_column *column = &decoding->column;
    uint64_t slot = column->value_count;

    for (uint32_t i = 0; i < levels->entry_count; i++) {
        bool is_slot = levels->defines == NULL || levels->defines[i] >= decoding->leaf->element;

        if (levels->repeats[i] == 0) {
            if (decoding->rows == column->row_count)
                return damaged("it has more rows than its row group");
            column->splits[decoding->rows++] = slot;
        } else if (decoding->rows == 0 || !is_slot) {
            return damaged("its levels are damaged");
        }
        slot += is_slot;
    }
    return TUNDISH_OK;
}

/* Bytes of a value as the column has them so far. */
static size_t
slot_bytes(const struct decoding *decoding)
{
    return decoding->values.as_numbers ? sizeof(uint32_t) : decoding->values.value_bytes;
}

/* The value that stands for null, as it lies in a column. */
static const void *
fallback_of(struct decoding *decoding)
{
    const struct byte_view *text = decoding->decode->fallback;
    struct parquet_buffer *texts = &decoding->values.texts;

    if (text == NULL || decoding->leaf->dtype != TUNDISH_STRING)
        return text;
    if (!decoding->has_fallback_text) {
        uint8_t *to = parquet_buffer_room(texts, text->size);

        memcpy(to, text->data, text->size);
        decoding->fallback = (struct parquet_text){ (uint32_t)texts->used, (uint32_t)text->size };
        decoding->has_fallback_text = true;
        texts->used += text->size;
    }
    return &decoding->fallback;
}

/* Move the values apart, which stand at the beginning of the slots, and note the nulls. */
static void
spread(struct decoding *decoding, const struct levels *levels)
{
    static const uint8_t zeros[8];
    const struct parquet_leaf *leaf = decoding->leaf;
    struct parquet_column *column = &decoding->column;
    size_t width = slot_bytes(decoding);
    const void *fallback, *filler;

    if (levels->value_count == levels->slot_count)
        return;
    if (leaf->is_list)
        (void)levels_keep(levels->defines, levels->entry_count, leaf->element);
    fallback = fallback_of(decoding);
    filler = fallback != NULL ? fallback : zeros;
    if (decoding->values.as_numbers)
        filler = &decoding->values.dictionary_count; /* the word that stands for null */
    levels_spread(levels->defines, levels->slot_count, leaf->defined, width, filler,
                  (uint8_t *)column->values + column->value_count * width);
    if (fallback != NULL)
        return;
    if (column->nulls == NULL)
        column->nulls = tnd_zalloc(decoding->decode->chunk->value_count, 1);
    levels_nulls(levels->defines, levels->slot_count, leaf->defined,
                 column->nulls + column->value_count);
}

/* Texts instead of numbers, from the last on: a page follows that has others than the dictionary's.
 */
static void
write_texts_out(struct decoding *decoding)
{
    const struct parquet_text *words = (const void *)decoding->values.dictionary;
    struct parquet_text *texts = decoding->column.values;
    const uint8_t *numbers = decoding->column.values;

    for (uint64_t i = decoding->column.value_count; i-- > 0;)
        texts[i] = words[load_u32(numbers + i * sizeof(uint32_t))];
    decoding->values.as_numbers = false;
}

/* Texts stay numbers as long as all pages have them from the dictionary. */
static void
choose_form(struct decoding *decoding, int64_t encoding)
{
    bool is_by_number = encoding == PARQUET_PLAIN_DICTIONARY || encoding == PARQUET_RLE_DICTIONARY;

    if (decoding->values.as_numbers && !is_by_number)
        write_texts_out(decoding);
    else if (is_by_number && decoding->column.value_count == 0)
        decoding->values.as_numbers = decoding->leaf->dtype == TUNDISH_STRING &&
                                      decoding->values.dictionary != NULL &&
                                      decoding->values.dictionary_count < WORDS_MAX;
}

static tundish_status
read_data(struct decoding *decoding, const struct parquet_page *page, struct byte_view rest)
{
    struct parquet_column *column = &decoding->column;
    struct levels levels = { 0 };
    uint8_t *to;
    const char *reason;
    tundish_status status = take_all_levels(decoding, page, &rest, &levels);

    if (status == TUNDISH_OK && decoding->leaf->is_list)
        status = add_rows(decoding, &levels);
    if (status != TUNDISH_OK)
        return status;
    choose_form(decoding, page->encoding);
    to = (uint8_t *)column->values + column->value_count * slot_bytes(decoding);
    reason = values_read(&decoding->values, page->encoding, rest, levels.value_count, to);
    if (reason != NULL)
        return damaged(reason);
    spread(decoding, &levels);
    decoding->entries += levels.entry_count;
    column->value_count += levels.slot_count;
    return TUNDISH_OK;
}

static tundish_status
read_dictionary(struct decoding *decoding, const struct parquet_page *page, struct byte_view rest)
{
    struct parquet_values *values = &decoding->values;
    const char *reason;
    tundish_status status = ask(decoding, page->value_count, values->value_bytes);

    if (values->dictionary != NULL)
        return damaged("it has two dictionaries");
    if (page->encoding != PARQUET_PLAIN && page->encoding != PARQUET_PLAIN_DICTIONARY)
        return tnd_fail(TUNDISH_E_DATA, "its dictionary is encoded as %lld, which cannot be read",
                        (long long)page->encoding);
    if (status != TUNDISH_OK)
        return status;
    values->dictionary = tnd_alloc((page->value_count + 8) * values->value_bytes);
    values->dictionary_count = page->value_count;
    reason = values_read(values, PARQUET_PLAIN, rest, page->value_count, values->dictionary);
    if (reason != NULL)
        return damaged(reason);
    if (decoding->leaf->dtype == TUNDISH_STRING) { /* after it, what stands for null */
        const struct parquet_text *fallback = fallback_of(decoding);

        ((struct parquet_text *)(void *)values->dictionary)[page->value_count] =
            fallback != NULL ? *fallback : (struct parquet_text){ 0 };
    }
    return TUNDISH_OK;
}

/* Room for the texts of all pages, as the footer says: a buffer that grows is copied. Pages that
 * are not written takes no memory. */
static void
expect_texts(struct decoding *decoding)
{
    const struct parquet_chunk *chunk = decoding->decode->chunk;
    uint64_t bytes = chunk->unpacked_bytes;

    if (bytes <= decoding->decode->bytes_max && bytes / 16 <= chunk->bytes && bytes < UINT32_MAX)
        (void)parquet_buffer_room(&decoding->values.texts, bytes);
}

/* Unpack a page, of which the levels of version 2 are as they are, to where it is read. A page that
 * is not packed and does not stay is read where it is. */
static tundish_status
unpack(struct decoding *decoding, const struct parquet_page *page, struct byte_view packed,
       bool stays, struct byte_view *ret_page)
{
    uint8_t codec = decoding->decode->chunk->codec;
    uint64_t levels = page->type == PARQUET_DATA_PAGE_V2
                          ? (uint64_t)page->repetition_bytes + page->definition_bytes
                          : 0;
    struct parquet_buffer *buffer = stays ? &decoding->values.texts : &decoding->page;
    struct byte_view rest = { packed.data + levels, packed.size - levels };
    uint8_t *to;
    tundish_status status;

    if (page->type == PARQUET_DATA_PAGE_V2 && (!page->is_packed || rest.size == 0))
        codec = PARQUET_UNCOMPRESSED;
    if (codec == PARQUET_UNCOMPRESSED && !stays) {
        *ret_page = packed;
        return page->unpacked_bytes == packed.size ? TUNDISH_OK : damaged("a page is damaged");
    }
    if (stays && page->type != PARQUET_DICTIONARY_PAGE && decoding->column.value_count == 0)
        expect_texts(decoding);
    status = ask(decoding, (stays ? buffer->used : 0) + page->unpacked_bytes, 1);
    if (status != TUNDISH_OK)
        return status;
    if (stays && buffer->used + page->unpacked_bytes > UINT32_MAX)
        return tnd_fail(TUNDISH_E_DATA, "its texts are more than 4 GiB: write smaller row groups");
    to = parquet_buffer_room(buffer, page->unpacked_bytes);
    memcpy(to, packed.data, levels);
    if (!parquet_unpack(codec, rest, to + levels, page->unpacked_bytes - levels))
        return damaged("a page cannot be unpacked");
    if (stays)
        buffer->used += page->unpacked_bytes;
    *ret_page = (struct byte_view){ to, page->unpacked_bytes };
    return TUNDISH_OK;
}

static tundish_status
check_page(const struct decoding *decoding, const struct parquet_page *page,
           struct byte_view packed)
{
    const char *obstacle = page->type == PARQUET_DICTIONARY_PAGE
                               ? NULL
                               : values_obstacle(decoding->leaf, page->encoding);

    if (page->has_crc && crc32(0, packed.data, (uInt)packed.size) != page->crc)
        return damaged("a page's checksum is wrong");
    if (obstacle != NULL)
        return tnd_fail(TUNDISH_E_DATA, "%s (%lld)", obstacle, (long long)page->encoding);
    if (page->type != PARQUET_DICTIONARY_PAGE &&
        page->value_count > decoding->decode->chunk->value_count - decoding->entries)
        return damaged("it has more values than its footer says");
    return TUNDISH_OK;
}

static tundish_status
read_page(struct decoding *decoding)
{
    struct parquet_page page;
    struct byte_view packed, unpacked;
    bool is_dictionary, stays;
    size_t head_bytes;
    tundish_status status = parquet_page_read(decoding->bytes, &page, &head_bytes);

    if (status != TUNDISH_OK)
        return status;
    decoding->bytes.data += head_bytes;
    decoding->bytes.size -= head_bytes;
    if (page.packed_bytes > decoding->bytes.size)
        return damaged("a page is cut off");
    packed = (struct byte_view){ decoding->bytes.data, page.packed_bytes };
    decoding->bytes.data += packed.size;
    decoding->bytes.size -= packed.size;
    is_dictionary = page.type == PARQUET_DICTIONARY_PAGE;
    if (!is_dictionary && page.type != PARQUET_DATA_PAGE && page.type != PARQUET_DATA_PAGE_V2)
        return TUNDISH_OK; /* readers pass over pages that they do not know */
    status = check_page(decoding, &page, packed);
    stays = values_stay(decoding->leaf, is_dictionary ? PARQUET_PLAIN : page.encoding);
    if (status == TUNDISH_OK)
        status = unpack(decoding, &page, packed, stays, &unpacked);
    if (status != TUNDISH_OK)
        return status;
    return is_dictionary ? read_dictionary(decoding, &page, unpacked)
                         : read_data(decoding, &page, unpacked);
}

static tundish_status
begin(struct decoding *decoding)
{
    const struct parquet_decode *decode = decoding->decode;
    struct parquet_column *column = &decoding->column;
    const char *obstacle = parquet_codec_obstacle(decode->chunk->codec);
    uint64_t count = decode->chunk->value_count;
    tundish_status status;

    if (decode->chunk->is_encrypted)
        return tnd_fail(TUNDISH_E_DATA, "it is encrypted, which cannot be read");
    if (decode->chunk->is_elsewhere)
        return tnd_fail(TUNDISH_E_DATA, "it lies in another file, which cannot be read");
    if (obstacle != NULL)
        return tnd_fail(TUNDISH_E_DATA, "its codec %s cannot be read: %s",
                        parquet_codec_name(decode->chunk->codec), obstacle);
    if (!decoding->leaf->is_list && count != decode->row_count)
        return damaged("it has other rows than its row group");
    status = ask(decoding, count, decoding->values.value_bytes + 1);
    if (status == TUNDISH_OK && decoding->leaf->is_list)
        status = ask(decoding, decode->row_count, sizeof *column->splits);
    if (status != TUNDISH_OK)
        return status;
    column->row_count = decode->row_count;
    /* Decoders write whole groups of eight. */
    column->values = tnd_alloc((count + 8) * decoding->values.value_bytes);
    if (decoding->leaf->is_list)
        column->splits = tnd_alloc((decode->row_count + 1) * sizeof *column->splits);
    return TUNDISH_OK;
}

static struct byte_view
text_of_word(const struct words *words, uint32_t number)
{
    const struct parquet_words *of = (const struct parquet_words *)(const void *)words;
    struct parquet_text text = of->list[number];

    return (struct byte_view){ of->texts + text.offset, text.bytes };
}

static void
expect_word(const struct words *words, uint32_t number)
{
    const struct parquet_words *of = (const struct parquet_words *)(const void *)words;

    __builtin_prefetch(&of->list[number]);
}

/* The dictionary becomes the column's, with the memory of texts. */
static void
keep_words(struct decoding *decoding)
{
    struct parquet_column *column = &decoding->column;
    struct parquet_values *values = &decoding->values;
    struct parquet_words *words = tnd_alloc(sizeof *words);
    uint32_t count = values->dictionary_count + 1;

    *words = (struct parquet_words){
        .words = { .count = count, .text = text_of_word, .expect = expect_word },
        .holds = 1,
        .list = (struct parquet_text *)(void *)values->dictionary,
        .texts = values->texts.data,
        .text_bytes = values->texts.room,
        .bytes = values->texts.room + count * sizeof *words->list + words_memo_bytes(count),
    };
    column->words = words;
    column->numbers = tnd_realloc(column->values, column->value_count + 8, sizeof(uint32_t));
    column->values = NULL;
    column->bytes += words->bytes;
    values->dictionary = NULL;
    values->texts = (struct parquet_buffer){ 0 };
}

/* Keep what was decoded; the memory of texts goes with it. */
static void
finish(struct decoding *decoding)
{
    struct parquet_column *column = &decoding->column;
    struct parquet_buffer *texts = &decoding->values.texts;

    if (column->splits != NULL)
        column->splits[column->row_count] = column->value_count;
    if (decoding->leaf->dtype == TUNDISH_STRING)
        (void)parquet_buffer_room(texts, 0); /* so that nulls are texts too */
    column->bytes =
        decoding->decode->chunk->value_count * (slot_bytes(decoding) + (column->nulls != NULL)) +
        (column->splits != NULL ? column->row_count * sizeof *column->splits : 0);
    if (decoding->values.as_numbers) {
        keep_words(decoding);
        return;
    }
    column->bytes += texts->room;
    column->text_bytes = texts->room;
    column->texts = texts->data;
    texts->data = NULL;
}

tundish_status
parquet_column_decode(const struct parquet_decode *decode, struct byte_view bytes,
                      struct parquet_column *ret_column)
{
    struct decoding decoding = {
        .decode = decode, .leaf = decode->leaf, .bytes = bytes, .values = { .leaf = decode->leaf }
    };
    tundish_status status;

    decoding.values.value_bytes = parquet_value_bytes(decode->leaf->dtype);
    status = begin(&decoding);
    while (status == TUNDISH_OK && decoding.entries < decode->chunk->value_count)
        status = read_page(&decoding);
    if (status == TUNDISH_OK && decode->leaf->is_list && decoding.rows != decode->row_count)
        status = damaged("it has other rows than its row group");
    if (status == TUNDISH_OK) {
        finish(&decoding);
        *ret_column = decoding.column;
    } else {
        parquet_column_close(&decoding.column);
    }
    values_close(&decoding.values);
    free(decoding.page.data);
    free(decoding.repeats.data);
    free(decoding.defines.data);
    return status;
}

void
parquet_words_hold(struct parquet_words *words)
{
    atomic_fetch_add_explicit(&words->holds, 1, memory_order_relaxed);
}

/* The last one that lets go sees what all others did: its release pairs with theirs. */
void
parquet_words_release(void *held)
{
    struct parquet_words *words = held;

    if (words == NULL || atomic_fetch_sub_explicit(&words->holds, 1, memory_order_acq_rel) > 1)
        return;
    words_close(&words->words);
    if (words->spill == NULL) {
        free(words->list);
        free(words->texts);
    }
    parquet_spill_release(words->spill);
    free(words);
}

void
parquet_column_close(struct parquet_column *column)
{
    parquet_words_release(column->words);
    if (!column->is_spilled) {
        free(column->numbers);
        free(column->values);
        free(column->texts);
        free(column->splits);
        free(column->nulls);
    }
    *column = (struct parquet_column){ 0 };
}
