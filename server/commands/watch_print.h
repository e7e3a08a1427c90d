/* watch_print.h - a running server's figures as lines of text: `tundish status` and `tundish top`.
 */
#ifndef COMMANDS_WATCH_PRINT_H
#define COMMANDS_WATCH_PRINT_H

#include "commands/watch_server.h"

enum watch_style { WATCH_PLAIN, WATCH_DIAGNOSIS, WATCH_ADVICE, WATCH_STREAM, WATCH_HEADING };

/* Who takes the lines, one after the other, without their ends. `level` is the diagnosis's. */
struct watch_page {
    int width; /* sentences are broken before this column; 0: never */
    void (*line)(void *user, enum watch_style style, enum watch_level level, const char *text);
    void *user;
};

/* Standard output, without styles. */
extern const struct watch_page watch_page_plain;

void watch_print(const struct watch_server *watch, const struct watch_page *page);

#endif
