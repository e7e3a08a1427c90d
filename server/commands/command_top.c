/* command_top.c - `tundish top`: live metrics of the server of this node, in a terminal. */
#include "commands/options.h"
#include "commands/status_print.h"

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

static void
draw_line(void *user, enum status_style style, enum watch_level level, const char *text)
{
    int *row = user;

    /* Rows beyond the window are counted but not drawn; the foot says that there are more. */
    if (*row < LINES - 1) {
        attrset((int)(style == STATUS_DIAGNOSIS                           ? look_of(level)
                      : style == STATUS_STREAM                            ? A_BOLD
                      : style == STATUS_HEADING || style == STATUS_ADVICE ? A_DIM
                                                                          : A_NORMAL));
        mvaddnstr(*row, 0, text, COLS);
    }
    ++*row;
}

static void
draw(const struct status_view *view)
{
    int rows = 0;
    const struct status_page page = { .width = COLS, .line = draw_line, .user = &rows };
    char foot[120];

    erase();
    status_print(view, &page);
    snprintf(foot, sizeof foot, "q: quit%s",
             rows > LINES - 1 ? "   (more lines below: enlarge the window)" : "");
    attrset(A_DIM);
    mvaddnstr(LINES - 1, 0, foot, COLS);
    refresh();
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
    /* So getch paces the loop: without a key it returns when the next snapshot is due. */
    timeout((int)(SECOND_NS / 1000000));
    in_colour = getenv("NO_COLOR") == NULL && start_color() != ERR && has_colors() &&
                use_default_colors() != ERR;
    if (in_colour) {
        init_pair(PAIR_GOOD, COLOR_GREEN, -1);
        init_pair(PAIR_WARNING, COLOR_YELLOW, -1);
        init_pair(PAIR_BAD, COLOR_RED, -1);
    }
    return screen;
}

/* Draw until q is pressed. A server that ends is shown as gone, and the next one at the same socket
 * is followed. */
static tundish_status
draw_on(struct status_view *view)
{
    tundish_status status = status_view_next(view, FIRST_LOOK_NS);
    SCREEN *screen;

    if (status != TUNDISH_OK)
        return status;
    screen = begin_screen();
    if (screen == NULL)
        /* A terminal that curses does not know gets plain pages. */
        return print_on(view);
    while (status == TUNDISH_OK) {
        int key;

        draw(view);
        key = getch();
        if (key == 'q' || key == 'Q')
            break;
        if (key != ERR) /* the window was resized, or another key: draw again */
            continue;
        if (!tnd_stats_is_alive(&view->now.copy))
            status_view_follow(view);
        status = status_view_next(view, 1);
    }
    endwin();
    delscreen(screen);
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
    .details = "  --socket PATH       the server's socket (default: as for trainers)\n"
               "\n"
               "Rates are over the last second, the first line's over the last ten. tundish help "
               "status explains the levels and the\n"
               "symbols of a lane.\n",
    .run = command_top_run,
};
