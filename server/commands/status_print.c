/* status_print.c - metrics in columns, for a terminal of 80 columns or more. */
#include "commands/status_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands/status_lines_private.h"
#include "core/memory.h"
#include "core/plural.h"

enum { NOTES_SHOWN = 5 };

static void
put_readers(const struct print *print)
{
    const struct watch_set *set = NULL;
    bool headed = false;

    while ((set = status_next(print, "reader", set)) != NULL) {
        uint64_t taken = watch_value(set, "taken"), released = watch_value(set, "released");
        uint64_t published = watch_value(set, "published");
        char group[64], replica[16], name[104], rate[STATUS_NUMBER_BYTES],
            worst[STATUS_NUMBER_BYTES];
        char slots[STATUS_SLOTS_SHOWN + 1], process[24] = "";

        if (!headed)
            status_put(print, STATUS_HEADING, "  %-24s %9s %6s %9s  %s", "replica", "batches/s",
                       "waits", "99% wait", "# held  = ready  . free");
        headed = true;
        watch_label(set, "group", group, sizeof group);
        watch_label(set, "replica", replica, sizeof replica);
        watch_label(set, "process", process, sizeof process); /* of a queue */
        snprintf(name, sizeof name, "%s%s%s%s%s%s", replica, process[0] != '\0' ? ", process " : "",
                 process, strcmp(group, "default") == 0 ? "" : " of ",
                 strcmp(group, "default") == 0 ? "" : group,
                 watch_value(set, "attached") != 0 ? "" : " (gone)");
        status_draw_slots(print, replica, taken > released ? taken - released : 0,
                          published > taken ? published - taken : 0, slots);
        status_put(print, STATUS_PLAIN, "  %-24.24s %9s %5.0f%% %9s  %s", name,
                   status_shorten(status_per_second(print, set, "released"), "", rate),
                   status_percent(print, set, "wait"),
                   status_worst_of(print, set, "next_wait", worst), slots);
    }
}

/* How batches get to trainers' devices. */
static void
put_devices(const struct print *print)
{
    const struct watch_set *set = NULL;

    while ((set = status_next(print, "device", set)) != NULL) {
        char group[64], replica[16], mode[16], why[96], bytes[STATUS_NUMBER_BYTES],
            text[STATUS_LINE_BYTES];

        watch_label(set, "group", group, sizeof group);
        watch_label(set, "replica", replica, sizeof replica);
        watch_label(set, "mode", mode, sizeof mode);
        watch_label(set, "why", why, sizeof why);
        snprintf(text, sizeof text,
                 "replica %s%s%s: %s/s copied, copying %.0f%%, expanding %.0f%%, waited for %.0f%% "
                 "of the time; mode %s, %s",
                 replica, strcmp(group, "default") == 0 ? "" : " of ",
                 strcmp(group, "default") == 0 ? "" : group,
                 status_shorten(status_per_second(print, set, "copied"), "B", bytes),
                 status_percent(print, set, "copy"), status_percent(print, set, "kernel"),
                 status_percent(print, set, "wait"), mode, why);
        status_put_sentence(print, STATUS_PLAIN, "  device", text);
    }
}

static unsigned
count_threads(const struct print *print)
{
    const struct watch_set *set = NULL;
    unsigned count = 0;

    while ((set = status_next(print, "thread", set)) != NULL) {
        char thread[32];

        watch_label(set, "thread", thread, sizeof thread);
        count += strcmp(thread, "order") != 0;
    }
    return count > 0 ? count : 1;
}

/* The next stage of that part, or NULL after the last. */
static const struct watch_set *
next_stage(const struct print *print, const char *part, const struct watch_set *previous)
{
    char of[16];

    do {
        previous = status_next(print, "stage", previous);
        if (previous != NULL)
            watch_label(previous, "part", of, sizeof of);
    } while (previous != NULL && strcmp(of, part) != 0);
    return previous;
}

/* "map:12", with its line. */
static void
name_stage(const struct watch_set *set, char name[96])
{
    char stage[64], line[16];

    watch_label(set, "stage", stage, sizeof stage);
    watch_label(set, "line", line, sizeof line);
    snprintf(name, 96, "%s%s%s", stage, line[0] != '\0' ? ":" : "", line);
}

