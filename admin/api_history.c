/* api_history.c - the last minutes as JSON, a value a second. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "core/json.h"

/* The most series of a figure (rows, wait ...) that are told at once: those of the highest mean,
 * beside the sums of all nodes. */
enum { SERIES_OF_A_FIGURE = 64 };

struct candidate {
    const struct history_series *series;
    double mean;
};

/* JSON has no NaN, which stands for seconds without a value. */
static void
write_values(const struct history *history, const struct history_series *series, unsigned seconds,
             FILE *body)
{
    fputc('[', body);
    for (unsigned i = 0; i < seconds; i++) {
        uint64_t second = history->second - seconds + 1 + i;
        float value = series->values[second % HISTORY_SECONDS];

        fprintf(body, isnan(value) ? "%snull" : "%s%.4g", i > 0 ? "," : "", (double)value);
    }
    fputc(']', body);
}

/* "RANK|WHAT|LABELS" as three members. */
static void
write_name(struct json *json, const struct history_series *series)
{
    char name[HISTORY_NAME_BYTES];
    char *what, *labels;

    memcpy(name, series->name, sizeof name);
    what = strchr(name, '|');
    labels = what != NULL ? strchr(what + 1, '|') : NULL;
    if (labels == NULL)
        return;
    *what++ = *labels++ = '\0';
    json_key_text(json, "rank", name);
    json_key_text(json, "what", what);
    json_key_text(json, "labels", labels);
}

/* RANK|, and then the figure. */
static const char *
figure_of(const struct history_series *series, size_t *ret_bytes)
{
    const char *begin = strchr(series->name, '|');
    const char *end = begin != NULL ? strchr(begin + 1, '|') : NULL;

    *ret_bytes = end != NULL ? (size_t)(end - begin - 1) : 0;
    return end != NULL ? begin + 1 : "";
}

static int
compare_figures(const struct history_series *one, const struct history_series *other)
{
    size_t bytes, other_bytes;
    const char *figure = figure_of(one, &bytes), *other_figure = figure_of(other, &other_bytes);
    int differ = memcmp(figure, other_figure, bytes < other_bytes ? bytes : other_bytes);

    return differ != 0 ? differ : (bytes > other_bytes) - (bytes < other_bytes);
}

/* By figure, the highest mean first; sums stand before all. */
static int
by_figure_and_mean(const void *one, const void *other)
{
    const struct candidate *a = one, *b = other;
    int differ = compare_figures(a->series, b->series);

    return differ != 0 ? differ : (b->mean > a->mean) - (b->mean < a->mean);
}

/* The series that ended before the wanted time would be rows of nulls. */
static uint32_t
find_candidates(const struct history *history, unsigned seconds, int64_t rank,
                struct candidate *candidates)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < history->count; i++) {
        const struct history_series *series = history->series[i];
        bool is_sum = strncmp(series->name, "all|", 4) == 0;

        if (series->last + seconds <= history->second ||
            (rank >= 0 && strtoll(series->name, NULL, 10) != rank) || (rank >= 0 && is_sum))
            continue;
        candidates[count++] = (struct candidate){
            .series = series,
            .mean = is_sum ? INFINITY : history_mean(history, series, seconds),
        };
    }
    qsort(candidates, count, sizeof *candidates, by_figure_and_mean);
    return count;
}

static void
write_series(struct json *json, const struct history *history, const struct history_series *series,
             unsigned seconds)
{
    json_object(json);
    write_name(json, series);
    json_key(json, "values");
    json_raw(json);
    write_values(history, series, seconds, json->file);
    json_object_end(json);
}

/* Those of the wanted time. */
static void
write_events(struct json *json, const struct events *events, uint64_t from, int64_t rank)
{
    const struct event *event;

    json_key(json, "events");
    json_array(json);
    for (uint64_t i = 0; (event = events_at(events, i)) != NULL; i++) {
        if (event->second < from || (rank >= 0 && event->rank != (uint64_t)rank))
            continue;
        json_object(json);
        json_key_int(json, "time_unix", (int64_t)event->second);
        json_key_int(json, "rank", event->rank);
        json_key_text(json, "kind", events_kind_name(event->kind));
        json_key_text(json, "text", event->text);
        json_object_end(json);
    }
    json_array_end(json);
}

static unsigned
answer(const struct watcher *watcher, unsigned seconds, int64_t rank, FILE *body)
{
    const struct history *history = watcher_history(watcher);
    struct candidate *candidates = calloc(history->count + 1, sizeof *candidates);
    uint32_t count, of_figure = 0, left_out = 0;
    struct json json;

    if (candidates == NULL)
        return 503;
    count = find_candidates(history, seconds, rank, candidates);
    json_start(&json, body);
    json_object(&json);
    json_key_int(&json, "end_unix", (int64_t)history->second);
    json_key_int(&json, "seconds", seconds);
    json_key(&json, "series");
    json_array(&json);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && compare_figures(candidates[i - 1].series, candidates[i].series) != 0)
            of_figure = 0;
        of_figure += !isinf(candidates[i].mean);
        if (of_figure <= SERIES_OF_A_FIGURE)
            write_series(&json, history, candidates[i].series, seconds);
        else
            left_out++;
    }
    json_array_end(&json);
    json_key_int(&json, "left_out", left_out);
    write_events(&json, watcher_events(watcher), history->second - seconds + 1, rank);
    json_object_end(&json);
    fputc('\n', body);
    free(candidates);
    return 200;
}

unsigned
api_answer_history(const struct admin *admin, const struct route *route, FILE *body)
{
    return answer(admin->watcher, (unsigned)route->number, -1, body);
}

unsigned
api_answer_node_history(const struct admin *admin, const struct route *route, FILE *body)
{
    return answer(admin->watcher, HISTORY_SECONDS, route->number, body);
}
