/* simulate.c - a job of so many nodes, in figures: scripts/simulate. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "story.h"

static void
print_text(const struct story_options *options, const struct story_result *result)
{
    double nodes = options->nodes;

    printf("%u nodes, %u files, %u vocabularies, seed %" PRIu64 "\n", options->nodes,
           options->files, options->vocabularies, options->seed);
    printf("  agreement           %.3f s, %.1f messages and %.0f bytes a node, %" PRIu64
           " messages and %" PRIu64 " bytes at rank 0\n",
           (double)result->agreed_ns * 1e-9, (double)result->agree_messages / nodes,
           (double)result->agree_bytes / nodes, result->agree_first_messages,
           result->agree_first_bytes);
    printf("  serving, a second   %" PRIu64 " messages and %" PRIu64 " bytes a node, %" PRIu64
           " messages and %" PRIu64 " bytes come to rank 0, %.2f %% of a core there\n",
           result->messages, result->bytes, result->first_messages, result->first_bytes,
           100 * result->first_cpu);
    if (!result->failed)
        printf(
            "  dealing             %.2f messages a node and step; %.1f %% of the steps waited, an "
            "answer at most %.1f steps late\n",
            result->step_messages, 100 * result->steps_waited, result->steps_late);
    printf("  memory of rank 0    %.1f MB\n", (double)result->first_memory_bytes * 1e-6);
    if (result->failed)
        printf("  a loss              noticed after %.3f s, told to all after %.3f s\n",
               (double)result->noticed_ns * 1e-9, (double)result->told_ns * 1e-9);
}

static void
print_json(const struct story_options *options, const struct story_result *result)
{
    printf("{\"nodes\": %u, \"files\": %u, \"vocabularies\": %u, \"seed\": %" PRIu64
           ", \"fault\": \"%s\", \"agree_s\": %.6f, \"agree_messages\": %" PRIu64
           ", \"agree_bytes\": %" PRIu64 ", \"agree_rank0_messages\": %" PRIu64
           ", \"agree_rank0_bytes\": %" PRIu64 ", \"agree_most_messages\": %" PRIu64
           ", \"messages_per_s\": %" PRIu64 ", \"bytes_per_s\": %" PRIu64
           ", \"rank0_messages_per_s\": %" PRIu64 ", \"rank0_bytes_per_s\": %" PRIu64
           ", \"rank0_core\": %.6f, \"rank0_memory_bytes\": %" PRIu64
           ", \"step_messages\": %.4f, \"steps_waited\": %.4f, \"steps_late\": %.2f"
           ", \"noticed_s\": %.6f, \"told_s\": %.6f}\n",
           options->nodes, options->files, options->vocabularies, options->seed,
           fault_name(options->fault), (double)result->agreed_ns * 1e-9, result->agree_messages,
           result->agree_bytes, result->agree_first_messages, result->agree_first_bytes,
           result->agree_most_messages, result->messages, result->bytes, result->first_messages,
           result->first_bytes, result->first_cpu, result->first_memory_bytes,
           result->step_messages, result->steps_waited, result->steps_late,
           (double)result->noticed_ns * 1e-9, (double)result->told_ns * 1e-9);
}

int
main(int argc, char **argv)
{
    static const struct option list[] = {
        { "nodes", required_argument, NULL, 'n' }, { "files", required_argument, NULL, 'f' },
        { "seed", required_argument, NULL, 's' },  { "faults", no_argument, NULL, 'x' },
        { "known", no_argument, NULL, 'k' },       { "drop-remainder", no_argument, NULL, 'd' },
        { "json", no_argument, NULL, 'j' },        { NULL, 0, NULL, 0 }
    };
    const char *seed = getenv("SEED");
    struct story_options options = { .seed = seed != NULL ? strtoull(seed, NULL, 10) : 1,
                                     .nodes = 64,
                                     .files = 10000,
                                     .vocabularies = 40,
                                     .latency_ns = 50000,
                                     .jitter_ns = 20000,
                                     .bytes_per_ns = 10,
                                     .serves_ns = INT64_C(10000000000),
                                     .step_ns = 5000000,
                                     .steps = 200 };
    struct story_result result;
    bool json = false;

    for (int option; (option = getopt_long(argc, argv, "", list, NULL)) != -1;) {
        if (option == 'n')
            options.nodes = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'f')
            options.files = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 's')
            options.seed = strtoull(optarg, NULL, 10);
        else if (option == 'x')
            options.fault = FAULT_KILLED;
        else if (option == 'k')
            options.are_known = true;
        else if (option == 'd')
            options.ends_with_first = true;
        else if (option == 'j')
            json = true;
        else
            return 2;
    }
    if (options.nodes < 1 || options.nodes > 4096 || options.seed == 0) {
        fprintf(stderr, "simulate: 1 to 4096 nodes, and a seed that is not 0\n");
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
