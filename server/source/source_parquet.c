/* source_parquet.c - the rows of Parquet files.
 *
 * Words of an element are those of a record, whose offset is the row's number. The columns' types
 * stand in the files, so the plan looks at one; the others must have the same. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "column/literal.h"
#include "content/records/missing_file.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/plural.h"
#include "remote/ranges.h"
#include "source/example_file.h"
#include "source/file_source.h"
#include "source/files/files_private.h"
#include "source/parquet/column.h"
#include "source/parquet/file.h"
#include "source/parquet/rows.h"
#include "source/rows/named_columns.h"

struct parquet {
    struct reader reader; /* first, as file_source.h asks for */
    struct parquet_columns columns;
    char *about; /* the file that the plan has looked at */
};

/* While the example's footer is read. */
struct opening {
    const struct stage_config *config;
    struct parquet_columns *columns;
    uint32_t *leaves;
    bool has_complained;
};

static tundish_status
add_column(struct opening *opening, const struct parquet_schema *schema,
           const struct named_column *named)
{
    struct parquet_columns *columns = opening->columns;
    int64_t number = parquet_schema_find(schema, named->name, 0);
    const struct parquet_leaf *leaf = &schema->leaves[number];
    struct parquet_wanted *wanted;

    must(number >= 0); /* the names were taken from the schema */
    if (leaf->obstacle != NULL)
        return named_column_refuse(opening->config, named, leaf->obstacle);
    opening->leaves[columns->count] = (uint32_t)number;
    wanted = &columns->columns[columns->count++];
    *wanted = (struct parquet_wanted){ .name = tnd_strdup(named->name),
                                       .dtype = leaf->dtype,
                                       .is_list = leaf->is_list };
    memcpy(wanted->meaning, leaf->meaning, sizeof wanted->meaning);
    return named_column_fallback(opening->config, named, wanted->dtype, &wanted->fallback);
}

/* The names of leaves, in their order, each once: refused ones share that of their group. */
static const char **
known_names(const struct parquet_schema *schema, size_t *ret_count)
{
    const char **names = tnd_zalloc(schema->count, sizeof *names);
    size_t count = 0;

    for (uint32_t i = 0; i < schema->count; i++)
        if (count == 0 || strcmp(names[count - 1], schema->leaves[i].name) != 0)
            names[count++] = schema->leaves[i].name;
    *ret_count = count;
    return names;
}

/* For parquet_choice. */
static tundish_status
choose(void *context, const struct parquet_schema *schema, const uint32_t **ret_leaves,
       uint32_t *ret_count)
{
    struct opening *opening = context;
    struct named_columns named;
    size_t known_count;
    const char **known = known_names(schema, &known_count);
    tundish_status status = named_columns_open(opening->config, known, known_count, &named);

    opening->columns->columns = tnd_zalloc(named.count + 1, sizeof *opening->columns->columns);
    opening->leaves = tnd_zalloc(named.count + 1, sizeof *opening->leaves);
    for (uint32_t i = 0; i < named.count && status == TUNDISH_OK; i++)
        status = add_column(opening, schema, &named.columns[i]);
    opening->has_complained = status != TUNDISH_OK;
    named_columns_close(&named);
    free((void *)(uintptr_t)known);
    *ret_leaves = opening->leaves;
    *ret_count = opening->columns->count;
    return status;
}

/* The part of the plan's sentence that says which codecs there are. */
static void
list_codecs(const struct parquet_footer *footer, char *text, size_t bytes)
{
    size_t chunks = (size_t)footer->group_count * footer->wanted_count, used = 0;
    bool is_there[PARQUET_CODECS + 1] = { false };

    text[0] = '\0';
    for (size_t i = 0; i < chunks; i++)
        is_there[footer->chunks[i].codec] = true;
    for (uint8_t codec = 0; codec <= PARQUET_CODECS; codec++)
        if (is_there[codec])
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used > 0 ? ", " : "",
                                     parquet_codec_name(codec));
}

/* About what a chunk takes once it is decoded: texts lie beside their numbers. */
static uint64_t
decoded_bytes(const struct parquet_wanted *wanted, const struct parquet_chunk *chunk)
{
    uint64_t texts = wanted->dtype == TUNDISH_STRING ? chunk->unpacked_bytes : 0;

    return chunk->value_count * parquet_value_bytes(wanted->dtype) + texts;
}

