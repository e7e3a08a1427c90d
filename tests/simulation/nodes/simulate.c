/* simulate.c - a job of so many nodes, in figures: scripts/simulate. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fibers.h"
#include "story.h"

static double
core_of(const struct phase_cost *cost)
{
    return cost->seconds > 0 ? cost->first_cpu_seconds / cost->seconds : 0;
}

static void
print_text(const struct story_options *options, const struct story_result *result)
{
    printf("%u nodes, %u files, %u vocabularies, seed %" PRIu64 ", fault: %s\n", options->nodes,
           options->files, options->vocabularies, options->seed, fault_name(options->fault));
    printf("  %-9s %9s | %10s %12s | %12s %14s %8s\n", "", "s", "messages", "bytes a node",
           "messages a s", "bytes at rank 0", "a core");
    for (int i = 0; i < PHASE_COUNT; i++) {
        const struct phase_cost *cost = &result->costs[i];

        if (cost->seconds > 0)
            printf("  %-9s %9.3f | %10.1f %12.0f | %12.0f %14.0f %6.2f %%\n",
                   phase_name((enum phase)i), cost->seconds, cost->messages, cost->bytes,
                   cost->first_messages / cost->seconds, cost->first_bytes, 100 * core_of(cost));
    }
    if (!result->failed)
        printf(
            "  dealing: %.2f messages a node and step, %.2f of them of steps; %.1f %% of the steps "
            "waited, an answer at most %.1f steps late\n",
            result->step_messages, result->step_words, 100 * result->steps_waited,
            result->steps_late);
    printf("  memory of rank 0: %.1f MB\n", (double)result->first_memory_bytes * 1e-6);
    if (result->failed)
        printf("  a loss: noticed after %.3f s, told to all after %.3f s\n",
               (double)result->noticed_ns * 1e-9, (double)result->told_ns * 1e-9);
}

static void
print_json(const struct story_options *options, const struct story_result *result)
{
    printf("{\"nodes\": %u, \"files\": %u, \"vocabularies\": %u, \"seed\": %" PRIu64
           ", \"fault\": \"%s\"",
           options->nodes, options->files, options->vocabularies, options->seed,
           fault_name(options->fault));
    for (int i = 0; i < PHASE_COUNT; i++) {
        const struct phase_cost *cost = &result->costs[i];

        printf(", \"%s\": {\"s\": %.6f, \"messages\": %.3f, \"bytes\": %.0f"
               ", \"rank0_messages\": %.0f, \"rank0_bytes\": %.0f, \"rank0_core\": %.6f"
               ", \"rank0_message_us\": %.3f}",
               phase_name((enum phase)i), cost->seconds, cost->messages, cost->bytes,
               cost->first_messages, cost->first_bytes, core_of(cost),
               cost->first_messages > 0 ? cost->first_cpu_seconds * 1e6 / cost->first_messages : 0);
    }
    printf(", \"rank0_memory_bytes\": %" PRIu64
           ", \"step_messages\": %.4f, \"step_words\": %.4f, \"steps_waited\": %.4f"
           ", \"steps_late\": %.2f, \"noticed_s\": %.6f, \"told_s\": %.6f}\n",
           result->first_memory_bytes, result->step_messages, result->step_words,
           result->steps_waited, result->steps_late, (double)result->noticed_ns * 1e-9,
           (double)result->told_ns * 1e-9);
}

static enum phase
phase_of(const char *name)
{
    enum phase phase = PHASE_ROWS;

    while (phase < PHASE_COUNT && strcmp(phase_name(phase), name) != 0)
        phase++;
    return phase;
}

static enum fault
fault_of(const char *name)
{
    enum fault fault = FAULT_NONE;

    while (fault < FAULT_COUNT && strcmp(fault_name(fault), name) != 0)
        fault++;
    return fault;
}

int
main(int argc, char **argv)
{
    static const struct option list[] = {
        { "nodes", required_argument, NULL, 'n' }, { "files", required_argument, NULL, 'f' },
        { "seed", required_argument, NULL, 's' },  { "fault", required_argument, NULL, 'x' },
        { "known", no_argument, NULL, 'k' },       { "drop-remainder", no_argument, NULL, 'd' },
        { "json", no_argument, NULL, 'j' },        { "cut", no_argument, NULL, 'c' },
        { "phase", required_argument, NULL, 'p' }, { NULL, 0, NULL, 0 }
    };
    const char *seed = getenv("SEED");
    struct story_options options = { .seed = seed != NULL ? strtoull(seed, NULL, 10) : 1,
                                     .nodes = 64,
                                     .files = 10000,
                                     .vocabularies = 40,
                                     .shared_files = 1000,
                                     .latency_ns = 50000,
                                     .jitter_ns = 20000,
                                     .bytes_per_ns = 10,
                                     .serves_ns = INT64_C(10000000000),
                                     .step_ns = 5000000,
                                     .steps = 200,
                                     .fault_phase = PHASE_DEAL };
    struct story_result result;
    bool json = false;

    fibers_meter();
    for (int option; (option = getopt_long(argc, argv, "", list, NULL)) != -1;) {
        if (option == 'n')
            options.nodes = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'f')
            options.files = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 's')
            options.seed = strtoull(optarg, NULL, 10);
        else if (option == 'x')
            options.fault = fault_of(optarg);
        else if (option == 'k')
            options.are_known = true;
        else if (option == 'd')
            options.ends_with_first = true;
        else if (option == 'p')
            options.fault_phase = phase_of(optarg);
        else if (option == 'c')
            options.is_cut = true;
        else if (option == 'j')
            json = true;
        else
            return 2;
    }
    if (options.fault == FAULT_COUNT || options.fault_phase == PHASE_COUNT || options.nodes < 1 ||
        options.nodes > 4096 || options.seed == 0) {
        fprintf(stderr, "simulate: 1 to 4096 nodes, a seed that is not 0, a fault that there is\n");
        return 2;
    }
    story_play(&options, &result);
    (json ? print_json : print_text)(&options, &result);
    if (result.text[0] != '\0') {
        fprintf(stderr, "SEED=%" PRIu64 ": %s\n", options.seed, result.text);
        return 1;
    }
    return 0;
}