/* Below these a folded page leaves out a stage or a vocabulary. */
static const double BUSY_PERCENT = 1, MISSING_PERCENT = 5;

static bool
folds_stage(const struct print *print, const struct watch_set *set, unsigned threads)
{
    return print->page->folded && watch_value(set, "errors") == 0 &&
           status_per_second(print, set, "busy") / 1e7 / threads < BUSY_PERCENT;
}

static void
put_folded(const struct print *print, unsigned count, const char *one, const char *many)
{
    if (count > 0)
        status_put(print, STATUS_ADVICE, "  (%u %s)", count, count == 1 ? one : many);
}

static void
put_stages(const struct print *print)
{
    const struct watch_set *set = NULL;
    unsigned threads = count_threads(print), folded = 0;
    bool headed = false;

    while ((set = next_stage(print, "content", set)) != NULL) {
        char name[96], rows[STATUS_NUMBER_BYTES], made[STATUS_NUMBER_BYTES],
            worst[STATUS_NUMBER_BYTES];
        char lost[2 * STATUS_NUMBER_BYTES], skipped[STATUS_NUMBER_BYTES],
            errors[STATUS_NUMBER_BYTES];

        if (!headed)
            status_put(print, STATUS_HEADING, "  %-24s %9s %6s %9s %9s  %s (%u thread%s)",
                       "content stage:line", "rows/s", "busy", "made/s", "99% call",
                       "skipped+errors", threads, TND_PLURAL(threads));
        headed = true;
        if (folds_stage(print, set, threads)) {
            folded++;
            continue;
        }
        name_stage(set, name);
        snprintf(lost, sizeof lost, "%s+%s",
                 status_shorten((double)watch_value(set, "skipped"), "", skipped),
                 status_shorten((double)watch_value(set, "errors"), "", errors));
        status_put(print, STATUS_PLAIN, "  %-24.24s %9s %5.0f%% %9s %9s  %s", name,
                   status_shorten(status_per_second(print, set, "rows"), "", rows),
                   status_per_second(print, set, "busy") / 1e7 / threads,
                   status_shorten(status_per_second(print, set, "output"), "B", made),
                   status_worst_of(print, set, "call", worst), lost);
    }
    put_folded(print, folded, "idle stage", "idle stages");
}

static void
put_order(const struct print *print)
{
    const struct watch_set *set = NULL;
    unsigned folded = 0;
    bool headed = false;

    while ((set = next_stage(print, "order", set)) != NULL) {
        uint64_t room = watch_value(set, "room");
        char name[96], rows[STATUS_NUMBER_BYTES], held[STATUS_NUMBER_BYTES],
            of[STATUS_NUMBER_BYTES];

        if (!headed)
            status_put(print, STATUS_HEADING, "  %-24s %9s %6s  %s", "order stage:line", "rows/s",
                       "busy", "in its buffer (1 thread)");
        headed = true;
        if (folds_stage(print, set, 1)) {
            folded++;
            continue;
        }
        name_stage(set, name);
        status_put(print, STATUS_PLAIN, "  %-24.24s %9s %5.0f%%  %s%s%s", name,
                   status_shorten(status_per_second(print, set, "rows"), "", rows),
                   status_percent(print, set, "busy"),
                   room > 0 ? status_shorten((double)watch_value(set, "queued"), "", held) : "-",
                   room > 0 ? " of " : "", room > 0 ? status_shorten((double)room, "", of) : "");
    }
    put_folded(print, folded, "idle stage", "idle stages");
}

