/* status_print.h - a running server's metrics as lines of text: `tundish status` and `tundish top`.
 */
#ifndef COMMANDS_STATUS_PRINT_H
#define COMMANDS_STATUS_PRINT_H

#include "commands/status_view.h"

enum status_style { STATUS_PLAIN, STATUS_DIAGNOSIS, STATUS_ADVICE, STATUS_STREAM, STATUS_HEADING };

/* Receives the lines in order, without newlines. `level` is the diagnosis's. */
struct status_page {
    int width;   /* sentences are broken before this column; 0: never */
    bool folded; /* leave out advice, idle stages, and vocabularies that hold nearly all values */
    void (*line)(void *user, enum status_style style, enum watch_level level, const char *text);
    void *user;
};

/* Standard output, without styles. */
extern const struct status_page status_page_plain;

void status_print(const struct status_view *view, const struct status_page *page);

#endif
