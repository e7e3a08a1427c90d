/* simulate_helpers.c - a job with helpers, in figures: scripts/simulate --helpers. */
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"

static void
print_text(const struct help_options *options, const struct help_result *result)
{
    printf("%u nodes of %u cores, %u helpers of %u, seed %" PRIu64 ", fault: %s\n", options->nodes,
           options->cores, options->helpers, options->threads, options->seed,
           help_fault_name(options->fault));
    printf("  %.0f rows a s; %.1f %% of %" PRIu64 " steps were waited for\n", result->rows_a_second,
           100 * (double)result->waits / (double)(result->steps + 1), result->steps);
    printf("  asked of helpers: %" PRIu64 " parts, %" PRIu64 " of them after the first second\n",
           result->asked, result->asked_later);
    printf("  made by them: %" PRIu64 ", made twice: %" PRIu64 " to compare, %" PRIu64
           " that failed, %" PRIu64 " that trainers waited for; in vain: %" PRIu64 "\n",
           result->made, result->compared, result->remade, result->overtaken, result->in_vain);
    printf("  helpers lost: %" PRIu64 ", not used any more: %" PRIu64 ", by some node\n",
           result->lost, result->barred);
    printf("  over the network: %.1f MB, under way to a node at most %.1f MB\n",
           (double)result->bytes * 1e-6, (double)result->most_under_way * 1e-6);
}

static void
print_json(const struct help_options *options, const struct help_result *result)
{
    printf("{\"nodes\": %u, \"helpers\": %u, \"seed\": %" PRIu64 ", \"fault\": \"%s\""
           ", \"rows_s\": %.0f, \"steps\": %" PRIu64 ", \"waits\": %" PRIu64 ", \"asked\": %" PRIu64
           ", \"asked_later\": %" PRIu64 ", \"made\": %" PRIu64 ", \"compared\": %" PRIu64
           ", \"remade\": %" PRIu64 ", \"overtaken\": %" PRIu64 ", \"in_vain\": %" PRIu64
           ", \"lost\": %" PRIu64 ", \"barred\": %" PRIu64 ", \"bytes\": %" PRIu64
           ", \"most_under_way\": %" PRIu64 "}\n",
           options->nodes, options->helpers, options->seed, help_fault_name(options->fault),
           result->rows_a_second, result->steps, result->waits, result->asked, result->asked_later,
           result->made, result->compared, result->remade, result->overtaken, result->in_vain,
           result->lost, result->barred, result->bytes, result->most_under_way);
}

static enum help_fault
fault_of(const char *name)
{
    enum help_fault fault = HELP_NO_FAULT;

    while (fault < HELP_FAULT_COUNT && strcmp(help_fault_name(fault), name) != 0)
        fault++;
    return fault;
}

int
main(int argc, char **argv)
{
    static const struct option list[] = { { "nodes", required_argument, NULL, 'n' },
                                          { "helpers", required_argument, NULL, 'h' },
                                          { "seed", required_argument, NULL, 's' },
                                          { "fault", required_argument, NULL, 'x' },
                                          { "step-ms", required_argument, NULL, 't' },
                                          { "gigabits", required_argument, NULL, 'g' },
                                          { "seconds", required_argument, NULL, 'l' },
                                          { "json", no_argument, NULL, 'j' },
                                          { NULL, 0, NULL, 0 } };
    struct help_options options = {
        .seed = 1,
        .nodes = 64,
        .cores = 4,
        .helpers = 16,
        .threads = 16,
        .rows = 32,
        .part_rows = 4,
        .row_ns = 1000000,
        .row_bytes = 224 * 224 * 3,
        .step_ns = 4000000,
        .lasts_ns = INT64_C(5000000000),
        .network = { .latency_ns = 50000, .jitter_ns = 20000, .bytes_per_ns = 10 },
    };
    struct help_result result;
    bool json = false;

    for (int option; (option = getopt_long(argc, argv, "", list, NULL)) != -1;) {
        if (option == 'n')
            options.nodes = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'h')
            options.helpers = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 's')
            options.seed = strtoull(optarg, NULL, 10);
        else if (option == 'x')
            options.fault = fault_of(optarg);
        else if (option == 't')
            options.step_ns = (int64_t)(strtod(optarg, NULL) * 1e6);
        else if (option == 'l')
            options.lasts_ns = (int64_t)(strtod(optarg, NULL) * 1e9);
        else if (option == 'g')
            options.network.bytes_per_ns = strtod(optarg, NULL) / 8;
        else if (option == 'j')
            json = true;
        else
            return 2;
    }
    if (options.fault == HELP_FAULT_COUNT || options.nodes < 1 || options.nodes > 4096 ||
        options.helpers > 64 || options.seed == 0 || options.step_ns < 1 ||
        !(options.network.bytes_per_ns > 0)) {
        fprintf(stderr, "simulate: 1 to 4096 nodes, 0 to 64 helpers, a seed that is not 0, a fault "
                        "that there is, a time and a bandwidth above 0\n");
        return 2;
    }
    help_play(&options, &result);
    (json ? print_json : print_text)(&options, &result);
    if (result.text[0] != '\0') {
        fprintf(stderr, "SEED=%" PRIu64 ": %s\n", options.seed, result.text);
        return 1;
    }
    return 0;
}
