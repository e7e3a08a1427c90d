/* log.c - format events, one line each. */
#include "core/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/json.h"
#include "core/log_writer.h"
#include "core/printable.h"

/* Set before other threads start, but for the level, which an operator may change at any time. */
static bool as_json;
static _Atomic enum tnd_log_level highest = TND_LOG_NOTICE;
static void (*log_tap)(void *user, enum tnd_log_level level, const char *event,
                       const char *sentence);
static void *log_tap_user;

bool
tnd_log_set_format(const char *format)
{
    if (strcmp(format, "text") != 0 && strcmp(format, "json") != 0)
        return false;
    as_json = strcmp(format, "json") == 0;
    return true;
}

void
tnd_log_set_level(enum tnd_log_level level)
{
    highest = level;
}

void
tnd_log_set_tap(void (*tap)(void *user, enum tnd_log_level level, const char *event,
                            const char *sentence),
                void *user)
{
    log_tap = tap;
    log_tap_user = user;
}

/* UTC, in milliseconds. */
static void
write_time(char *text, size_t bytes)
{
    struct timespec now;
    struct tm parts;
    size_t used;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    used = strftime(text, bytes, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + used, bytes - used, ".%03ldZ", now.tv_nsec / 1000000);
}

static const char *const level_names[] = { "error", "warning", "notice", "debug" };

static void
write_json(FILE *file, const char *when, enum tnd_log_level level, const char *event,
           const char *sentence)
{
    struct json json;

    json_start(&json, file);
    json_object(&json);
    json_key_text(&json, "time", when);
    json_key_text(&json, "level", level_names[level]);
    json_key_text(&json, "event", event);
    json_key_text(&json, "text", sentence);
    json_object_end(&json);
    fputc('\n', file);
}

/* A line is made whole and handed to the writer at once, so that lines of threads never mix. */
/* The caller frees the line. NULL: no memory. */
static char *
make_line(enum tnd_log_level level, const char *event, const char *sentence, size_t *ret_bytes)
{
    char when[40];
    char *line = NULL;
    FILE *file = open_memstream(&line, ret_bytes);

    if (file == NULL)
        return NULL;
    write_time(when, sizeof when);
    if (as_json)
        write_json(file, when, level, event, sentence);
    else
        fprintf(file, "%s %s %s: %s\n", when, level_names[level], event, sentence);
    if (fclose(file) == 0)
        return line;
    free(line);
    return NULL;
}

void
tnd_log(enum tnd_log_level level, const char *event, const char *format, ...)
{
    char raw[1600], sentence[sizeof raw];
    char *line;
    size_t bytes = 0;
    va_list arguments;

    if (level > highest)
        return;
    va_start(arguments, format);
    vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    tnd_printable(raw, sentence, sizeof sentence); /* it may hold names that others chose */
    if (log_tap != NULL)
        log_tap(log_tap_user, level, event, sentence);
    line = make_line(level, event, sentence, &bytes);
    if (line != NULL)
        log_writer_put(line, bytes);
    free(line);
}

void
tnd_log_print(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    int bytes;

    va_start(arguments, format);
    bytes = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (bytes < 0)
        return;
    log_writer_put(text, (size_t)bytes);
    free(text);
}

static char *
make_notice(uint64_t dropped, size_t *ret_bytes)
{
    char sentence[160];

    snprintf(sentence, sizeof sentence,
             "%" PRIu64 " lines are missing here because standard error was not read", dropped);
    return make_line(TND_LOG_WARNING, "log", sentence, ret_bytes);
}

void
tnd_log_start(void)
{
    log_writer_start(make_notice);
}

void
tnd_log_flush(void)
{
    log_writer_flush();
}
