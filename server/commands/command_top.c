/* command_top.c - `tundish top`: live metrics of the server of this node, in a terminal. */
#include "commands/options.h"
#include "commands/top_lines.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* curses.h is in the same package as the library. */
#if __has_include(<curses.h>)
#include <curses.h>
#define HAS_CURSES 1
#else
#define HAS_CURSES 0
#endif

#include "core/clock.h"

static const int64_t SECOND_NS = 1000000000;
#if HAS_CURSES
static const int64_t FIRST_LOOK_NS = 200000000;
#endif

/* Without a terminal, print one page after another until the server has ended. */
static tundish_status
print_on(struct status_view *view)
{
    tundish_status status;

    do {
        status = status_view_next(view, SECOND_NS);
        if (status == TUNDISH_OK)
            status_print(view, &status_page_plain);
        putchar('\n');
        if (fflush(stdout) != 0)
            return TUNDISH_OK; /* the reader has closed the pipe, as `head` does */
    } while (status == TUNDISH_OK && tnd_stats_is_alive(&view->now.copy));
    return status;
}

#if HAS_CURSES
static bool in_colour;

enum { PAIR_GOOD = 1, PAIR_WARNING, PAIR_BAD };

/* How a diagnosis looks; without colours it is bold, and reversed if it is bad. */
static attr_t
look_of(enum watch_level level)
{
    bool is_bad = level >= WATCH_STUCK;

    if (!in_colour)
        return A_BOLD | (is_bad ? A_REVERSE : A_NORMAL);
    if (level == WATCH_IDLE)
        return A_BOLD;
    return A_BOLD | (attr_t)COLOR_PAIR(level == WATCH_FINE ? PAIR_GOOD
                                       : is_bad            ? PAIR_BAD
                                                           : PAIR_WARNING);
}

static int
look_of_line(const struct top_line *line)
{
    switch (line->style) {
    case STATUS_DIAGNOSIS:
        return (int)look_of(line->level);
    case STATUS_STREAM:
        return A_BOLD;
    case STATUS_HEADING:
    case STATUS_ADVICE:
        return A_DIM;
    default:
        return A_NORMAL;
    }
}

/* The window without its foot. */
static int
height(void)
{
    return LINES > 1 ? LINES - 1 : 1;
}

static void
draw(const struct top_lines *lines)
{
    char foot[160], where[64] = "";
    int shown = lines->count - lines->first;

    erase();
    if (shown > height())
        shown = height();
    for (int i = 0; i < shown; i++) {
        attrset(look_of_line(&lines->lines[lines->first + i]));
        mvaddnstr(i, 0, lines->lines[lines->first + i].text, COLS);
    }
    if (shown < lines->count)
        snprintf(where, sizeof where, "   lines %d to %d of %d: arrows, 1-9", lines->first + 1,
                 lines->first + shown, lines->count);
    snprintf(foot, sizeof foot, "q: quit%s%s", where,
             lines->folded     ? "   f: all lines"
             : lines->unfolded ? "   f: fold"
                               : "");
    attrset(A_DIM);
    mvaddnstr(LINES - 1, 0, foot, COLS);
    refresh();
}

/* A key that is none of these only draws again, as after a change of size. */
static void
obey(struct top_lines *lines, int key)
{
    int page = height();

    if (key >= '1' && key <= '9')
        top_lines_seek(lines, key - '0', page);
    else if (key == KEY_DOWN || key == 'j')
        top_lines_scroll(lines, 1, page);
    else if (key == KEY_UP || key == 'k')
        top_lines_scroll(lines, -1, page);
    else if (key == KEY_NPAGE || key == ' ')
        top_lines_scroll(lines, page, page);
    else if (key == KEY_PPAGE || key == 'b')
        top_lines_scroll(lines, -page, page);
    else if (key == KEY_HOME || key == 'g')
        top_lines_scroll(lines, -lines->count, page);
    else if (key == KEY_END || key == 'G')
        top_lines_scroll(lines, lines->count, page);
    else if (key == 'f')
        lines->unfolded = !lines->unfolded;
}

