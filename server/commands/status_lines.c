/* status_lines.c - how a line of metrics is written: sentences, numbers, rates, slots. */
#include "commands/status_lines_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { INDENT = 9 };

void
status_put(const struct print *print, enum status_style style, const char *format, ...)
{
    /* A line that is too long is cut: names in it may be long. */
    char text[STATUS_LINE_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print->page->line(print->page->user, style, print->level, text);
}

void
status_put_sentence(const struct print *print, enum status_style style, const char *first,
                    const char *text)
{
    int room = print->page->width > 2 * INDENT ? print->page->width - INDENT : STATUS_LINE_BYTES;

    while (*text != '\0') {
        int length = (int)strlen(text), cut = length <= room ? length : room;

        /* Back to the last blank; a word that is longer than the line is cut. */
        while (cut < length && cut > 0 && text[cut] != ' ')
            cut--;
        if (cut == 0)
            cut = length < room ? length : room;
        status_put(print, style, "%-*s%.*s", INDENT, first, cut, text);
        text += cut;
        text += strspn(text, " ");
        first = "";
    }
}

const char *
status_shorten(double value, const char *of, char text[STATUS_NUMBER_BYTES])
{
    static const char *const prefixes[] = { "", "k", "M", "G", "T" };
    unsigned prefix = 0;
    int digits;

    /* 999.5 would be printed as 1000. */
    while (value >= 999.5 && prefix + 1 < sizeof prefixes / sizeof *prefixes) {
        value /= 1000;
        prefix++;
    }
    digits = prefix == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(text, STATUS_NUMBER_BYTES, "%.*f%s%s%s", digits, value,
             prefix > 0 || of[0] != '\0' ? " " : "", prefixes[prefix], of);
    return text;
}

double
status_per_second(const struct print *print, const struct watch_set *set, const char *field)
{
    const struct status_view *view = print->view;
    double passed_s = (double)(view->now.taken_ns - view->before.taken_ns) / 1e9;

    return passed_s > 0 ? (double)watch_growth(&view->before, set, field) / passed_s : 0;
}

double
status_percent(const struct print *print, const struct watch_set *set, const char *field)
{
    double value = status_per_second(print, set, field) / 1e7;

    return value > 100 ? 100 : value;
}

const struct watch_set *
status_next(const struct print *print, const char *kind, const struct watch_set *previous)
{
    do
        previous = watch_next(&print->view->now, kind, previous);
    while (previous != NULL && !watch_is_of(previous, print->session));
    return previous;
}

void
status_draw_slots(const struct print *print, const char *replica, uint64_t held, uint64_t ready,
                  char slots[STATUS_SLOTS_SHOWN + 1])
{
    const struct watch_set *lane = NULL;
    uint64_t count = 0;
    char of[16];

    while ((lane = status_next(print, "lane", lane)) != NULL) {
        watch_label(lane, "replica", of, sizeof of);
        if (strcmp(of, replica) == 0)
            count = watch_value(lane, "slots");
    }
    count = count < STATUS_SLOTS_SHOWN ? count : STATUS_SLOTS_SHOWN;
    for (uint64_t i = 0; i < count; i++)
        slots[i] = i < held ? '#' : i < held + ready ? '=' : '.';
    slots[count] = '\0';
}

/* A time in three digits. */
static const char *
shorten_time(uint64_t ns, char text[STATUS_NUMBER_BYTES])
{
    double value = (double)ns;
    const char *unit = "ns";

    if (ns == 0)
        return "-";
    for (const char *const *next = (const char *const[]){ "us", "ms", "s", NULL };
         *next != NULL && value >= 999.5; next++) {
        value /= 1000;
        unit = *next;
    }
    snprintf(text, STATUS_NUMBER_BYTES, "%.*f %s",
             value >= 99.95   ? 0
             : value >= 9.995 ? 1
                              : 2,
             value, unit);
    return text;
}

const char *
status_worst_of(const struct print *print, const struct watch_set *set, const char *field,
                char text[STATUS_NUMBER_BYTES])
{
    struct watch_histogram grown = { 0 };

    watch_observed(&print->view->before, set, field, &grown);
    return shorten_time(watch_quantile_ns(&grown, 0.99), text);
}
