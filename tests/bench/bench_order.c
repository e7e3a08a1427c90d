/* bench_order.c - references a second that one thread takes through the order's stages.
 *
 *     bench_order [CELL]      {"cell": "shuffle", "references_per_s": 7.1e7} for each cell, then
 *                             {"cell": "seek_shuffle", "at": 0.5, "ms": 2.1} for those that seek
 *     bench_order files DIR   the same of the click log's order, from DIR/train.tsv and its index
 *
 * Seconds are the thread's own processor time. The source only counts, so that what is measured is
 * the stage after it. A cell's references are those that come in: the rows of batches, what a
 * shard drops, both sides of a zip. Seeking is from making an iterator to the first element there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "batch/evaluate.h"
#include "core/memory.h"
#include "core/must.h"
#include "order/order.h"
#include "plan/plan.h"
#include "source/files/files.h"

enum { CHUNK = 1024, CHUNK_OF_BATCHES = 16, RUNS = 5 };

struct cell {
    const char *name, *stages;
    uint64_t elements; /* to take in a run */
    uint64_t references_each;
};

static const struct cell cells[] = {
    { "source", "{range: 1000000000000}", 50000000, 1 },
    { "shuffle", "{range: 1000000000000}, {shuffle: {buffer_size: 100000, seed: 1}}", 20000000, 1 },
    { "shuffle_1m", "{range: 1000000000000}, {shuffle: {buffer_size: 1000000, seed: 1}}", 20000000,
      1 },
    { "shuffle_repeat",
      "{range: 70000}, {shuffle: {buffer_size: 100000, seed: 1}}, {repeat: 1000000000}", 20000000,
      1 },
    { "batch", "{range: 1000000000000}, {batch: 1024}", 40000, 1024 },
    { "unbatch", "{range: 1000000000000}, {batch: 1024}, {unbatch: {}}", 40000000, 1 },
    { "shard", "{range: 1000000000000}, {shard: {num_shards: 8, index: 3}}", 5000000, 8 },
    { "interleave_16",
      "{range: 16}, {interleave: {dataset: [{range: 1000000000000}], cycle_length: 16}}", 20000000,
      1 },
    { "zip",
      "{zip: [[{range: {stop: 1000000000000, name: a}}], [{range: {stop: 1000000000000, name: "
      "b}}]]}",
      20000000, 2 },
    { "permute", "{range: 1000000000}, {permute: 1}", 20000000, 1 },
    { "permute_1k", "{range: 1000}, {permute: 1}, {repeat: 1000000000}", 20000000, 1 },
    { "deal_split", "{range: 1000000000000}, {batch: 1024}", 160000, 256 },
    { "deep",
      "{range: 16}, {interleave: {dataset: [{range: 1000000000000}], cycle_length: 16}}, {shard: "
      "{num_shards: 2, index: 1}}, {shuffle: {buffer_size: 100000, seed: 1}}, {batch: 1024}",
      10000, 2048 },
};

static const struct cell cell_of_files = {
    "files", "{text_line: train.tsv}, {repeat: 1000000000}, {batch: 8192}", 600, 8192
};

/* Of a million rows, or ten times as many. */
static const struct cell seek_cells[] = {
    { "seek_shuffle", "{range: 1000000}, {shuffle: {buffer_size: 100000, seed: 1}}", 1000000, 1 },
    { "seek_epochs", "{range: 1000000}, {shuffle: {buffer_size: 100000, seed: 1}}, {repeat: 10}",
      10000000, 1 },
    { "seek_interleave",
      "{range: 16}, {interleave: {dataset: [{range: 62500}], cycle_length: 16}}, {shuffle: "
      "{buffer_size: 100000, seed: 1}}",
      1000000, 1 },
    { "seek_interleave_epochs",
      "{range: 16}, {shuffle: 16}, {interleave: {dataset: [{range: 62500}], cycle_length: 16}}, "
      "{shuffle: {buffer_size: 100000, seed: 1}}, {repeat: 10}",
      10000000, 1 },
    { "seek_permute", "{range: 1000000}, {permute: 1}", 1000000, 1 },
};

static double
now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void
take(struct order_iterator *iterator, uint64_t elements)
{
    const struct plan_node *node = iterator->node;
    uint64_t *words = tnd_alloc(CHUNK * node->width * sizeof *words);
    /* A server has few batches at a time, and their memory is used again. */
    uint64_t chunk = node->run_words != 0 ? CHUNK_OF_BATCHES : CHUNK;

    while (elements > 0) {
        size_t count;
        size_t wanted = (size_t)(elements < chunk ? elements : chunk);

        must(order_next(iterator, words, wanted, &count) == ORDER_OK);
        run_words_release(words, count, node->width, node->run_words);
        elements -= count;
    }
    free(words);
}

