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
    history->series = calloc(HISTORY_SERIES, sizeof *history->series);
    return history->series != NULL ? 0 : -1;
}

void
history_close(struct history *history)
{
    free(history->series);
    history->series = NULL;
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
    for (uint64_t s = from; s <= second; s++)
        for (uint32_t i = 0; i < HISTORY_SERIES; i++)
            history->series[i].values[s % HISTORY_SECONDS] = NAN;
    history->second = second;
}

/* The series of that name. If there is none, the series that was written least recently takes the
 * name. */
static struct history_series *
find(struct history *history, const char *name)
{
    struct history_series *oldest = &history->series[0];

    for (uint32_t i = 0; i < HISTORY_SERIES; i++) {
        struct history_series *series = &history->series[i];

        if (strcmp(series->name, name) == 0)
            return series;
        if (series->last < oldest->last)
            oldest = series;
    }
    snprintf(oldest->name, sizeof oldest->name, "%s", name);
    for (uint32_t i = 0; i < HISTORY_SECONDS; i++)
        oldest->values[i] = NAN;
    return oldest;
}

void
history_note(struct history *history, const char *name, double value)
{
    struct history_series *series;

    /* A longer name would be cut, and could then be that of another series. */
    if (name[0] == '\0' || strlen(name) >= HISTORY_NAME_BYTES)
        return;
    series = find(history, name);
    series->last = history->second;
    series->values[history->second % HISTORY_SECONDS] = (float)value;
}
