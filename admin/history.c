/* history.c - an hour of metrics in rings of values. */
#include "history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void
history_advance(struct history *history, uint64_t second)
{
    uint64_t from = history->second + 1;

    if (second <= history->second)
        return;
    /* After a long pause, such as a suspended machine, once around the ring is enough. */
    if (second - history->second > HISTORY_SECONDS)
        from = second - HISTORY_SECONDS + 1;
    for (uint32_t i = 0; i < history->count; i++)
        for (uint64_t s = from; s <= second; s++)
            history->series[i]->values[s % HISTORY_SECONDS] = NAN;
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
