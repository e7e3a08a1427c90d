/* make_clicklog.c - write a made-up click log as TFRecord shards, TSV and vocabularies.
 *
 *     DIR/train-00000-of-00004.tfrecord ...   tf.Example: label, I1..I13, C1..C26
 *     DIR/train.tsv                           the same rows in Criteo's own form
 *     DIR/vocab/C1.txt .. C26.txt             terms by falling frequency, one a line
 *
 * Missing integers are left out of the Example, missing terms are empty; in the TSV both are empty.
 */
#include "clicklog.h"
#include "clicklog_example.h"
#include "sample_output.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

#define SHARD_MAX 10000

struct settings {
    const char *folder;
    uint64_t row_count;
    uint32_t shard_count;
    uint32_t min_count; /* of a term in the vocabulary */
    uint64_t vocab_max; /* terms of one vocabulary */
    bool writes_records;
    bool writes_tsv;
    struct clicklog log;
};

static void
write_tsv_row(FILE *file, const struct clicklog_row *row)
{
    char line[INTEGER_COUNT * 21 + CATEGORY_COUNT * 9 + 3];
    char *at = line;

    *at++ = row->label ? '1' : '0';
    for (uint32_t i = 0; i < INTEGER_COUNT; i++) {
        *at++ = '\t';
        if (row->has_integer[i])
            at += sprintf(at, "%" PRId64, row->integer[i]);
    }
    for (uint32_t i = 0; i < CATEGORY_COUNT; i++) {
        *at++ = '\t';
        if (row->rank[i] != CLICKLOG_MISSING) {
            clicklog_put_term(at, i, row->rank[i]);
            at += 8;
        }
    }
    *at++ = '\n';
    fwrite(line, 1, (size_t)(at - line), file);
}

struct term {
    uint32_t count;
    uint32_t term;
};

static int
more_frequent_first(const void *a, const void *b)
{
    const struct term *one = a, *other = b;

    if (one->count != other->count)
        return one->count > other->count ? -1 : 1;
    return (one->term > other->term) - (one->term < other->term);
}

static void
write_vocabulary(const struct settings *settings, uint32_t category, const uint32_t *counts)
{
    uint32_t cardinality = settings->log.cardinality[category];
    struct term *terms = tnd_zalloc(cardinality, sizeof(*terms));
    struct output output;

    for (uint32_t rank = 0; rank < cardinality; rank++)
        terms[rank] = (struct term){ counts[rank], clicklog_term(category, rank) };
    qsort(terms, cardinality, sizeof(*terms), more_frequent_first);
    output_open(&output, "%s/vocab/C%u.txt", settings->folder, category + 1);
    for (uint32_t i = 0; i < cardinality && i < settings->vocab_max; i++) {
        if (terms[i].count < settings->min_count)
            break;
        fprintf(output.file, "%08" PRIx32 "\n", terms[i].term);
    }
    output_close(&output);
    free(terms);
}

static void
write_vocabularies(const struct settings *settings, uint32_t *const counts[CATEGORY_COUNT])
{
    make_folder("%s/vocab", settings->folder);
    for (uint32_t i = 0; i < CATEGORY_COUNT; i++)
        write_vocabulary(settings, i, counts[i]);
}

static void
count_terms(const struct clicklog_row *row, uint32_t *const counts[CATEGORY_COUNT])
{
    for (uint32_t i = 0; i < CATEGORY_COUNT; i++) {
        if (row->rank[i] != CLICKLOG_MISSING)
            counts[i][row->rank[i]]++;
    }
}

static void
write_shard(const struct settings *settings, uint32_t shard, FILE *tsv,
            uint32_t *const counts[CATEGORY_COUNT])
{
    uint64_t first = settings->row_count * shard / settings->shard_count;
    uint64_t end = settings->row_count * (shard + 1) / settings->shard_count;
    uint8_t example[CLICKLOG_EXAMPLE_MAX];
    struct output records;

    if (settings->writes_records) {
        output_open(&records, "%s/train-%05u-of-%05u.tfrecord", settings->folder, shard,
                    settings->shard_count);
    }
    for (uint64_t index = first; index < end; index++) {
        struct clicklog_row row = clicklog_row_at(&settings->log, index);

        count_terms(&row, counts);
        if (settings->writes_records)
            output_record(&records, example, clicklog_example(&row, example));
        if (tsv != NULL)
            write_tsv_row(tsv, &row);
    }
    if (settings->writes_records)
        output_close(&records);
}

