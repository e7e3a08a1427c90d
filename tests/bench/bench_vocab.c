/* bench_vocab.c - what vocabulary tables cost: vocab FOLDER [LARGEST_TABLE [SPELLING]]
 *
 * Makes up the vocabularies of a click log, 26 tables of 10 up to LARGEST_TABLE (1,000,000) terms,
 * and prints one JSON object a line: building, opening, looking up from rows of text in blocks as
 * the content stages do, and the memory of 1 and 4 processes with all tables in use. FOLDER is made
 * anew and not removed.
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../data/draw.h"
#include "content/vocabulary/vocab.h"
#include "content/vocabulary/vocab_lookup.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/hash_farm.h"
#include "core/hash_sip.h"
#include "core/memory.h"
#include "core/status.h"

#define TABLES 26
#define ROWS (1 << 16)
#define BLOCK_ROWS 256
#define BLOCKS (ROWS / BLOCK_ROWS)
#define PASSES 15
#define SEED 20240607

/* How terms are spelled. */
struct spelling {
    const char *name;
    const char *format;
    uint64_t term_bytes;
};

static const struct spelling spellings[] = {
    { "hex8", "%08" PRIx32, 8 },
    { "word6", "w%05" PRIx32, 0 },
    { "hex12", "user%08" PRIx32, 12 },
    { "url40", "https://example.org/articles/%08" PRIx32 ".html", 42 },
};

/* Rows of text with all their terms found, and one vocabulary a column. */
struct bench {
    const struct spelling *spelling;
    char cache[512];
    char paths[TABLES][512];
    uint32_t counts[TABLES];
    struct vocab *vocabs[TABLES];
    uint8_t *text;
    struct byte_view *terms; /* [ROWS / BLOCK_ROWS][TABLES][BLOCK_ROWS] */
    int64_t *integers;
};

static void
must_be_ok(tundish_status status)
{
    if (status == TUNDISH_OK)
        return;
    fprintf(stderr, "vocab: %s\n", tnd_error_text());
    exit(1);
}

/* A bijection of 32 bits, so that ranks give different terms in no order. */
static uint32_t
scatter(uint32_t rank, uint32_t table)
{
    uint32_t x = rank * 2654435761U + (table + 1) * 0x9E3779B1U;

    x = (x ^ (x >> 16)) * 0x85EBCA6BU;
    x = (x ^ (x >> 13)) * 0xC2B2AE35U;
    return x ^ (x >> 16);
}

static int
spell(const struct bench *bench, char *to, uint32_t rank, uint32_t table)
{
    uint32_t value = bench->spelling->term_bytes == 0 ? rank : scatter(rank, table);

    return sprintf(to, bench->spelling->format, value); /* NOLINT: the formats are above */
}

static void
write_texts(struct bench *bench, const char *folder, uint32_t largest)
{
    char term[64];

    for (uint32_t t = 0; t < TABLES; t++) {
        FILE *file;

        snprintf(bench->paths[t], sizeof bench->paths[t], "%s/%s-%u.txt", folder,
                 bench->spelling->name, t);
        bench->counts[t] = (uint32_t)(10 * pow(largest / 10.0, (t * 7 % TABLES) / 25.0));
        file = fopen(bench->paths[t], "w");
        if (file == NULL)
            exit(1);
        for (uint32_t i = 0; i < bench->counts[t]; i++) {
            spell(bench, term, i, t);
            fprintf(file, "%s\n", term);
        }
        fclose(file);
    }
}

/* 3% of the terms are missing, 2% are not in their vocabulary. */
static void
write_rows(struct bench *bench)
{
    uint8_t *at;

    bench->text = tnd_alloc((size_t)ROWS * TABLES * 48);
    bench->terms = tnd_zalloc((size_t)ROWS * TABLES, sizeof *bench->terms);
    bench->integers = tnd_zalloc((size_t)ROWS * TABLES, sizeof *bench->integers);
    at = bench->text;
    for (size_t row = 0; row < ROWS; row++)
        for (uint32_t t = 0; t < TABLES; t++) {
            size_t place = (row / BLOCK_ROWS * TABLES + t) * BLOCK_ROWS + row % BLOCK_ROWS;
            double uniform = draw_uniform(SEED, row, t * 2);
            uint32_t rank = draw_zipf(uniform, bench->counts[t]);
            uint64_t chance = draw_bits(SEED, row, t * 2 + 1) % 100;
            int bytes;

            if (chance < 2)
                rank += bench->counts[t];
            bytes = chance >= 97 ? 0 : spell(bench, (char *)at, rank, t);
            bench->terms[place] = (struct byte_view){ at, (uint64_t)bytes };
            bench->integers[place] = (int64_t)scatter(rank, t) * 7919;
            at += bytes;
            *at++ = '\t';
        }
}

static double
seconds_since(int64_t start_ns)
{
    return (double)(tnd_clock_ns() - start_ns) / 1e9;
}