/* The helpers, and the share of the rows that each makes. */
static void
put_helpers(const struct print *print)
{
    const struct watch_set *set = NULL;
    double all = status_per_second(print, print->session, "rows");

    if (status_next(print, "helper", NULL) != NULL)
        status_put(print, STATUS_HEADING, "  %-24s %9s %6s %6s %9s %9s %6s", "helper", "rows/s",
                   "share", "busy", "received", "remade", "lost");
    while ((set = status_next(print, "helper", set)) != NULL) {
        char name[128], rate[STATUS_NUMBER_BYTES], bytes[STATUS_NUMBER_BYTES];
        uint64_t threads = watch_value(set, "threads");
        double rows = status_per_second(print, set, "rows");

        watch_label(set, "helper", name, sizeof name);
        status_put(print, STATUS_PLAIN, "  %-24.24s %9s %5.0f%% %5.0f%% %9s %9llu %6s", name,
                   status_shorten(rows, "", rate), all > 0 ? 100 * rows / all : 0,
                   threads > 0 ? status_percent(print, set, "busy") / (double)threads : 0,
                   status_shorten(status_per_second(print, set, "received"), "B/s", bytes),
                   (unsigned long long)watch_value(set, "remade"),
                   watch_value(set, "barred") > 0        ? "BARRED"
                   : watch_value(set, "connections") > 0 ? "-"
                                                         : "LOST");
        if (watch_value(set, "barred") > 0)
            status_put(
                print, STATUS_PLAIN,
                "    it reads other files or makes other bytes; it made %llu parts in %llu steps, "
                "from "
                "epoch %llu step %llu to epoch %llu step %llu (which: the server's log)",
                (unsigned long long)watch_value(set, "parts"),
                (unsigned long long)watch_value(set, "steps"),
                (unsigned long long)watch_value(set, "first_epoch"),
                (unsigned long long)watch_value(set, "first_step"),
                (unsigned long long)watch_value(set, "last_epoch"),
                (unsigned long long)watch_value(set, "last_step"));
    }
}

/* A vocabulary, and the share of looked-up values that it does not hold. */
struct vocabulary_line {
    const struct watch_set *set;
    double of_late, since_start;
};

static int
by_share_of_late(const void *a, const void *b)
{
    const struct vocabulary_line *one = a, *other = b;

    return (one->of_late < other->of_late) - (one->of_late > other->of_late);
}

static struct vocabulary_line
describe_vocabulary(const struct print *print, const struct watch_set *set)
{
    double lookups = (double)watch_value(set, "lookups");
    double lately = status_per_second(print, set, "lookups");
    struct vocabulary_line line = { .set = set };

    /* Both shares: one that has just risen is a change of the data. */
    if (lookups > 0)
        line.since_start = 100 * (double)watch_value(set, "out_of_vocabulary") / lookups;
    if (lately > 0)
        line.of_late = 100 * status_per_second(print, set, "out_of_vocabulary") / lately;
    return line;
}

static void
put_vocabulary(const struct print *print, const struct vocabulary_line *line)
{
    char name[128], rate[STATUS_NUMBER_BYTES], terms[STATUS_NUMBER_BYTES],
        bytes[STATUS_NUMBER_BYTES];

    watch_label(line->set, "vocabulary", name, sizeof name);
    status_put(print, STATUS_PLAIN, "  %-24.24s %9s %5.1f%% %8.1f%% %9s %9s", name,
               status_shorten(status_per_second(print, line->set, "lookups"), "", rate),
               line->of_late, line->since_start,
               status_shorten((double)watch_value(line->set, "terms"), "", terms),
               status_shorten((double)watch_value(line->set, "table"), "B", bytes));
}

/* Sorts the worst first. */
static void
put_vocabularies(const struct print *print)
{
    struct vocabulary_line *lines = tnd_zalloc(print->view->now.set_count + 1, sizeof *lines);
    const struct watch_set *set = NULL;
    size_t count = 0, shown = 0;

    while ((set = status_next(print, "vocabulary", set)) != NULL)
        lines[count++] = describe_vocabulary(print, set);
    qsort(lines, count, sizeof *lines, by_share_of_late);
    if (count > 0)
        status_put(print, STATUS_HEADING, "  %-24s %9s %6s %9s %9s %9s", "vocabulary", "lookups/s",
                   "OOV", "in all", "terms", "size");
    while (shown < count && !(print->page->folded && lines[shown].of_late < MISSING_PERCENT))
        put_vocabulary(print, &lines[shown++]);
    put_folded(print, (unsigned)(count - shown), "vocabulary that holds nearly all values",
               "vocabularies that hold nearly all values");
    free(lines);
}

