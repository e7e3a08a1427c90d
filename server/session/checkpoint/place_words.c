/* place_words.c - a line for each parameter of each stage: stage, parameter, value, line of the
 * file, with tabs between. */
#include "session/checkpoint/place_words.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cache_folder.h"
#include "core/memory.h"
#include "core/read_write.h"
#include "session/checkpoint/place_contents.h"

enum { WORDS_BYTES_MAX = 1 << 20, SHOWN_BYTES = 60 };

/* The words of one line; they point into the text. */
struct place_words {
    const char *stage, *parameter, *value, *line;
};

static void write_dataset(FILE *out, const struct spec_dataset *dataset);

/* On one line, without tabs. */
static void
write_text(FILE *out, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            fprintf(out, "\\x%02x", (unsigned char)text[i]);
        else
            fputc(text[i], out);
}

static void
write_value(FILE *out, const struct spec_value *value)
{
    bool is_map = value != NULL && value->kind == SPEC_MAP;

    if (value == NULL || value->kind == SPEC_NULL) {
        fputs(value == NULL ? "not given" : "null", out);
        return;
    }
    if (value->dataset != NULL)
        fputs("(stages)", out);
    if (value->kind == SPEC_VARIABLE)
        fputc('$', out);
    if (value->text != NULL)
        write_text(out, value->text, value->text_bytes);
    if (!is_map && value->kind != SPEC_LIST)
        return;
    fputc(is_map ? '{' : '[', out);
    for (uint32_t i = 0; i < value->count; i++) {
        fputs(i > 0 ? ", " : "", out);
        if (is_map) {
            write_text(out, value->keys[i].text, value->keys[i].text_bytes);
            fputs(": ", out);
        }
        write_value(out, &value->items[i]);
    }
    fputc(is_map ? '}' : ']', out);
}

/* The datasets in a value follow its own line. */
static void
write_datasets(FILE *out, const struct spec_value *value)
{
    if (value == NULL)
        return;
    if (value->dataset != NULL)
        write_dataset(out, value->dataset);
    for (uint32_t i = 0; i < value->count; i++)
        write_datasets(out, &value->items[i]);
}

static void
write_dataset(FILE *out, const struct spec_dataset *dataset)
{
    for (uint32_t s = 0; s < dataset->stage_count; s++) {
        const struct spec_stage *stage = &dataset->stages[s];

        fprintf(out, "%s\t\t\t%u\n", stage->info->name, stage->line);
        for (uint32_t i = 0; i < stage->info->parameter_count; i++) {
            const struct parameter_info *parameter = &stage->info->parameters[i];
            const struct spec_value *value = stage->arguments[i];

            if ((parameter->types & TYPE_NO_EFFECT) != 0 ||
                (value == NULL && (parameter->types & TYPE_LATER) != 0))
                continue;
            fprintf(out, "%s\t%s\t", stage->info->name, parameter->name);
            write_value(out, value);
            fprintf(out, "\t%u\n", stage->line);
            write_datasets(out, value);
        }
    }
}

/* To be freed. */
static char *
words_of(const struct plan *plan)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    if (out == NULL)
        return NULL;
    if (plan->file->has_seed)
        fprintf(out, "the file\tseed\t%" PRId64 "\t1\n", plan->file->seed);
    else
        fputs("the file\tseed\tnot given\t1\n", out);
    fprintf(out, "distribute\tauto_shard\t%s\t%u\n", plan_policy_name(plan->policy),
            plan->stream->distribute.line);
    write_dataset(out, &plan->stream->dataset);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static void
name_of(uint64_t fingerprint, char name[TND_CACHE_NAME_BYTES])
{
    snprintf(name, TND_CACHE_NAME_BYTES, "stages-%016" PRIx64, fingerprint);
}

void
place_words_keep(const struct plan *plan, uint64_t fingerprint)
{
    struct tnd_cache_build build = { 0 };
    char name[TND_CACHE_NAME_BYTES];
    char *text = NULL;
    int folder = -1;
    tundish_status status;

    name_of(fingerprint, name);
    if (tnd_cache_folder_open(plan->options.cache_folder, &folder) != TUNDISH_OK)
        return;
    if (faccessat(folder, name, F_OK, 0) != 0 && (text = words_of(plan)) != NULL &&
        tnd_cache_build_begin(folder, name, &build) == TUNDISH_OK) {
        status = tnd_cache_build_write(&build, text, strlen(text));
        if (status == TUNDISH_OK)
            (void)tnd_cache_build_publish(&build, NULL);
        else
            tnd_cache_build_cancel(&build);
    }
    free(text);
    close(folder);
}

/* To be freed; NULL: there are none. */
static char *
read_words(const struct plan *plan, uint64_t fingerprint)
{
    char name[TND_CACHE_NAME_BYTES], *text;
    size_t count = 0;
    int folder = -1, file;

    name_of(fingerprint, name);
    if (tnd_cache_folder_open(plan->options.cache_folder, &folder) != TUNDISH_OK)
        return NULL;
    file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    close(folder);
    if (file < 0)
        return NULL;
    text = tnd_zalloc(1, WORDS_BYTES_MAX + 1);
    (void)tnd_read_at(file, text, WORDS_BYTES_MAX, 0, &count);
    close(file);
    text[count] = '\0';
    return text;
}

/* The next line, cut at its tabs; all "" at the end. */
static struct place_words
next_words(char **rest)
{
    char *line = strsep(rest, "\n");
    struct place_words words = { "", "", "", "" };
    const char **fields[] = { &words.stage, &words.parameter, &words.value, &words.line };

    for (size_t i = 0; i < 4 && line != NULL; i++)
        *fields[i] = strsep(&line, "\t");
    return words;
}

static void
say_difference(const struct place_words *then, const struct place_words *now, char *text,
               size_t text_bytes)
{
    bool is_shorter = now->stage[0] == '\0', is_longer = then->stage[0] == '\0';

    if (strcmp(then->stage, now->stage) == 0 && strcmp(then->parameter, now->parameter) == 0)
        snprintf(text, text_bytes, "%s (line %.10s): %s %.*s then, %.*s now", now->stage, now->line,
                 now->parameter, SHOWN_BYTES, then->value, SHOWN_BYTES, now->value);
    else
        snprintf(text, text_bytes, "%.*s%s%.10s%s then, %.*s%s%.10s%s now", SHOWN_BYTES,
                 is_longer ? "no further stage" : then->stage, is_longer ? "" : " (line ",
                 then->line, is_longer ? "" : ")", SHOWN_BYTES,
                 is_shorter ? "no further stage" : now->stage, is_shorter ? "" : " (line ",
                 now->line, is_shorter ? "" : ")");
}

static bool
are_equal(const struct place_words *one, const struct place_words *other)
{
    return strcmp(one->stage, other->stage) == 0 && strcmp(one->parameter, other->parameter) == 0 &&
           strcmp(one->value, other->value) == 0;
}

void
place_words_compare(const struct plan *plan, uint64_t then, char *text, size_t text_bytes)
{
    char *of_then = read_words(plan, then), *of_now = of_then != NULL ? words_of(plan) : NULL;
    char *rest = of_then, *rest_now = of_now;
    bool differs = false;

    text[0] = '\0';
    while (of_now != NULL && !differs && (rest != NULL || rest_now != NULL)) {
        struct place_words one = next_words(&rest), other = next_words(&rest_now);

        differs = !are_equal(&one, &other);
        if (differs)
            say_difference(&one, &other, text, text_bytes);
    }
    free(of_then);
    free(of_now);
}
