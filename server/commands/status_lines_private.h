/* status_lines_private.h - how a line of metrics is written, for status_print.c. */
#ifndef COMMANDS_STATUS_LINES_PRIVATE_H
#define COMMANDS_STATUS_LINES_PRIVATE_H

#include "commands/status_print.h"

enum { STATUS_LINE_BYTES = 1200, STATUS_NUMBER_BYTES = 16, STATUS_SLOTS_SHOWN = 24 };

struct print {
    const struct status_view *view;
    const struct status_page *page;
    enum watch_level level;
    const struct watch_set *session;
};

void __attribute__((format(printf, 3, 4)))
status_put(const struct print *print, enum status_style style, const char *format, ...);

/* Print a sentence, broken between words. Lines are indented to begin below one another; the first
 * follows `first`. */
void status_put_sentence(const struct print *print, enum status_style style, const char *first,
                         const char *text);

/* A number in three digits with its unit: "1.23 M" or "1.23 MB". */
const char *status_shorten(double value, const char *of, char text[STATUS_NUMBER_BYTES]);

/* The growth of a count a second; of a time, as a percentage of the interval. */
double status_per_second(const struct print *print, const struct watch_set *set, const char *field);
double status_percent(const struct print *print, const struct watch_set *set, const char *field);

/* The 99th percentile of the interval. */
const char *status_worst_of(const struct print *print, const struct watch_set *set,
                            const char *field, char text[STATUS_NUMBER_BYTES]);

/* The next set of that kind of the stream that is shown. */
const struct watch_set *status_next(const struct print *print, const char *kind,
                                    const struct watch_set *previous);

/* '#' is with the trainer, '=' is ready, '.' is free. */
void status_draw_slots(const struct print *print, const char *replica, uint64_t held,
                       uint64_t ready, char slots[STATUS_SLOTS_SHOWN + 1]);

#endif