static void
open_all(struct bench *bench, const char *what)
{
    int64_t start_ns = tnd_clock_ns();
    uint64_t count = 0;

    for (uint32_t t = 0; t < TABLES; t++) {
        must_be_ok(
            vocab_open_file(bench->cache, bench->paths[t], VOCAB_STRINGS, &bench->vocabs[t]));
        count += vocab_count(bench->vocabs[t]);
    }
    printf("{\"bench\": \"vocab_%s\", \"terms\": \"%s\", \"tables\": %d, \"term_count\": %" PRIu64
           ", \"seconds\": %.6f}\n",
           what, bench->spelling->name, TABLES, count, seconds_since(start_ns));
}

static void
close_all(struct bench *bench)
{
    for (uint32_t t = 0; t < TABLES; t++)
        vocab_close(bench->vocabs[t]);
}

/* What is done with a block of a column; the ids are what a slot would hold. */
typedef void work(const struct bench *bench, size_t place, uint32_t table, int64_t *ids);

static void
do_lookup(const struct bench *bench, size_t place, uint32_t table, int64_t *ids)
{
    vocab_lookup(bench->vocabs[table], bench->terms + place, BLOCK_ROWS, ids);
}

static void
do_map(const struct bench *bench, size_t place, uint32_t table, int64_t *ids)
{
    const struct vocab_rule rule = { .offset = 1, .oov_count = 1 };
    const struct vocab_output output = { ids, TUNDISH_INT64, 1, NULL };

    vocab_map(bench->vocabs[table], &rule, bench->terms + place, BLOCK_ROWS, &output);
}

static void
do_map_mask_4_oov(const struct bench *bench, size_t place, uint32_t table, int64_t *ids)
{
    const struct vocab_rule rule = {
        .offset = 5, .oov_first = 1, .oov_count = 4, .has_mask = true
    };
    const struct vocab_output output = { ids, TUNDISH_INT64, 1, NULL };

    vocab_map(bench->vocabs[table], &rule, bench->terms + place, BLOCK_ROWS, &output);
}

static void
do_integers(const struct bench *bench, size_t place, uint32_t table, int64_t *ids)
{
    vocab_lookup_integers(bench->vocabs[table], bench->integers + place, BLOCK_ROWS, ids);
}

/* Hashing alone, for comparison: what a table with that hash could not be faster than. */
static void
do_farm(const struct bench *bench, size_t place, uint32_t table, int64_t *ids)
{
    (void)table;
    for (size_t i = 0; i < BLOCK_ROWS; i++)
        ids[i] = (int64_t)tnd_hash_farm(bench->terms[place + i].data, bench->terms[place + i].size);
}

static void
do_sip(const struct bench *bench, size_t place, uint32_t table, int64_t *ids)
{
    (void)table;
    for (size_t i = 0; i < BLOCK_ROWS; i++)
        ids[i] = (int64_t)tnd_hash_sip((const uint64_t[2]){ 1, 2 }, bench->terms[place + i].data,
                                       bench->terms[place + i].size);
}

static int64_t
touch(const struct bench *bench, size_t block)
{
    const struct byte_view *terms = bench->terms + block * TABLES * BLOCK_ROWS;
    const int64_t *integers = bench->integers + block * TABLES * BLOCK_ROWS;
    int64_t sum = 0;

    for (size_t i = 0; i < TABLES * BLOCK_ROWS; i++)
        sum += (terms[i].size > 0 ? terms[i].data[0] : 0) + integers[i];
    return sum;
}

/* Each block's views and text are brought near before the clock starts, as a parser that has just
 * found the terms would have done. The fastest pass of each block counts, so that other work on
 * the machine disturbs little. */
static void
measure(const struct bench *bench, const char *what, work *do_block)
{
    static int64_t ids[TABLES][BLOCK_ROWS];
    static int64_t best_ns[BLOCKS];
    int64_t sum_ns = 0;
    int64_t digest = 0;

    for (int pass = 0; pass < PASSES; pass++)
        for (size_t block = 0; block < BLOCKS; block++) {
            int64_t start_ns, spent_ns;

            digest += touch(bench, block);
            start_ns = tnd_clock_ns();
            for (uint32_t t = 0; t < TABLES; t++)
                do_block(bench, (block * TABLES + t) * BLOCK_ROWS, t, ids[t]);
            spent_ns = tnd_clock_ns() - start_ns;
            if (pass == 0 || spent_ns < best_ns[block])
                best_ns[block] = spent_ns;
            for (uint32_t t = 0; t < TABLES; t++)
                digest = (int64_t)((uint64_t)digest * 31 + (uint64_t)ids[t][block % BLOCK_ROWS]);
        }
    for (size_t block = 0; block < BLOCKS; block++)
        sum_ns += best_ns[block];
    printf("{\"bench\": \"%s\", \"terms\": \"%s\", \"lookups\": %zu, \"seconds\": %.6f, "
           "\"ns_each\": %.2f, \"digest\": %" PRId64 "}\n",
           what, bench->spelling->name, (size_t)ROWS * TABLES, (double)sum_ns / 1e9,
           (double)sum_ns / ROWS / TABLES, digest);
    fflush(stdout);
}