struct life {
    struct source_files *files;
    struct evaluation evaluation;
    struct order_services services;
    struct order_instance *instance;
    struct order_iterator *iterator;
};

static void
life_open(struct life *life, const struct plan *plan)
{
    const struct source_files_options options = { .root = plan->file->root };

    *life = (struct life){ .evaluation = { .scratch = scratch_open() } };
    must(source_files_open(&options, &life->files) == TUNDISH_OK);
    life->services = (struct order_services){
        .files = life->files,
        .worker_count = 1,
        .replicas_in_sync = 1,
    };
    evaluate_serve_order(&life->evaluation, &life->services);
    life->instance = order_instance_open(plan->graph, NULL, &life->services);
    must(order_open(plan->graph->root, life->instance, &life->iterator) == TUNDISH_OK);
}

static void
life_close(struct life *life)
{
    order_close(life->iterator);
    order_instance_close(life->instance);
    scratch_close(life->evaluation.scratch);
    source_files_close(life->files);
}

/* The best of some runs: this is about the code, not about its neighbours. */
static void
print_rate(const struct cell *cell, const struct plan *plan)
{
    struct life life;
    double best = 0;

    life_open(&life, plan);
    take(life.iterator, cell->elements / 20 + 1); /* buffers fill */
    for (int run = 0; run < RUNS; run++) {
        double started_s = now_s();
        double rate;

        take(life.iterator, cell->elements);
        rate = (double)(cell->elements * cell->references_each) / (now_s() - started_s);
        best = rate > best ? rate : best;
    }
    life_close(&life);
    printf("{\"cell\": \"%s\", \"references_per_s\": %.4g}\n", cell->name, best);
}

static void
print_seek(const struct cell *cell, const struct plan *plan)
{
    for (int tenths = 0; tenths <= 9; tenths += tenths == 0 ? 5 : 4) {
        uint64_t wanted = cell->elements / 10 * (uint64_t)tenths;
        double best_s = 1e9;

        for (int run = 0; run < RUNS; run++) {
            struct life life;
            uint64_t passed = 0;
            double started_s = now_s(), took_s;

            life_open(&life, plan);
            must(order_pass_over(life.iterator, wanted, &passed) == ORDER_OK && passed == wanted);
            take(life.iterator, 1);
            life_close(&life);
            took_s = now_s() - started_s;
            best_s = took_s < best_s ? took_s : best_s;
        }
        printf("{\"cell\": \"%s\", \"at\": %.1f, \"ms\": %.2f}\n", cell->name, tenths / 10.0,
               1e3 * best_s);
    }
}

static void
measure(const struct cell *cell, const char *root,
        void (*print)(const struct cell *, const struct plan *))
{
    bool dealt = strcmp(cell->name, "deal_split") == 0;
    char *text = tnd_sprintf("streams: {bench: {dataset: [%s], distribute: {replicas: %d, "
                             "auto_shard: \"OFF\", from_function: %s}}}",
                             cell->stages, dealt ? 4 : 1, dealt ? "false" : "true");
    struct spec_errors errors = { 0 };
    struct plan_options options = { .worker_count = 1, .root_seed = 1 };
    struct spec_file *file;
    struct plan *plan;

    if (spec_open_text(text, strlen(text), cell->name, root, &errors, &file) != TUNDISH_OK ||
        plan_open(file, &file->streams[0], &options, &errors, &plan) != TUNDISH_OK) {
        fprintf(stderr, "%s", spec_errors_text(&errors));
        exit(1);
    }
    print(cell, plan);
    fflush(stdout);
    plan_close(plan);
    spec_close(file);
    free(text);
}

int
main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], cell_of_files.name) == 0)
        measure(&cell_of_files, argv[2], print_rate);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        if (argc < 2 || strcmp(argv[1], cells[i].name) == 0)
            measure(&cells[i], "/", print_rate);
    for (size_t i = 0; i < sizeof seek_cells / sizeof *seek_cells; i++)
        if (argc < 2 || strcmp(argv[1], seek_cells[i].name) == 0)
            measure(&seek_cells[i], "/", print_seek);
    return 0;
}
