/* command_vocab.c - `tundish vocab`: build a vocabulary's table ahead of time, or ask it something.
 */
#include "commands/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "content/vocabulary/vocab.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/plural.h"

struct inspection {
    const char *cache;
    enum vocab_keys keys;
    bool json;
};

static void
say_table(const struct inspection *inspection, const char *path, const struct vocab *vocab,
          int64_t took_ns)
{
    if (inspection->json) {
        struct json json;

        json_start(&json, stdout);
        json_object(&json);
        json_key_text(&json, "vocabulary", path);
        json_key_int(&json, "terms", (int64_t)vocab_count(vocab));
        json_key(&json, "fingerprint");
        json_uint(&json, vocab_fingerprint(vocab));
        json_key(&json, "seconds");
        json_float(&json, (double)took_ns * 1e-9, 9);
        json_object_end(&json);
        putchar('\n');
        return;
    }
    printf("%s: %" PRIu64 " term%s, fingerprint %016" PRIx64 ", %.3f s\n", path, vocab_count(vocab),
           TND_PLURAL(vocab_count(vocab)), vocab_fingerprint(vocab), (double)took_ns * 1e-9);
}

static tundish_status
look_up(const struct vocab *vocab, const char *term)
{
    struct byte_view view = { (const uint8_t *)term, strlen(term) };
    int64_t line;

    if (vocab_keys(vocab) == VOCAB_INTEGERS) {
        char *end;
        long long number = strtoll(term, &end, 10);
        int64_t key = number;

        /* The whole argument must be a number. */
        if (*term == '\0' || *end != '\0')
            return tnd_fail(TUNDISH_E_ARGUMENT, "'%s' is not an integer", term);
        vocab_lookup_integers(vocab, &key, 1, &line);
    } else {
        vocab_lookup(vocab, &view, 1, &line);
    }
    /* Tab-separated for scripts: the term as it was given, then the result. */
    if (line < 0)
        printf("%s\tabsent\n", term);
    else
        printf("%s\tline %" PRId64 "\n", term, line);
    return TUNDISH_OK;
}

static int
inspect(const struct inspection *inspection, const char *path, char **terms, int term_count)
{
    struct vocab *vocab = NULL;
    int64_t began_ns = tnd_clock_ns();
    tundish_status status;

    /* Checked here for its exit status: a missing file is a system error. */
    if (access(path, R_OK) != 0) {
        fprintf(stderr, "tundish vocab: %s: %s\n", path, strerror(errno));
        return EXIT_SYSTEM;
    }
    status = vocab_open_file(inspection->cache, path, inspection->keys, &vocab);

    if (status == TUNDISH_OK && term_count == 0)
        say_table(inspection, path, vocab, tnd_clock_ns() - began_ns);
    for (int i = 0; status == TUNDISH_OK && i < term_count; i++)
        status = look_up(vocab, terms[i]);
    vocab_close(vocab);
    if (status != TUNDISH_OK) {
        fprintf(stderr, "tundish vocab: %s\n", tnd_error_text());
        return EXIT_REFUSED;
    }
    return EXIT_OK;
}

static int
command_vocab_run(int argc, char **argv)
{
    struct inspection inspection = { 0 };
    bool integers = false;
    const struct option_row rows[] = {
        { "cache", .text = &inspection.cache },
        { "integers", .flag = &integers },
        { "json", .flag = &inspection.json },
        { 0 },
    };
    int result = options_read(&command_vocab, argc, argv, rows);

    if (result != EXIT_OK)
        return result;
    if (optind >= argc)
        return command_misused(&command_vocab, "expected a vocabulary file");
    inspection.keys = integers ? VOCAB_INTEGERS : VOCAB_STRINGS;
    return inspect(&inspection, argv[optind], argv + optind + 1, argc - optind - 1);
}

const struct command command_vocab = {
    .name = "vocab",
    .arguments = "FILE [TERM ...]",
    .help = "Build a vocabulary's lookup table in the cache folder, or look up terms in it.",
    .details = "  --integers          the terms are integers\n"
               "  --cache DIR         folder for tables\n"
               "  --json              print one JSON object\n",
    .run = command_vocab_run,
};
