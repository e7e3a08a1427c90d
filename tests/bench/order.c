/* order.c - references a second that one thread takes through the order's stages.
 *
 *     bench_order [CELL]      {"cell": "shuffle", "references_per_s": 7.1e7} for each cell
 *
 * Seconds are the thread's own processor time. The source only counts, so that what is measured is
 * the stage behind it. A cell's references are those that come in: the rows of batches, what a
 * shard drops, both sides of a zip.
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

enum { CHUNK = 1024, RUNS = 5 };

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

    while (elements > 0) {
        size_t count;
        size_t wanted = elements < CHUNK ? (size_t)elements : CHUNK;

        must(order_next(iterator, words, wanted, &count) == ORDER_OK);
        run_words_release(words, count, node->width, node->run_words);
        elements -= count;
    }
    free(words);
}

/* The best of some runs: this is about the code, not about its neighbours. */
static double
best_rate(const struct cell *cell, const struct plan *plan)
{
    struct evaluation evaluation = { .scratch = scratch_open() };
    struct order_services services = {
        .worker_count = 1,
        .replicas_in_sync = 1,
        .evaluate = evaluate_for_order,
        .evaluator = &evaluation,
    };
    struct order_instance *instance = order_instance_open(plan->graph, NULL, &services);
    struct order_iterator *iterator;
    double best = 0;

    must(order_open(plan->graph->root, instance, &iterator) == TUNDISH_OK);
    take(iterator, cell->elements / 20 + 1); /* buffers fill */
    for (int run = 0; run < RUNS; run++) {
        double started_s = now_s();
        double rate;

        take(iterator, cell->elements);
        rate = (double)(cell->elements * cell->references_each) / (now_s() - started_s);
        best = rate > best ? rate : best;
    }
    order_close(iterator);
    order_instance_close(instance);
    scratch_close(evaluation.scratch);
    return best;
}

static void
measure(const struct cell *cell)
{
    bool dealt = strcmp(cell->name, "deal_split") == 0;
    char *text = tnd_sprintf("streams: {bench: {dataset: [%s], distribute: {replicas: %d, "
                             "auto_shard: \"OFF\", from_function: %s}}}",
                             cell->stages, dealt ? 4 : 1, dealt ? "false" : "true");
    struct spec_errors errors = { 0 };
    struct plan_options options = { .worker_count = 1, .root_seed = 1 };
    struct spec_file *file;
    struct plan *plan;

    if (spec_open_text(text, strlen(text), cell->name, "/", &errors, &file) != TUNDISH_OK ||
        plan_open(file, &file->streams[0], &options, &errors, &plan) != TUNDISH_OK) {
        fprintf(stderr, "%s", spec_errors_text(&errors));
        exit(1);
    }
    printf("{\"cell\": \"%s\", \"references_per_s\": %.4g}\n", cell->name, best_rate(cell, plan));
    fflush(stdout);
    plan_close(plan);
    spec_close(file);
    free(text);
}

int
main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        if (argc < 2 || strcmp(argv[1], cells[i].name) == 0)
            measure(&cells[i]);
    return 0;
}
