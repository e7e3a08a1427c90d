/* footer.c - see footer.h. */
#include "source/parquet/footer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/status.h"

struct reading {
    struct thrift thrift;
    uint64_t file_bytes;
    const struct parquet_choice *choice;
    struct parquet_footer *footer;
    uint32_t *slots; /* of each leaf: its number among the wanted ones + 1, or 0 */
    bool has_schema, has_groups, is_encrypted;
    int64_t row_count;
};

static tundish_status
damaged(const char *what)
{
    return tnd_fail(TUNDISH_E_CORRUPT, "its footer is damaged: %s", what);
}

tundish_status
parquet_tail_read(const uint8_t tail[PARQUET_TAIL_BYTES], uint64_t file_bytes, uint32_t *ret_bytes)
{
    uint32_t bytes = load_u32(tail);

    if (memcmp(tail + 4, "PARE", 4) == 0)
        return tnd_fail(TUNDISH_E_DATA, "it is an encrypted Parquet file, which cannot be read");
    if (memcmp(tail + 4, "PAR1", 4) != 0)
        return tnd_fail(TUNDISH_E_DATA, "it is not a Parquet file, or its end is missing");
    if (bytes > PARQUET_METADATA_MAX)
        return tnd_fail(TUNDISH_E_DATA, "its footer of %u bytes is longer than %u MiB", bytes,
                        PARQUET_METADATA_MAX >> 20);
    /* The first four bytes are the mark too. */
    if (file_bytes < PARQUET_TAIL_BYTES + 4 || bytes > file_bytes - PARQUET_TAIL_BYTES - 4)
        return damaged("it would be longer than the file");
    *ret_bytes = bytes;
    return TUNDISH_OK;
}

/* Java wrote chunks' lengths without the head of the dictionary's page before version 1.2.9
 * (PARQUET-816). No such head is longer than this. */
enum { SHORT_BYTES = 100 };

static bool
has_short_lengths(struct byte_view writer)
{
    static const char prefix[] = "parquet-mr version ";
    char text[64];
    unsigned major, minor, patch;

    if (writer.size < sizeof prefix - 1 || memcmp(writer.data, prefix, sizeof prefix - 1) != 0)
        return false;
    snprintf(text, sizeof text, "%.*s",
             (int)(writer.size < sizeof text ? writer.size : sizeof text),
             (const char *)writer.data);
    return sscanf(text + sizeof prefix - 1, "%u.%u.%u", &major, &minor, &patch) == 3 &&
           (major < 1 || (major == 1 && (minor < 2 || (minor == 2 && patch < 9))));
}

/* Read a little beyond the chunks; pages end where the values do. */
static void
lengthen_chunks(struct reading *reading)
{
    struct parquet_footer *footer = reading->footer;
    size_t count = (size_t)footer->group_count * footer->wanted_count;

    for (size_t i = 0; i < count; i++) {
        struct parquet_chunk *chunk = &footer->chunks[i];
        uint64_t after = reading->file_bytes - chunk->offset - chunk->bytes;

        chunk->bytes += after < SHORT_BYTES ? after : SHORT_BYTES;
    }
}

/* The offsets that a chunk may begin at; 0: not said. */
struct offsets {
    int64_t data, dictionary, bytes;
};

static void
read_chunk_metadata(struct thrift *thrift, struct parquet_chunk *chunk, struct offsets *offsets)
{
    struct thrift_field field = { 0 };

    while (thrift_next(thrift, &field))
        switch (field.id) {
        case 4: {
            int64_t codec = thrift_integer(thrift, &field);

            chunk->codec = codec < 0 || codec >= PARQUET_CODECS ? PARQUET_CODECS : (uint8_t)codec;
            break;
        }
        case 5:
            chunk->value_count = (uint64_t)thrift_integer(thrift, &field);
            break;
        case 6:
            chunk->unpacked_bytes = (uint64_t)thrift_integer(thrift, &field);
            break;
        case 7:
            offsets->bytes = thrift_integer(thrift, &field);
            break;
        case 9:
            offsets->data = thrift_integer(thrift, &field);
            break;
        case 11:
            offsets->dictionary = thrift_integer(thrift, &field);
            break;
        default:
            thrift_skip(thrift, &field);
        }
}