/* Kilobytes that mapped tables take of this process's share of memory. */
static uint64_t
tables_pss_kib(void)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[1024];
    bool is_table = false;
    uint64_t kib = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "Pss:", 4) == 0)
            kib += is_table ? strtoull(line + 4, NULL, 10) : 0;
        else if (strchr(line, '-') != NULL && strchr(line, ':') != NULL)
            is_table = strstr(line, "/vocab-text-") != NULL;
    }
    if (file != NULL)
        fclose(file);
    return kib;
}

/* What the processes of measure_memory share. */
struct meeting {
    pthread_barrier_t all_in_use, all_measured;
    uint64_t pss_kib[16];
};

/* One of the processes that use all tables: its share of their memory. */
static void
use_tables(struct bench *bench, struct meeting *meeting, int process)
{
    int64_t ids[BLOCK_ROWS];

    for (uint32_t t = 0; t < TABLES; t++)
        must_be_ok(
            vocab_open_file(bench->cache, bench->paths[t], VOCAB_STRINGS, &bench->vocabs[t]));
    for (size_t block = 0; block < BLOCKS; block++)
        for (uint32_t t = 0; t < TABLES; t++)
            do_lookup(bench, (block * TABLES + t) * BLOCK_ROWS, t, ids);
    pthread_barrier_wait(&meeting->all_in_use);
    meeting->pss_kib[process] = tables_pss_kib();
    pthread_barrier_wait(&meeting->all_measured);
    _exit(0);
}

static void
measure_memory(struct bench *bench, int processes)
{
    struct meeting *meeting =
        mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t shared;
    uint64_t pss_kib = 0;

    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&meeting->all_in_use, &shared, (unsigned)processes);
    pthread_barrier_init(&meeting->all_measured, &shared, (unsigned)processes);
    fflush(stdout);
    for (int p = 0; p < processes; p++)
        if (fork() == 0)
            use_tables(bench, meeting, p);
    while (wait(NULL) > 0)
        ;
    for (int p = 0; p < processes; p++)
        pss_kib += meeting->pss_kib[p];
    printf("{\"bench\": \"vocab_memory\", \"terms\": \"%s\", \"processes\": %d, "
           "\"pss_mib_of_all\": %.1f}\n",
           bench->spelling->name, processes, (double)pss_kib / 1024);
    munmap(meeting, sizeof *meeting);
}

static void
open_integers(struct bench *bench)
{
    for (uint32_t t = 0; t < TABLES; t++) {
        int64_t *terms = tnd_zalloc(bench->counts[t], sizeof *terms);

        for (uint32_t i = 0; i < bench->counts[t]; i++)
            terms[i] = (int64_t)scatter(i, t) * 7919;
        must_be_ok(vocab_open_integers(bench->cache, "integers", terms, bench->counts[t],
                                       &bench->vocabs[t]));
        free(terms);
    }
}

static const struct {
    enum tnd_cpu_level level;
    const char *name;
} levels[] = {
    { TND_CPU_PORTABLE, "vocab_lookup_portable" },
    { TND_CPU_AVX2, "vocab_lookup_avx2" },
    { TND_CPU_AVX512, "vocab_lookup_avx512" },
};

static void
run(const char *folder, const struct spelling *spelling, uint32_t largest)
{
    struct bench bench = { .spelling = spelling };

    snprintf(bench.cache, sizeof bench.cache, "%s/cache-%s", folder, spelling->name);
    write_texts(&bench, folder, largest);
    write_rows(&bench);
    open_all(&bench, "build");
    close_all(&bench);
    open_all(&bench, "open_by_content"); /* the texts are too young to be known by their times */
    close_all(&bench);
    sleep(2);
    open_all(&bench, "open_by_content");
    close_all(&bench);
    open_all(&bench, "open_by_times");
    measure(&bench, "vocab_lookup", do_lookup);
    measure(&bench, "vocab_map", do_map);
    measure(&bench, "vocab_map_mask_4_oov", do_map_mask_4_oov);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (spelling == spellings && tnd_cpu_use(levels[i].level))
            measure(&bench, levels[i].name, do_lookup);
    measure(&bench, "hash_farm", do_farm);
    measure(&bench, "hash_sip", do_sip);
    close_all(&bench);
    measure_memory(&bench, 1);
    measure_memory(&bench, 4);
    if (spelling == spellings) {
        open_integers(&bench);
        measure(&bench, "vocab_lookup_integers", do_integers);
        close_all(&bench);
    }
    free(bench.text);
    free(bench.terms);
    free(bench.integers);
}

int
main(int argc, char **argv)
{
    const uint32_t largest = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1000000;

    if (argc < 2 || largest < 10 || (mkdir(argv[1], 0700) != 0)) {
        fprintf(stderr, "usage: vocab NEW_FOLDER [LARGEST_TABLE [SPELLING]]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (argc < 4 || strcmp(argv[3], spellings[i].name) == 0)
            run(argv[1], &spellings[i], largest);
    return 0;
}