/* The memory that lanes take, and how and why their columns are stored. */
/* The share of a column's values of late, and since the start. */
static void
percents(const struct print *print, const struct watch_set *set, const char *such,
         char to[STATUS_NUMBER_BYTES])
{
    double all = (double)watch_value(set, "values"),
           lately = status_per_second(print, set, "values");

    snprintf(to, STATUS_NUMBER_BYTES, "%.1f%%",
             lately > 0 ? 100 * status_per_second(print, set, such) / lately
             : all > 0  ? 100 * (double)watch_value(set, such) / all
                        : 0);
}

/* Shares of the values that were looked at. Columns without NaN and infinities are only counted. */
static void
put_columns(const struct print *print)
{
    const struct watch_set *set = NULL;
    unsigned sound = 0;
    bool headed = false;

    while ((set = status_next(print, "column", set)) != NULL) {
        char name[96], nan[STATUS_NUMBER_BYTES], infinite[STATUS_NUMBER_BYTES],
            zeros[STATUS_NUMBER_BYTES];

        if (watch_value(set, "nan") == 0 && watch_value(set, "infinite") == 0) {
            sound += watch_value(set, "values") > 0;
            continue;
        }
        if (!headed)
            status_put(print, STATUS_HEADING, "  %-24s %9s %9s %9s", "column", "NaN", "infinite",
                       "zero");
        headed = true;
        watch_label(set, "column", name, sizeof name);
        percents(print, set, "nan", nan);
        percents(print, set, "infinite", infinite);
        percents(print, set, "zeros", zeros);
        status_put(print, STATUS_PLAIN, "  %-24.24s %9s %9s %9s", name, nan, infinite, zeros);
    }
    if (headed)
        put_folded(print, sound, "column without NaN", "columns without NaN");
}

static void
put_compression(const struct print *print)
{
    const struct watch_set *set = status_next(print, "compression", NULL);
    char how[192], why[192], packed[192], text[STATUS_LINE_BYTES];
    char lanes[STATUS_NUMBER_BYTES], uncompressed[STATUS_NUMBER_BYTES];
    uint64_t taken, otherwise;

    if (set == NULL || print->page->folded)
        return;
    watch_label(set, "how", how, sizeof how);
    watch_label(set, "why", why, sizeof why);
    taken = watch_value(set, "lanes");
    otherwise = watch_value(set, "uncompressed");
    status_shorten((double)taken, "B", lanes);
    status_shorten((double)otherwise, "B", uncompressed);
    snprintf(text, sizeof text, "%s%s%s: %s, %s", lanes, taken < otherwise ? ", not " : "",
             taken < otherwise ? uncompressed : "", how, why);
    status_put_sentence(print, STATUS_PLAIN, "  lanes", text);
    watch_label(set, "on_devices", packed, sizeof packed);
    if (packed[0] == '\0' || status_next(print, "device", NULL) == NULL)
        return;
    snprintf(text, sizeof text, "%s, for trainers that expand it on a device", packed);
    status_put_sentence(print, STATUS_PLAIN, "  lanes", text);
}

/* The jobs and their places, if there are several or one has a name. */
static void
put_groups(const struct print *print)
{
    const struct watch_set *set = NULL;

    while ((set = status_next(print, "group", set)) != NULL) {
        char group[64];

        watch_label(set, "group", group, sizeof group);
        if (strcmp(group, "default") == 0 && status_next(print, "group", set) == NULL &&
            status_next(print, "group", NULL) == set)
            return;
        status_put(print, STATUS_PLAIN,
                   "  job %-20.20s epoch %llu step %llu, lag %llu batch%s, %llu trainer%s here",
                   group, (unsigned long long)watch_value(set, "epoch"),
                   (unsigned long long)watch_value(set, "step"),
                   (unsigned long long)watch_value(set, "lag"),
                   watch_value(set, "lag") == 1 ? "" : "es",
                   (unsigned long long)watch_value(set, "attached"),
                   TND_PLURAL(watch_value(set, "attached")));
    }
}