static tundish_status
read_chunk(struct reading *reading, struct parquet_chunk *ret_chunk)
{
    struct thrift *thrift = &reading->thrift;
    struct thrift_field field = { 0 };
    struct parquet_chunk chunk = { .codec = PARQUET_CODECS };
    struct offsets offsets = { 0 };
    int64_t begin;

    while (thrift_next(thrift, &field))
        if (field.id == 1)
            chunk.is_elsewhere = thrift_binary(thrift, &field).size > 0;
        else if (field.id == 3 && field.type == THRIFT_STRUCT)
            read_chunk_metadata(thrift, &chunk, &offsets);
        else if (field.id == 8 || field.id == 9) {
            chunk.is_encrypted = true;
            thrift_skip(thrift, &field);
        } else
            thrift_skip(thrift, &field);
    /* A dictionary stands before the data. Some writers say 0 where there is none. */
    begin = offsets.dictionary > 0 && offsets.dictionary < offsets.data ? offsets.dictionary
                                                                        : offsets.data;
    if (begin < 0 || offsets.bytes < 0 || (uint64_t)begin > reading->file_bytes ||
        (uint64_t)offsets.bytes > reading->file_bytes - (uint64_t)begin ||
        chunk.value_count > INT64_MAX)
        return damaged("a column would lie outside of the file");
    chunk.offset = (uint64_t)begin;
    chunk.bytes = (uint64_t)offsets.bytes;
    *ret_chunk = chunk;
    return TUNDISH_OK;
}

/* Those columns of a row group that are wanted. */
static tundish_status
read_chunks(struct reading *reading, const struct thrift_field *field, uint32_t group)
{
    struct parquet_footer *footer = reading->footer;
    uint32_t count = thrift_structs(&reading->thrift, field);
    tundish_status status = TUNDISH_OK;

    if (count != footer->schema.count)
        return damaged("a row group has other columns than the schema");
    for (uint32_t i = 0; i < count && status == TUNDISH_OK; i++) {
        static const struct thrift_field chunk = { .type = THRIFT_STRUCT };
        uint32_t slot = reading->slots[i];

        if (slot == 0)
            thrift_skip(&reading->thrift, &chunk);
        else
            status = read_chunk(reading,
                                &footer->chunks[(size_t)group * footer->wanted_count + slot - 1]);
    }
    return status;
}

static tundish_status
read_group(struct reading *reading, uint32_t group)
{
    struct parquet_footer *footer = reading->footer;
    struct thrift_field field = { 0 };
    bool has_columns = false;
    int64_t rows = -1;
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK && thrift_next(&reading->thrift, &field))
        if (field.id == 1) {
            status = read_chunks(reading, &field, group);
            has_columns = true;
        } else if (field.id == 3) {
            rows = thrift_integer(&reading->thrift, &field);
        } else {
            thrift_skip(&reading->thrift, &field);
        }
    if (status == TUNDISH_OK && (!has_columns || rows < 0 || reading->thrift.is_damaged ||
                                 rows > INT64_MAX - (int64_t)footer->row_count))
        status = damaged("a row group cannot be read");
    if (status != TUNDISH_OK)
        return status;
    footer->groups[group] =
        (struct parquet_row_group){ .first_row = footer->row_count, .row_count = (uint64_t)rows };
    footer->row_count += (uint64_t)rows;
    return TUNDISH_OK;
}