/* Begin full-screen output; NULL if this terminal cannot. */
static SCREEN *
begin_screen(void)
{
    SCREEN *screen;

    /* Curses counts the columns of a character by the locale. */
    setlocale(LC_ALL, "");
    screen = newterm(NULL, stdout, stdin);
    if (screen == NULL)
        return NULL;
    cbreak();
    noecho();
    keypad(stdscr, TRUE); /* a change of size arrives as a key */
    curs_set(0);
    in_colour = getenv("NO_COLOR") == NULL && start_color() != ERR && has_colors() &&
                use_default_colors() != ERR;
    if (in_colour) {
        init_pair(PAIR_GOOD, COLOR_GREEN, -1);
        init_pair(PAIR_WARNING, COLOR_YELLOW, -1);
        init_pair(PAIR_BAD, COLOR_RED, -1);
    }
    return screen;
}

/* A server that ends is shown as gone, and the next one at the same socket is followed. */
static tundish_status
look_again(struct status_view *view)
{
    if (!tnd_stats_is_alive(&view->now.copy))
        status_view_follow(view);
    return status_view_next(view, 1);
}

/* Show the view until q is pressed; a look each second, however many keys are. */
static tundish_status
draw_until_quit(struct status_view *view, struct top_lines *lines)
{
    int64_t due_ns = tnd_clock_ns() + SECOND_NS;
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK) {
        int64_t left_ns = due_ns - tnd_clock_ns();
        int key;

        top_lines_take(lines, view, height(), COLS);
        draw(lines);
        timeout(left_ns > 0 ? (int)(left_ns / 1000000) : 0);
        key = getch();
        if (key == 'q' || key == 'Q')
            break;
        obey(lines, key);
        if (tnd_clock_ns() >= due_ns) {
            status = look_again(view);
            due_ns = tnd_clock_ns() + SECOND_NS;
        }
    }
    return status;
}

static tundish_status
draw_on(struct status_view *view)
{
    tundish_status status = status_view_next(view, FIRST_LOOK_NS);
    struct top_lines lines = { 0 };
    SCREEN *screen;

    if (status != TUNDISH_OK)
        return status;
    screen = begin_screen();
    if (screen == NULL)
        /* A terminal that curses does not know gets plain pages. */
        return print_on(view);
    status = draw_until_quit(view, &lines);
    endwin();
    delscreen(screen);
    top_lines_close(&lines);
    return status;
}
#endif

static int
command_top_run(int argc, char **argv)
{
    const char *socket = NULL;
    const struct option_row rows[] = { { "socket", .text = &socket }, { 0 } };
    struct status_view view;
    tundish_status status;
    int result = options_read_alone(&command_top, argc, argv, rows);

    if (result != EXIT_OK)
        return result;
    status = status_view_open(socket, &view);
    if (status == TUNDISH_OK) {
#if HAS_CURSES
        status = isatty(STDOUT_FILENO) ? draw_on(&view) : print_on(&view);
#else
        status = print_on(&view);
#endif
        status_view_close(&view);
    }
    if (status == TUNDISH_OK)
        return EXIT_OK;
    fprintf(stderr, "tundish top: %s\n", tnd_error_text());
    return EXIT_SYSTEM;
}

const struct command command_top = {
    .name = "top",
    .arguments = "",
    .help = "Show the state of this node's server, updated every second; q quits.",
    .details =
        "  --socket PATH       the server's socket (default: as for trainers)\n"
        "\n"
        "Keys: arrows, PgUp, PgDn, Home and End scroll; 1 to 9 go to that section, which a\n"
        "stream or a heading begins; q quits. What does not fit into the window is folded:\n"
        "advice, stages that are less than 1% busy, and vocabularies that lack less than 5%\n"
        "of the values are left out, until f is pressed.\n"
        "\n"
        "Rates are over the last second, the first line's over the last ten. tundish help "
        "status explains the levels and the\n"
        "symbols of a lane.\n",
    .run = command_top_run,
};
