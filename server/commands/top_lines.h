/* top_lines.h - the lines that `tundish top` can show, and the part of them in the window. */
#ifndef COMMANDS_TOP_LINES_H
#define COMMANDS_TOP_LINES_H

#include "commands/status_print.h"

struct top_line {
    enum status_style style;
    enum watch_level level;
    char *text;
};

struct top_lines {
    struct top_line *lines;
    int count;
    int first;     /* the first line in the window */
    bool unfolded; /* show all lines, although they do not fit into the window */
    bool folded;   /* some were left out */
};

void top_lines_close(struct top_lines *lines);

/* Take the view's lines, for a window of that size. Those that matter least are left out if
 * they do not fit, unless `unfolded`. */
void top_lines_take(struct top_lines *lines, const struct status_view *view, int height, int width);

/* Move the window by `by` lines, or to a section (1: the first); it never leaves the lines. */
void top_lines_scroll(struct top_lines *lines, int by, int height);
void top_lines_seek(struct top_lines *lines, int section, int height);

#endif
