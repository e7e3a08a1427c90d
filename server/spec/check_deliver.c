/* check_deliver.c - `distribute`, `deliver` and `remote`. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "spec/check.h"
#include "spec/quantity.h"

enum { ZSTD_LEVEL_DEFAULT = 3, ZSTD_LEVEL_MAX = 22 };

/* A section's mapping with its arguments, so that parameters can be asked for by name. */
struct section {
    struct check *check;
    const struct stage_info *info;
    const struct spec_value **arguments;
};

static struct section
open_section(struct check *check, const struct stage_info *info, const struct spec_value *value)
{
    struct section section = { .check = check, .info = info };

    /* A section that is left out has its defaults. */
    if (value->kind == SPEC_NULL) {
        section.arguments =
            spec_memory_take(check->memory, info->parameter_count, sizeof *section.arguments);
        check_fill(check, info, value->line, value->column, section.arguments);
    } else {
        section.arguments = check_mapping(check, info, value, NULL);
    }
    return section;
}

/* The value if it is of this kind. A value of another kind has been reported, so the default may
 * take its place. */
static const struct spec_value *
value_of(const struct section *section, const char *parameter, enum spec_kind kind)
{
    const struct spec_value *value = section->arguments[stage_parameter(section->info, parameter)];

    return value != NULL && value->kind == kind ? value : NULL;
}

static int64_t
integer_of(const struct section *section, const char *parameter, int64_t otherwise)
{
    const struct spec_value *value = value_of(section, parameter, SPEC_INTEGER);

    return value != NULL ? value->integer : otherwise;
}

static bool
bool_of(const struct section *section, const char *parameter)
{
    const struct spec_value *value = value_of(section, parameter, SPEC_BOOL);

    return value != NULL && value->boolean;
}

static const char *
text_of(const struct section *section, const char *parameter)
{
    const struct spec_value *value = value_of(section, parameter, SPEC_TEXT);

    return value != NULL ? value->text : "";
}

static bool
is_text(const struct section *section, const char *parameter, const char *text)
{
    return strcmp(text_of(section, parameter), text) == 0;
}

/* The index of a text among the parameter's choices, which are in the order of the enumeration. */
static unsigned
choice_of(const struct section *section, const char *parameter)
{
    const char *word = text_of(section, parameter);
    const char *at = section->info->parameters[stage_parameter(section->info, parameter)].choices;
    unsigned index = 0;

    for (;; index++) {
        size_t bytes = strcspn(at, "|");

        if (bytes == strlen(word) && memcmp(at, word, bytes) == 0)
            return index;
        if (at[bytes] == '\0')
            return 0;
        at += bytes + 1;
    }
}

static uint64_t
bytes_of(const struct section *section, const char *parameter)
{
    const struct spec_value *value = section->arguments[stage_parameter(section->info, parameter)];
    uint64_t bytes = 0;

    if (value != NULL)
        quantity_bytes(value, &bytes);
    return bytes;
}

static int64_t
duration_of(const struct section *section, const char *parameter, int64_t otherwise)
{
    const struct spec_value *value = value_of(section, parameter, SPEC_TEXT);
    int64_t ns = otherwise;

    if (value != NULL)
        quantity_duration_ns(value, &ns);
    return ns;
}

static int32_t
evaluation_shards_of(const struct section *section)
{
    const struct spec_value *value = value_of(section, "evaluation_shards", SPEC_TEXT);

    if (value == NULL)
        return (int32_t)integer_of(section, "evaluation_shards", 0);
    /* -1 is auto. */
    if (strcmp(value->text, "auto") != 0)
        spec_complain(section->check->errors, value->line, value->column,
                      "evaluation_shards must be an integer of at least 1 or auto, not \"%.60s\"",
                      value->text);
    return -1;
}

/* Stages that cannot be made even, and why. The rest follows from the stages (plan/rebatch.c). */
static void
check_even(const struct section *section, const struct spec_distribute *asked)
{
    const struct {
        bool is_asked;
        const char *why;
    } obstacles[] = {
        { asked->delivery != DELIVER_LANES, "is for lanes: readers of a queue or a broadcast get "
                                            "whole batches" },
        { asked->evaluation_shards != 0, "is for training: readers of an evaluation get each row "
                                         "once" },
        { asked->from_function, "divides global batches: with from_function the pipeline deals "
                                "its own" },
        { asked->rebatch == REBATCH_CARRY, "divides each batch by itself: use rebatch: split" },
        { asked->drop_remainder_step, "fills the steps that drop_remainder_step leaves out: set "
                                      "one of the two" },
    };

    for (size_t i = 0; asked->even_repeat && i < sizeof obstacles / sizeof *obstacles; i++)
        if (obstacles[i].is_asked)
            spec_complain(section->check->errors, asked->line, asked->column, "even: repeat %s",
                          obstacles[i].why);
    if (!asked->even_repeat && text_of(section, "mask")[0] != '\0')
        spec_complain(section->check->errors, asked->line, asked->column,
                      "mask: '%.60s' is a column that even: repeat adds: set that, too",
                      text_of(section, "mask"));
}