static void
put_stream(struct print *print, const struct watch_set *stream)
{
    double skipped = status_per_second(print, stream, "rows_skipped");
    double all = status_per_second(print, stream, "rows") + skipped;
    char name[64], rows[STATUS_NUMBER_BYTES], bytes[STATUS_NUMBER_BYTES], share[32] = "";

    if (skipped > 0)
        snprintf(share, sizeof share, " (%.0f%% lately)", 100 * skipped / all);
    /* From here on `next` sees the sets of this session only. */
    print->session = stream;
    watch_label(stream, "stream", name, sizeof name);
    status_put(print, STATUS_PLAIN, "%s", "");
    status_put(print, STATUS_STREAM,
               "stream %s: epoch %llu step %llu, %s rows/s, %s/s read, %llu skipped%s%s", name,
               (unsigned long long)watch_value(stream, "epoch"),
               (unsigned long long)watch_value(stream, "step"),
               status_shorten(status_per_second(print, stream, "rows"), "", rows),
               status_shorten(status_per_second(print, stream, "read"), "B", bytes),
               (unsigned long long)watch_value(stream, "rows_skipped"), share,
               watch_value(stream, "failed") != 0 ? ", FAILED" : "");
    if (watch_value(stream, "shards_taken_back") > 0)
        status_put(print, STATUS_PLAIN,
                   "  shards %llu of the evaluation went to others: not begun for 1 s",
                   (unsigned long long)watch_value(stream, "shards_taken_back"));
    put_groups(print);
    put_readers(print);
    put_devices(print);
    put_compression(print);
    put_helpers(print);
    put_stages(print);
    put_order(print);
    put_vocabularies(print);
    put_columns(print);
}

/* The link to other nodes, if there are any. */
static void
put_link(const struct print *print)
{
    const struct watch_set *set = watch_next(&print->view->now, "link", NULL);
    char messages[STATUS_NUMBER_BYTES], sent[STATUS_NUMBER_BYTES], received[STATUS_NUMBER_BYTES],
        worst[STATUS_NUMBER_BYTES];
    char text[2 * STATUS_NUMBER_BYTES + 64];

    if (set == NULL)
        return;
    status_put(print, STATUS_PLAIN, "%s", "");
    status_put(
        print, STATUS_STREAM,
        "link: %s messages/s, %s/s sent, %s/s received, waits for nodes %.0f%%, 99%% within %s%s",
        status_shorten(status_per_second(print, set, "messages_sent") +
                           status_per_second(print, set, "messages_received"),
                       "", messages),
        status_shorten(status_per_second(print, set, "sent"), "B", sent),
        status_shorten(status_per_second(print, set, "received"), "B", received),
        status_percent(print, set, "wait"), status_worst_of(print, set, "each_wait", worst),
        watch_value(set, "failed") != 0 ? ", FAILED: a node is lost" : "");
    if (watch_value(set, "passed_on") == 0)
        return;
    snprintf(text, sizeof text, "%s of files read here for other nodes, %s/s",
             status_shorten((double)watch_value(set, "passed_on"), "B", sent),
             status_shorten(status_per_second(print, set, "passed_on"), "B", received));
    status_put_sentence(print, STATUS_PLAIN, "passed on", text);
}

/* The stores that files at URLs come from. */
static void
put_stores(const struct print *print)
{
    const struct watch_set *set = NULL;

    while ((set = watch_next(&print->view->now, "store", set)) != NULL) {
        double reads = status_per_second(print, set, "reads");
        unsigned long long retries = 0;
        char name[128], bytes[STATUS_NUMBER_BYTES], all[STATUS_NUMBER_BYTES],
            requests[STATUS_NUMBER_BYTES];
        char worst[STATUS_NUMBER_BYTES], cached[STATUS_NUMBER_BYTES], text[STATUS_LINE_BYTES];

        for (const char *const *cause =
                 (const char *const[]){ "connection_retries", "stalled_retries", "server_retries",
                                        "short_retries", "range_retries", "slow_retries", NULL };
             *cause != NULL; cause++)
            retries += watch_value(set, *cause);
        watch_label(set, "store", name, sizeof name);
        snprintf(text, sizeof text,
                 "%s: %s/s, %s in all, %s from the cache on disk, %s requests/s, 99%% within %s, "
                 "%.0f%% of reads found their "
                 "bytes here, threads waited %.0f%% of the time, retries: %llu, failures: %llu",
                 name, status_shorten(status_per_second(print, set, "received"), "B", bytes),
                 status_shorten((double)watch_value(set, "received"), "B", all),
                 status_shorten((double)watch_value(set, "cached"), "B", cached),
                 status_shorten(status_per_second(print, set, "requests"), "", requests),
                 status_worst_of(print, set, "request", worst),
                 reads > 0 ? 100 * status_per_second(print, set, "hits") / reads : 0,
                 status_percent(print, set, "wait"), retries,
                 (unsigned long long)watch_value(set, "failures"));
        status_put_sentence(print, STATUS_PLAIN, "store", text);
    }
}

