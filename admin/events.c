/* events.c - restarts, deaths, epochs and alerts, in a ring. */
#include "events.h"

#include <stdio.h>
#include <string.h>

/* Nodes tell of the same event within SAME_WITHIN_S seconds. */
enum { SAME_WITHIN_S = 5 };

static bool
is_known(const struct events *events, const struct event *event)
{
    for (uint64_t back = 1; back <= EVENTS && back <= events->count; back++) {
        const struct event *one = &events->ring[(events->count - back) % EVENTS];

        if (one->second + SAME_WITHIN_S < event->second)
            return false;
        if (one->kind == event->kind && strcmp(one->text, event->text) == 0)
            return true;
    }
    return false;
}

void
events_note(struct events *events, const struct event *event)
{
    if (!is_known(events, event))
        events->ring[events->count++ % EVENTS] = *event;
}

static uint32_t
rank_of(const struct watch_snapshot *snapshot)
{
    const struct watch_set *server = watch_next(snapshot, "server", NULL);

    return server != NULL ? (uint32_t)watch_value(server, "rank") : 0;
}

static void
compare_epochs(struct events *events, struct event *event, const struct watch_snapshot *before,
               const struct watch_snapshot *now)
{
    const struct watch_set *set = NULL;

    event->kind = EVENT_EPOCH;
    while ((set = watch_next(now, "stream", set)) != NULL) {
        const struct watch_set *was = watch_again(before, set);
        char stream[TND_STATS_VALUE_BYTES];

        if (was == NULL || watch_value(set, "epoch") <= watch_value(was, "epoch"))
            continue;
        watch_label(set, "stream", stream, sizeof stream);
        snprintf(event->text, sizeof event->text, "epoch %llu of stream %.64s",
                 (unsigned long long)watch_value(set, "epoch"), stream);
        events_note(events, event);
    }
}

static void
compare_deaths(struct events *events, struct event *event, const struct watch_snapshot *before,
               const struct watch_snapshot *now)
{
    const struct watch_set *set = NULL;

    event->kind = EVENT_DEATH;
    while ((set = watch_next(now, "reader", set)) != NULL) {
        const struct watch_set *was = watch_again(before, set);
        char stream[TND_STATS_VALUE_BYTES], replica[16];

        if (was == NULL || watch_value(set, "died") == 0 || watch_value(was, "died") != 0)
            continue;
        watch_label(set, "stream", stream, sizeof stream);
        watch_label(set, "replica", replica, sizeof replica);
        snprintf(event->text, sizeof event->text, "the trainer of replica %s on %.48s died (%.48s)",
                 replica, now->copy.header->node, stream);
        events_note(events, event);
    }
}

void
events_compare(struct events *events, uint64_t second, const struct watch_snapshot *before,
               const struct watch_snapshot *now)
{
    struct event event = { .second = second, .rank = rank_of(now) };

    compare_epochs(events, &event, before, now);
    compare_deaths(events, &event, before, now);
}

void
events_note_level(struct events *events, uint64_t second, const struct watch_snapshot *now,
                  enum watch_level level)
{
    struct event event = { .second = second, .rank = rank_of(now), .kind = EVENT_ALERT };

    if (level != WATCH_WARNING && level < WATCH_STUCK)
        return;
    snprintf(event.text, sizeof event.text, "%s: %.64s", watch_level_name(level),
             now->copy.header->node);
    events_note(events, &event);
}

const char *
events_kind_name(enum event_kind kind)
{
    static const char *const names[] = { "restart", "death", "epoch", "alert" };

    return names[kind];
}

const struct event *
events_at(const struct events *events, uint64_t number)
{
    uint64_t kept = events->count < EVENTS ? events->count : EVENTS;

    return number < kept ? &events->ring[(events->count - kept + number) % EVENTS] : NULL;
}
