/* history.c - an hour of metrics in rings of values. */
#include "history.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How far a clock that was set back a little may be behind, before its time is shown again. */
enum { BEHIND_MAX_S = 60 };

int
history_open(struct history *history)
{
    *history = (struct history){ 0 };
    history->series = calloc(HISTORY_SERIES, sizeof(struct history_series *));
    history->chains = calloc(HISTORY_CHAINS, sizeof(struct history_series *));
    return history->series != NULL && history->chains != NULL ? 0 : -1;
}

void
history_close(struct history *history)
{
    for (uint32_t i = 0; i < history->count; i++)
        free(history->series[i]);
    free(history->series);
    free(history->chains);
    *history = (struct history){ 0 };
}

/* Looks that are a second apart may fall into one second of the clock, or leave one out. */
static bool
is_uneven(uint64_t next, uint64_t clock)
{
    return clock <= next + 1 && clock + BEHIND_MAX_S >= next;
}

void
history_advance(struct history *history, uint64_t clock)
{
    uint64_t next = history->second + 1;
    uint64_t second = is_uneven(next, clock) ? next : clock;
    /* After a long pause, such as a suspended machine, once around the ring is enough. */
    bool is_whole = second < next || second - next >= HISTORY_SECONDS;
    uint64_t from = is_whole ? second - HISTORY_SECONDS + 1 : next;

    for (uint32_t i = 0; i < history->count; i++) {
        struct history_series *series = history->series[i];

        for (uint64_t s = from; s <= second; s++)
            series->values[s % HISTORY_SECONDS] = NAN;
        if (series->last > second)
            series->last = second;
    }
    history->second = second;
}

static uint32_t
chain_of(const char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash % HISTORY_CHAINS;
}

static struct history_series *
find(const struct history *history, const char *name)
{
    struct history_series *series = history->chains[chain_of(name)];

    while (series != NULL && strcmp(series->name, name) != 0)
        series = series->next;
    return series;
}

const struct history_series *
history_find(const struct history *history, const char *name)
{
    return find(history, name);
}

static void
unlink_series(struct history *history, const struct history_series *series)
{
    struct history_series **link = &history->chains[chain_of(series->name)];

    while (*link != series)
        link = &(*link)->next;
    *link = series->next;
}

/* The series that was written least recently, out of its chain; NULL: all are written still. */
static struct history_series *
take_silent(struct history *history)
{
    struct history_series *oldest = history->series[0];

    /* One search a second that finds nothing is enough: all series are looked at. */
    if (history->searched == history->second)
        return NULL;
    for (uint32_t i = 1; i < history->count; i++)
        if (history->series[i]->last < oldest->last)
            oldest = history->series[i];
    if (oldest->last + 1 >= history->second) {
        history->searched = history->second;
        return NULL;
    }
    unlink_series(history, oldest);
    return oldest;
}

static struct history_series *
make(struct history *history, const char *name)
{
    struct history_series *series;

    if (history->count == HISTORY_SERIES)
        series = take_silent(history);
    else
        series = history->series[history->count] = malloc(sizeof *series);
    if (series == NULL)
        return NULL;
    history->count += history->count < HISTORY_SERIES;
    snprintf(series->name, sizeof series->name, "%s", name);
    for (uint32_t i = 0; i < HISTORY_SECONDS; i++)
        series->values[i] = NAN;
    series->next = history->chains[chain_of(name)];
    history->chains[chain_of(name)] = series;
    return series;
}

void
history_note(struct history *history, const char *name, double value)
{
    struct history_series *series = find(history, name);

    /* A longer name would be cut, and could then be that of another series. */
    if (series == NULL && name[0] != '\0' && strlen(name) < HISTORY_NAME_BYTES)
        series = make(history, name);
    if (series == NULL)
        return;
    series->last = history->second;
    series->values[history->second % HISTORY_SECONDS] = (float)value;
}

void
history_add(struct history *history, const char *name, double value)
{
    const struct history_series *series = history_find(history, name);
    float before = series != NULL ? series->values[history->second % HISTORY_SECONDS] : NAN;

    history_note(history, name, isnan(before) ? value : (double)before + value);
}

double
history_mean(const struct history *history, const struct history_series *series, unsigned seconds)
{
    double sum = 0;
    unsigned known = 0;

    for (unsigned i = 0; i < seconds && i < history->second; i++) {
        float value = series->values[(history->second - i) % HISTORY_SECONDS];

        if (isnan(value))
            continue;
        sum += (double)value;
        known++;
    }
    return known > 0 ? sum / known : 0;
}