static char *
describe_file(const char *name, uint64_t file_bytes, const struct parquet_footer *footer,
              const struct parquet_columns *columns)
{
    uint64_t rows = 0, packed = 0, largest = 0, most = 0;
    char codecs[128];

    list_codecs(footer, codecs, sizeof codecs);
    for (uint32_t group = 0; group < footer->group_count; group++) {
        uint64_t to_read = 0, decoded = 0;

        rows = footer->groups[group].row_count > rows ? footer->groups[group].row_count : rows;
        for (uint32_t i = 0; i < footer->wanted_count; i++) {
            const struct parquet_chunk *chunk =
                &footer->chunks[(size_t)group * footer->wanted_count + i];

            to_read += chunk->bytes;
            decoded += decoded_bytes(&columns->columns[i], chunk);
        }
        packed += to_read;
        most = to_read > most ? to_read : most;
        largest = decoded > largest ? decoded : largest;
    }
    return tnd_sprintf("%s: %" PRIu64 " row%s in %" PRIu32 " row group%s of at most %" PRIu64
                       " row%s, each %.1f MiB at most and about %.1f MiB decoded; %" PRIu32
                       " of %" PRIu32 " columns are read, %.1f of %.1f MiB; codecs: %s",
                       name, footer->row_count, TND_PLURAL(footer->row_count), footer->group_count,
                       TND_PLURAL(footer->group_count), rows, TND_PLURAL(rows),
                       (double)most / (1 << 20), (double)largest / (1 << 20), footer->wanted_count,
                       footer->schema.count, (double)packed / (1 << 20),
                       (double)file_bytes / (1 << 20), codecs[0] != '\0' ? codecs : "none");
}

static tundish_status
read_url(void *context, void *to, size_t bytes, uint64_t offset)
{
    return remote_ranges_read(context, to, bytes, offset);
}

static tundish_status
open_url_footer(const struct spec_file *file, const char *url, const struct parquet_choice *choice,
                uint64_t *ret_bytes, struct parquet_footer *ret_footer)
{
    struct object_identity identity;
    struct remote_ranges *ranges = NULL;
    struct remote *remote = NULL;
    tundish_status status = remote_get(&file->remote, &remote);

    if (status == TUNDISH_OK)
        status = remote_ranges_open(remote, url, &ranges);
    if (status == TUNDISH_OK)
        status = remote_ranges_identify_by_tail(ranges, &identity);
    if (status == TUNDISH_OK)
        status = parquet_footer_load(&(struct parquet_input){ read_url, ranges, identity.bytes },
                                     choice, ret_footer);
    if (status == TUNDISH_OK)
        *ret_bytes = identity.bytes;
    remote_ranges_close(ranges);
    return status;
}