static void
write_all(const struct settings *settings)
{
    uint32_t *counts[CATEGORY_COUNT];
    struct output tsv = { .file = NULL };

    make_folder("%s", settings->folder);
    for (uint32_t i = 0; i < CATEGORY_COUNT; i++)
        counts[i] = tnd_zalloc(settings->log.cardinality[i], sizeof(*counts[i]));
    if (settings->writes_tsv)
        output_open(&tsv, "%s/train.tsv", settings->folder);
    for (uint32_t shard = 0; shard < settings->shard_count; shard++)
        write_shard(settings, shard, tsv.file, counts);
    if (settings->writes_tsv)
        output_close(&tsv);
    write_vocabularies(settings, counts);
    for (uint32_t i = 0; i < CATEGORY_COUNT; i++)
        free(counts[i]);
}

static const char usage[] =
    "usage: make_clicklog --out DIR [--rows N] [--shards N] [--seed N] [--only records|tsv]\n"
    "                     [--min-count N] [--vocab-max N] [--cardinalities N,N,... (26)]\n"
    "\n"
    "  --rows N          rows to write (default: 200000)\n"
    "  --shards N        TFRecord files they are cut into (default: 4)\n"
    "  --seed N          other rows for another number (default: 1)\n"
    "  --only KIND       only the TFRecord files, or only the TSV; vocabularies in any case\n"
    "  --min-count N     leave rarer terms out of the vocabularies (default: 2)\n"
    "  --vocab-max N     cut each vocabulary after so many terms (default: no limit)\n"
    "  --cardinalities   terms of C1 .. C26 (default: Criteo's, none above the rows or a "
    "million)\n";

static void
parse_cardinalities(struct clicklog *log, const char *text)
{
    char *copy = tnd_strdup(text), *rest = copy, *item;
    uint32_t count = 0;

    while ((item = strsep(&rest, ",")) != NULL) {
        uint64_t value = parse_number("--cardinalities", item, 1, UINT32_MAX - 1);

        if (count < CATEGORY_COUNT)
            log->cardinality[count] = (uint32_t)value;
        count++;
    }
    if (count != CATEGORY_COUNT)
        fail("--cardinalities must have %d numbers, not %" PRIu32, CATEGORY_COUNT, count);
    free(copy);
}

static void
parse_only(struct settings *settings, const char *text)
{
    settings->writes_records = strcmp(text, "records") == 0;
    settings->writes_tsv = strcmp(text, "tsv") == 0;
    if (!settings->writes_records && !settings->writes_tsv)
        fail("--only must be records or tsv, not '%s'", text);
}

static struct settings
parse_options(int argc, char **argv)
{
    static const struct option options[] = {
        { "out", required_argument, NULL, 'o' },
        { "rows", required_argument, NULL, 'r' },
        { "shards", required_argument, NULL, 's' },
        { "seed", required_argument, NULL, 'x' },
        { "only", required_argument, NULL, 'k' },
        { "min-count", required_argument, NULL, 'm' },
        { "vocab-max", required_argument, NULL, 'v' },
        { "cardinalities", required_argument, NULL, 'c' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    struct settings settings = { .row_count = 200000,
                                 .shard_count = 4,
                                 .min_count = 2,
                                 .vocab_max = UINT64_MAX,
                                 .writes_records = true,
                                 .writes_tsv = true };
    const char *cardinalities = NULL;
    uint64_t seed = 1;
    int option;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'o':
            settings.folder = optarg;
            break;
        case 'r':
            settings.row_count = parse_number("--rows", optarg, 0, UINT32_MAX);
            break;
        case 's':
            settings.shard_count = (uint32_t)parse_number("--shards", optarg, 1, SHARD_MAX);
            break;
        case 'x':
            seed = parse_number("--seed", optarg, 0, UINT64_MAX);
            break;
        case 'k':
            parse_only(&settings, optarg);
            break;
        case 'm':
            settings.min_count = (uint32_t)parse_number("--min-count", optarg, 0, UINT32_MAX);
            break;
        case 'v':
            settings.vocab_max = parse_number("--vocab-max", optarg, 0, UINT64_MAX);
            break;
        case 'c':
            cardinalities = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    if (settings.folder == NULL || optind != argc) {
        fputs(usage, stderr);
        exit(2);
    }
    settings.log = clicklog_like_criteo(seed, settings.row_count);
    if (cardinalities != NULL)
        parse_cardinalities(&settings.log, cardinalities);
    return settings;
}

int
main(int argc, char **argv)
{
    struct settings settings = parse_options(argc, argv);

    write_all(&settings);
    return 0;
}
