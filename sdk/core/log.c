/* log.c - format events, one line each. */
#include "core/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/journal.h"
#include "core/json.h"
#include "core/log_writer.h"
#include "core/memory.h"
#include "core/printable.h"
#include "core/redact.h"

/* Set before other threads start, but for the level, which an operator may change at any time. */
static enum log_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_JOURNAL } log_format;
static bool format_is_chosen;
static _Atomic enum tnd_log_level highest = TND_LOG_NOTICE;
static void (*log_tap)(void *user, enum tnd_log_level level, const char *event,
                       const char *sentence);
static void *log_tap_user;
static bool has_starter;

bool
tnd_log_set_format(const char *format)
{
    static const char *const words[] = {
        [FORMAT_TEXT] = "text", [FORMAT_JSON] = "json", [FORMAT_JOURNAL] = "journal"
    };

    for (enum log_format i = FORMAT_TEXT; i <= FORMAT_JOURNAL; i++)
        if (strcmp(format, words[i]) == 0) {
            log_format = i;
            format_is_chosen = true;
            return true;
        }
    return false;
}

/* JOURNAL_STREAM names the file that journald reads. A process of a service inherits the variable,
 * but its standard error may lead elsewhere. */
static bool
is_read_by_journald(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat about;

    return stream != NULL && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &about) == 0 && about.st_dev == device && about.st_ino == inode;
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
static const int syslog_levels[] = { 3, 4, 5, 7 };

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

/* For the program that started this one: without the time, and of a function's output without a
 * level. The caller frees the line. NULL: no memory. */
static char *
make_told(enum tnd_log_level level, const char *sentence, size_t *ret_bytes)
{
    char *line = NULL;
    int bytes = level == TND_LOG_WARNING
                    ? asprintf(&line, "tundish: %s: %s\n", level_names[level], sentence)
                    : asprintf(&line, "%s\n", sentence);

    *ret_bytes = bytes > 0 ? (size_t)bytes : 0;
    return bytes > 0 ? line : NULL;
}

static void
tell_starter(enum tnd_log_level level, const char *sentence)
{
    size_t bytes = 0;
    char *line = has_starter ? make_told(level, sentence, &bytes) : NULL;

    if (line != NULL)
        log_writer_put(LOG_WRITER_STARTER, line, bytes);
    free(line);
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
    if (log_format == FORMAT_JSON)
        write_json(file, when, level, event, sentence);
    else if (log_format == FORMAT_JOURNAL) /* which notes the time itself */
        fprintf(file, "<%d>%s: %s\n", syslog_levels[level], event, sentence);
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
    tnd_redact(raw);
    tnd_printable(raw, sentence, sizeof sentence); /* it may hold names that others chose */
    if (log_tap != NULL)
        log_tap(log_tap_user, level, event, sentence);
    if (level == TND_LOG_WARNING && strcmp(event, TND_LOG_TRAINER) != 0)
        tell_starter(level, sentence);
    /* A journal that is busy or was restarted reads the line below, as it reads texts. */
    if (log_format == FORMAT_JOURNAL && tnd_journal_send(syslog_levels[level], event, sentence))
        return;
    line = make_line(level, event, sentence, &bytes);
    if (line != NULL)
        log_writer_put(LOG_WRITER_OWN, line, bytes);
    free(line);
}

void
tnd_log_output(const char *source, const char *text, size_t bytes)
{
    char *own = tnd_strndup(text, bytes);
    size_t room = 4 * bytes + 1;
    char *line = tnd_alloc(room);

    tnd_log(TND_LOG_NOTICE, "output", "%s: %s", source, own);
    tnd_redact(own);
    (void)tnd_printable(own, line, room);
    tell_starter(TND_LOG_NOTICE, line);
    free(line);
    free(own);
}

/* journald reads a level at the beginning of each line. The caller frees the text. */
static char *
with_levels(enum tnd_log_level level, const char *text, size_t *ret_bytes)
{
    char *levelled = NULL;
    FILE *file = open_memstream(&levelled, ret_bytes);

    if (file == NULL)
        return NULL;
    for (const char *line = text, *end; *line != '\0'; line = end) {
        end = strchrnul(line, '\n');
        end += *end != '\0';
        fprintf(file, "<%d>%.*s", syslog_levels[level], (int)(end - line), line);
    }
    if (fclose(file) == 0)
        return levelled;
    free(levelled);
    return NULL;
}

void
tnd_log_lines(enum tnd_log_level level, const char *text)
{
    size_t bytes = 0;
    char *levelled = log_format == FORMAT_JOURNAL ? with_levels(level, text, &bytes) : NULL;

    if (levelled != NULL)
        log_writer_put(LOG_WRITER_OWN, levelled, bytes);
    else
        log_writer_put(LOG_WRITER_OWN, text, strlen(text));
    free(levelled);
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
    tnd_redact(text);
    tnd_log_lines(TND_LOG_NOTICE, text);
    free(text);
}

static void
write_dropped(uint64_t dropped, char *sentence, size_t bytes)
{
    snprintf(sentence, bytes, "%" PRIu64 " line%s missing here because standard error was not read",
             dropped, dropped == 1 ? " is" : "s are");
}

static char *
make_notice(uint64_t dropped, size_t *ret_bytes)
{
    char sentence[160];

    write_dropped(dropped, sentence, sizeof sentence);
    return make_line(TND_LOG_WARNING, "log", sentence, ret_bytes);
}

static char *
make_told_notice(uint64_t dropped, size_t *ret_bytes)
{
    char sentence[160];

    write_dropped(dropped, sentence, sizeof sentence);
    return make_told(TND_LOG_WARNING, sentence, ret_bytes);
}

void
tnd_log_tell(int descriptor)
{
    has_starter = true;
    fcntl(descriptor, F_SETFD, FD_CLOEXEC); /* for no program that this one starts */
    log_writer_start(LOG_WRITER_STARTER, descriptor, make_told_notice);
}

void
tnd_log_start(void)
{
    if (is_read_by_journald()) {
        if (!format_is_chosen)
            log_format = FORMAT_JOURNAL;
        if (log_format == FORMAT_JOURNAL)
            tnd_journal_open();
    }
    log_writer_start(LOG_WRITER_OWN, STDERR_FILENO, make_notice);
}

void
tnd_log_flush(void)
{
    log_writer_flush();
}
