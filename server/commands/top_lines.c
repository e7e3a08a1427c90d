/* top_lines.c - which lines of a server's metrics are in the window of a terminal. */
#include "commands/top_lines.h"

#include <stdlib.h>

#include "core/memory.h"

static void
clear(struct top_lines *lines)
{
    for (int i = 0; i < lines->count; i++)
        free(lines->lines[i].text);
    lines->count = 0;
}

void
top_lines_close(struct top_lines *lines)
{
    clear(lines);
    free(lines->lines);
    *lines = (struct top_lines){ 0 };
}

static void
add(void *user, enum status_style style, enum watch_level level, const char *text)
{
    struct top_lines *lines = user;

    lines->lines = tnd_grow(lines->lines, (size_t)lines->count, sizeof *lines->lines);
    lines->lines[lines->count++] =
        (struct top_line){ .style = style, .level = level, .text = tnd_strdup(text) };
}

void
top_lines_scroll(struct top_lines *lines, int by, int height)
{
    int last = lines->count > height ? lines->count - height : 0;
    int first = by > last - lines->first ? last : lines->first + by;

    lines->first = first > 0 ? first : 0;
}

void
top_lines_take(struct top_lines *lines, const struct status_view *view, int height, int width)
{
    struct status_page page = { .width = width, .line = add, .user = lines };

    clear(lines);
    status_print(view, &page);
    lines->folded = lines->count > height && !lines->unfolded;
    if (lines->folded) {
        clear(lines);
        page.folded = true;
        status_print(view, &page);
    }
    top_lines_scroll(lines, 0, height); /* there may be fewer lines than before */
}

void
top_lines_seek(struct top_lines *lines, int section, int height)
{
    for (int i = 0; i < lines->count; i++) {
        bool begins =
            lines->lines[i].style == STATUS_STREAM || lines->lines[i].style == STATUS_HEADING;

        if (begins && --section == 0)
            top_lines_scroll(lines, i - lines->first, height);
    }
}