void
check_distribute(struct check *check, const struct spec_value *value,
                 struct spec_distribute *ret_distribute)
{
    struct section section = open_section(check, &section_distribute, value);
    struct spec_distribute distribute = {
        .replicas = (uint32_t)integer_of(&section, "replicas", 1),
        .auto_shard = (enum spec_auto_shard)choice_of(&section, "auto_shard"),
        .rebatch = (enum spec_rebatch)choice_of(&section, "rebatch"),
        .from_function = bool_of(&section, "from_function"),
        .delivery = (enum spec_delivery)choice_of(&section, "delivery"),
        .files_local = is_text(&section, "files", "local"),
        .groups = (uint32_t)integer_of(&section, "groups", 1),
        .drop_remainder_step = bool_of(&section, "drop_remainder_step"),
        .even_repeat = is_text(&section, "even", "repeat"),
        .mask = text_of(&section, "mask")[0] != '\0' ? text_of(&section, "mask") : "mask",
        .evaluation_shards = evaluation_shards_of(&section),
        .line = value->line,
        .column = value->column,
    };

    /* A queue and a broadcast have one lane for all, so there is nothing to divide among
     * replicas. */
    if (distribute.delivery != DELIVER_LANES && distribute.replicas != 1)
        spec_complain(check->errors, value->line, value->column,
                      "with delivery: %s, replicas must be 1, not %" PRIu32,
                      text_of(&section, "delivery"), distribute.replicas);
    check_even(&section, &distribute);
    *ret_distribute = distribute;
}

/* Read `WORD` or `WORD:NUMBER`. False: it is neither, or the number is not from `least` to `most`.
 * Digits only: strtoll would take a sign or blanks too. */
static bool
word_and_number(const char *text, const char *word, long long least, long long most,
                long long *ret_number)
{
    size_t word_bytes = strlen(word);
    char *end;
    long long number;

    if (strncmp(text, word, word_bytes) != 0)
        return false;
    if (text[word_bytes] == '\0')
        return true;
    if (text[word_bytes] != ':' || text[word_bytes + 1] < '0' || text[word_bytes + 1] > '9')
        return false;
    number = strtoll(text + word_bytes + 1, &end, 10);
    if (*end != '\0' || number < least || number > most)
        return false;
    *ret_number = number;
    return true;
}

static const char *const compressions[] = {
    [COMPRESS_AUTO] = "auto",
    [COMPRESS_NONE] = "none",
    [COMPRESS_NARROW] = "narrow",
    [COMPRESS_ZSTD] = "zstd",
};

const char *
spec_compression_name(const struct spec_deliver *deliver)
{
    return compressions[deliver->compression];
}

static void
take_compression(const struct section *section, struct spec_deliver *deliver)
{
    const struct spec_value *value = value_of(section, "compression", SPEC_TEXT);
    const char *nearest;
    long long level = ZSTD_LEVEL_DEFAULT;

    deliver->zstd_level = ZSTD_LEVEL_DEFAULT;
    if (value == NULL)
        return;
    /* The first three have no level, and are in the order of the enumeration. */
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(value->text, compressions[i]) == 0) {
            deliver->compression = (enum spec_compression)i;
            return;
        }
    }
    if (word_and_number(value->text, "zstd", 1, ZSTD_LEVEL_MAX, &level)) {
        deliver->compression = COMPRESS_ZSTD;
        deliver->zstd_level = (int)level;
        return;
    }
    nearest = spec_nearest(value->text, compressions, 4);
    spec_complain(section->check->errors, value->line, value->column,
                  "compression must be auto, none, narrow, zstd or zstd:LEVEL (1 to %d), not "
                  "\"%.60s\"%s",
                  ZSTD_LEVEL_MAX, value->text, spec_hint(nearest, "").text);
}

static void
take_on_error(const struct section *section, struct spec_deliver *deliver)
{
    const struct spec_value *value = value_of(section, "on_error", SPEC_TEXT);
    long long limit = -1;

    deliver->skip_limit = UINT64_MAX;
    if (value == NULL || strcmp(value->text, "stop") == 0)
        return;
    deliver->skip_errors = word_and_number(value->text, "skip", 0, INT64_MAX, &limit);
    if (limit >= 0)
        deliver->skip_limit = (uint64_t)limit;
    if (!deliver->skip_errors)
        spec_complain(section->check->errors, value->line, value->column,
                      "on_error must be stop, skip or skip:LIMIT, not \"%.60s\"", value->text);
}