static tundish_status
choose_leaves(struct reading *reading)
{
    struct parquet_footer *footer = reading->footer;
    const uint32_t *leaves = NULL;
    tundish_status status = reading->choice->choose(reading->choice->context, &footer->schema,
                                                    &leaves, &footer->wanted_count);

    if (status != TUNDISH_OK)
        return status;
    reading->slots = tnd_zalloc(footer->schema.count, sizeof *reading->slots);
    for (uint32_t i = 0; i < footer->wanted_count; i++)
        reading->slots[leaves[i]] = i + 1;
    return TUNDISH_OK;
}

static tundish_status
read_groups(struct reading *reading, const struct thrift_field *field)
{
    struct parquet_footer *footer = reading->footer;
    uint32_t count = thrift_structs(&reading->thrift, field);
    tundish_status status = TUNDISH_OK;

    if (!reading->has_schema || reading->has_groups)
        return damaged("its row groups do not follow the schema");
    reading->has_groups = true;
    if ((uint64_t)count * footer->wanted_count > PARQUET_CHUNKS_MAX)
        return tnd_fail(TUNDISH_E_DATA,
                        "%u columns in %u row groups are more than can be read: name fewer columns",
                        footer->wanted_count, count);
    footer->groups = tnd_zalloc(count, sizeof *footer->groups);
    footer->chunks = tnd_zalloc((size_t)count * footer->wanted_count, sizeof *footer->chunks);
    footer->group_count = count;
    for (uint32_t i = 0; i < count && status == TUNDISH_OK; i++)
        status = read_group(reading, i);
    return status;
}

static tundish_status
read_schema(struct reading *reading, const struct thrift_field *field)
{
    uint32_t count = thrift_structs(&reading->thrift, field);
    tundish_status status = TUNDISH_OK;

    if (reading->has_schema)
        return damaged("it has two schemas");
    reading->has_schema = true;
    status = parquet_schema_read(&reading->thrift, count, &reading->footer->schema);
    return status == TUNDISH_OK ? choose_leaves(reading) : status;
}

static tundish_status
read_metadata(struct reading *reading)
{
    struct thrift_field field = { 0 };
    bool is_short = false;
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK && thrift_next(&reading->thrift, &field))
        switch (field.id) {
        case 2:
            status = read_schema(reading, &field);
            break;
        case 3:
            reading->row_count = thrift_integer(&reading->thrift, &field);
            break;
        case 4:
            status = read_groups(reading, &field);
            break;
        case 6:
            is_short = has_short_lengths(thrift_binary(&reading->thrift, &field));
            break;
        default:
            thrift_skip(&reading->thrift, &field);
        }
    if (status != TUNDISH_OK)
        return status;
    if (reading->thrift.is_damaged || !reading->has_schema)
        return damaged("it cannot be read");
    if (reading->row_count < 0 || reading->footer->row_count != (uint64_t)reading->row_count)
        return damaged("its row groups have other rows than the file");
    if (is_short)
        lengthen_chunks(reading);
    return TUNDISH_OK;
}

tundish_status
parquet_footer_read(const uint8_t *metadata, size_t bytes, uint64_t file_bytes,
                    const struct parquet_choice *choice, struct parquet_footer *ret_footer)
{
    struct parquet_footer footer = { 0 };
    struct reading reading = { .thrift = { .at = metadata, .end = metadata + bytes },
                               .file_bytes = file_bytes,
                               .choice = choice,
                               .footer = &footer };
    tundish_status status = read_metadata(&reading);

    free(reading.slots);
    if (status == TUNDISH_OK)
        *ret_footer = footer;
    else
        parquet_footer_close(&footer);
    return status;
}

void
parquet_footer_close(struct parquet_footer *footer)
{
    parquet_schema_close(&footer->schema);
    free(footer->groups);
    free(footer->chunks);
    *footer = (struct parquet_footer){ 0 };
}

const char *
parquet_codec_name(uint8_t codec)
{
    static const char *const names[] = { "uncompressed", "snappy", "gzip",    "lzo",    "brotli",
                                         "lz4",          "zstd",   "lz4_raw", "unknown" };

    return names[codec < PARQUET_CODECS ? codec : PARQUET_CODECS];
}