static tundish_status
open_footer(const char *path, const struct parquet_choice *choice, uint64_t *ret_bytes,
            struct parquet_footer *ret_footer)
{
    /* O_NONBLOCK: opening a pipe by that name must not hang. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about;
    tundish_status status;

    if (descriptor < 0 && errno == ENOENT && strpbrk(path, "*?[") != NULL)
        status = tnd_fail(TUNDISH_E_DATA, "cannot be opened; it is used as a file name, only "
                                          "list_files takes patterns: No such file or directory");
    else if (descriptor < 0 && errno == ENOENT)
        status = tnd_fail(TUNDISH_E_DATA, "cannot be opened: No such file or directory%s",
                          missing_file_note(path));
    else if (descriptor < 0 || fstat(descriptor, &about) != 0)
        status = tnd_fail_errno(errno, "cannot be opened");
    else if (!S_ISREG(about.st_mode))
        status = tnd_fail(TUNDISH_E_DATA, "it is not a regular file");
    else
        status = parquet_footer_load(&(struct parquet_input){ parquet_read_descriptor, &descriptor,
                                                              (uint64_t)about.st_size },
                                     choice, ret_footer);
    if (descriptor >= 0)
        close(descriptor);
    if (status == TUNDISH_OK)
        *ret_bytes = (uint64_t)about.st_size;
    return status;
}

/* Look at a file, and take the columns from its schema. */
static tundish_status
open_columns(struct parquet *parquet, const struct stage_config *config)
{
    struct opening opening = { .config = config, .columns = &parquet->columns };
    struct parquet_choice choice = { .choose = choose, .context = &opening };
    struct parquet_footer footer = { 0 };
    char *name = NULL, *path;
    uint64_t file_bytes = 0;
    tundish_status status = example_file(config, &name);

    if (status != TUNDISH_OK)
        return status;
    path = spec_path(config->stage->file, name);
    status = spec_is_url(path)
                 ? open_url_footer(config->stage->file, path, &choice, &file_bytes, &footer)
                 : open_footer(path, &choice, &file_bytes, &footer);
    if (status == TUNDISH_OK)
        parquet->about = describe_file(name, file_bytes, &footer, &parquet->columns);
    else if (!opening.has_complained) {
        (void)tnd_fail_while(status, "%s", name);
        status = stage_complain(config, "%s", tnd_error_text());
    }
    parquet_footer_close(&footer);
    free(opening.leaves);
    free(path);
    free(name);
    return status;
}

/* A hash that tells files with other columns apart. */
static int64_t
hash_columns(const struct parquet_columns *columns)
{
    uint64_t hash = TND_HASH_CROSS_KEY;

    for (uint32_t i = 0; i < columns->count; i++) {
        const struct parquet_wanted *wanted = &columns->columns[i];
        const struct byte_view *text = wanted->fallback;

        hash = tnd_hash_farm_cat(hash, tnd_hash_farm(wanted->name, strlen(wanted->name)));
        hash = tnd_hash_farm_cat(hash, tnd_hash_farm(wanted->meaning, strlen(wanted->meaning)));
        hash =
            tnd_hash_farm_cat(hash, (uint64_t)wanted->dtype << 2 | (uint64_t)wanted->is_list << 1 |
                                        (wanted->fallback != NULL));
        if (text != NULL && wanted->dtype == TUNDISH_STRING)
            hash = tnd_hash_farm_cat(hash, tnd_hash_farm(text->data, text->size));
        else if (text != NULL)
            hash = tnd_hash_farm_cat(hash,
                                     tnd_hash_farm(wanted->fallback, literal_bytes(wanted->dtype)));
    }
    return (int64_t)hash;
}

static tundish_status
parquet_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    struct parquet *parquet = state;
    tundish_status status = file_source_open(&parquet->reader, config, &scanner_parquet);

    if (status == TUNDISH_OK)
        status = open_columns(parquet, config);
    if (status != TUNDISH_OK)
        return status;
    if (parquet->columns.count == 0)
        return stage_complain(config, "parquet reads no column");
    parquet->reader.format.parquet = &parquet->columns;
    parquet->reader.format.numbers[0] = hash_columns(&parquet->columns);
    for (uint32_t i = 0; i < parquet->columns.count; i++) {
        const struct parquet_wanted *wanted = &parquet->columns.columns[i];
        struct column_spec *column = schema_add(ret_schema, wanted->name, wanted->dtype);

        if (wanted->is_list) {
            column->rank = 1;
            column->shape[0] = -1;
            column->row_of_ragged = true;
        }
    }
    return TUNDISH_OK;
}

static tundish_status
parquet_read(const void *state, const struct source_read *read)
{
    (void)state;
    return parquet_rows_read(read);
}

static void
parquet_tell(const void *state, struct source_files *files, const uint64_t *words,
             struct whereabouts *ret_where)
{
    const struct source_file *file = files_file(files, reference_file(words));

    (void)state;
    must(file != NULL && file->parquet != NULL);
    ret_where->file = (struct byte_view){ (const uint8_t *)file->name, strlen(file->name) };
    ret_where->path = file->path;
    ret_where->has_record = true;
    ret_where->record = words[0];
    ret_where->number_name = "row_group";
    ret_where->number = parquet_group_of(&file->parquet->footer, words[0], 0);
}

static char *
parquet_describe(const void *state)
{
    const struct parquet *parquet = state;

    return tnd_strdup(parquet->about);
}

static void
parquet_close(void *state)
{
    struct parquet *parquet = state;

    parquet_columns_close(&parquet->columns);
    free(parquet->about);
}

const struct source_ops source_parquet = {
    .name = "parquet",
    .order = READER_ORDER("parquet"),
    .state_bytes = sizeof(struct parquet),
    .open = parquet_open,
    .read = parquet_read,
    .tell = parquet_tell,
    .describe = parquet_describe,
    .needs_cache = file_source_needs_cache,
    .reads_files = true,
    .tells_records = true,
    .words = WORDS_HAVE_FILE,
    .close = parquet_close,
};