static const struct spec_value *
widen_of(const struct section *section)
{
    const struct spec_value *widen = value_of(section, "widen", SPEC_MAP);

    /* The entries are checked here because the table of parameters knows only the mapping around
     * them. */
    for (uint32_t i = 0; widen != NULL && i < widen->count; i++)
        check_mapping(section->check, &section_widen, &widen->items[i], NULL);
    return widen;
}

void
check_deliver(struct check *check, const struct spec_value *value, struct spec_deliver *ret_deliver)
{
    struct section section = open_section(check, &section_deliver, value);
    struct spec_deliver deliver = {
        .slots = (uint32_t)integer_of(&section, "slots", 8),
        .lane_bytes = bytes_of(&section, "lane_bytes"),
        .max_batch_bytes = bytes_of(&section, "max_batch_bytes"),
        .memory_limit = bytes_of(&section, "memory_limit"),
        .memory_memfd = is_text(&section, "memory", "memfd"),
        .huge_pages = bool_of(&section, "huge_pages"),
        .checksums = bool_of(&section, "checksums"),
        .detach_slow_group = is_text(&section, "slow_group", "detach"),
        .group_wait_ns = duration_of(&section, "group_wait", -1),
        .rejoin_ns = duration_of(&section, "rejoin", 0),
        .epochs = (uint64_t)integer_of(&section, "epochs", 0),
        .widen = widen_of(&section),
        .line = value->line,
        .column = value->column,
    };

    take_compression(&section, &deliver);
    take_on_error(&section, &deliver);
    *ret_deliver = deliver;
}

const struct spec_remote spec_remote_default = {
    .credentials = "auto",
    .part_bytes = 8 << 20,
    .connections = 32,
    .retries = 8,
    .cache_bytes = UINT64_C(4) << 30,
};

enum { PART_BYTES_MIN = 64 << 10, PART_BYTES_MAX = 1 << 30 };

static const char *
text_or_null(const struct section *section, const char *parameter)
{
    const struct spec_value *value = value_of(section, parameter, SPEC_TEXT);

    return value != NULL ? value->text : NULL;
}

/* A file's path starts where others do. */
static const char *
credentials_of(const struct section *section)
{
    static const char *const words[] = { "auto", "environment", "none" };
    const char *text = text_of(section, "credentials");
    char *path;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0)
            return words[i];
    path = spec_path(section->check->file, text);
    text = spec_memory_text(section->check->memory, path, strlen(path));
    free(path);
    return text;
}

static const char *
cache_of(const struct section *section)
{
    const char *text = text_or_null(section, "cache");
    char *path = text != NULL ? spec_path(section->check->file, text) : NULL;

    if (path == NULL)
        return NULL;
    text = spec_memory_text(section->check->memory, path, strlen(path));
    free(path);
    return text;
}

void
check_remote(struct check *check, const struct spec_value *value, struct spec_remote *ret_remote)
{
    struct section section = open_section(check, &section_remote, value);
    uint64_t part_bytes = bytes_of(&section, "part");
    struct spec_remote remote = {
        .endpoint = text_or_null(&section, "endpoint"),
        .region = text_or_null(&section, "region"),
        .credentials = credentials_of(&section),
        .cache = cache_of(&section),
        .connections = (uint32_t)integer_of(&section, "connections", 32),
        .retries = (uint32_t)integer_of(&section, "retries", 8),
        .cache_bytes = bytes_of(&section, "cache_bytes"),
        .fetch_once = is_text(&section, "fetch", "once"),
    };

    if (part_bytes < PART_BYTES_MIN || part_bytes > PART_BYTES_MAX)
        spec_complain(check->errors, value->line, value->column,
                      "remote: part must be from 64KiB to 1GiB");
    if (remote.endpoint != NULL && strncmp(remote.endpoint, "http://", 7) != 0 &&
        strncmp(remote.endpoint, "https://", 8) != 0)
        spec_complain(check->errors, value->line, value->column,
                      "remote: endpoint must begin with http:// or https://");
    if (remote.cache != NULL && spec_is_url(remote.cache))
        spec_complain(check->errors, value->line, value->column,
                      "remote: cache is a folder of this machine, not a URL");
    remote.part_bytes = (uint32_t)part_bytes;
    *ret_remote = remote;
}