/* The interpreters that run Python of the user's own. */
static void
put_python(const struct print *print)
{
    const struct watch_set *set = NULL;

    while ((set = watch_next(&print->view->now, "python", set)) != NULL) {
        double rows = status_per_second(print, set, "rows"),
               busy = status_percent(print, set, "busy") / 100;
        unsigned long long limit = watch_value(set, "limit");
        char name[128], each[48] = "", rate[STATUS_NUMBER_BYTES], memory[STATUS_NUMBER_BYTES],
                        text[STATUS_LINE_BYTES];

        watch_label(set, "call", name, sizeof name);
        if (rows > 0)
            snprintf(each, sizeof each, ", %.3g ms a row", 1e3 * busy / rows);
        snprintf(text, sizeof text,
                 "%s: %.0f%% of %llu worker%s%s, %s rows/s, threads waited %.0f%% of the time for "
                 "one, %llu of them live, with %.2f processors and %s, restarts: %llu",
                 name, limit > 0 ? 100 * busy / (double)limit : 0, limit, TND_PLURAL(limit), each,
                 status_shorten(rows, "", rate), status_percent(print, set, "wait"),
                 (unsigned long long)watch_value(set, "workers"),
                 status_percent(print, set, "cpu") / 100,
                 status_shorten((double)watch_value(set, "memory"), "B", memory),
                 (unsigned long long)watch_value(set, "restarts"));
        status_put_sentence(print, STATUS_PLAIN, "python", text);
    }
}

/* The last lines of the log from warnings up. */
static void
put_notes(const struct print *print)
{
    static const char *const levels[] = { "error", "warning", "notice" };
    struct watch_note notes[TND_STATS_NOTES];
    uint32_t count = watch_notes(&print->view->now, 0, notes, TND_STATS_NOTES);

    if (count == 0)
        return;
    status_put(print, STATUS_PLAIN, "%s", "");
    status_put(print, STATUS_HEADING, "%s", "notes");
    /* The newest, in the order in which they came. */
    for (uint32_t i = count > NOTES_SHOWN ? count - NOTES_SHOWN : 0; i < count; i++) {
        time_t seconds = (time_t)(notes[i].wall_ns / 1000000000);
        char when[16], text[TND_STATS_NOTE_BYTES + 16];
        struct tm parts;

        strftime(when, sizeof when, "%H:%M:%S", localtime_r(&seconds, &parts));
        snprintf(text, sizeof text, "%s: %s", notes[i].level < 3 ? levels[notes[i].level] : "?",
                 notes[i].text);
        status_put_sentence(print, STATUS_PLAIN, when, text);
    }
}

static void
print_line(void *user, enum status_style style, enum watch_level level, const char *text)
{
    (void)user;
    (void)style;
    (void)level;
    puts(text);
}

const struct status_page status_page_plain = { .line = print_line };

void
status_print(const struct status_view *view, const struct status_page *page)
{
    struct print print = { .view = view, .page = page };
    const struct watch_set *stream = NULL;

    print.level = view->diagnosis.level;
    status_put_sentence(&print, STATUS_DIAGNOSIS, watch_level_name(view->diagnosis.level),
                        view->diagnosis.sentence);
    if (!page->folded)
        status_put_sentence(&print, STATUS_ADVICE, "", view->diagnosis.advice);
    while ((stream = watch_next(&view->now, "stream", stream)) != NULL)
        put_stream(&print, stream);
    put_link(&print);
    put_stores(&print);
    put_python(&print);
    put_notes(&print);
}
