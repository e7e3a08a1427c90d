/* events.h - what happened to a job and when: the marks of the page's charts.
 *
 * The last EVENTS are kept, in memory that is bounded. An event that every node reports, as the
 * epoch's end, is kept once.
 */
#ifndef ADMIN_EVENTS_H
#define ADMIN_EVENTS_H

#include "watch/diagnosis.h"

enum { EVENTS = 256, EVENT_TEXT_BYTES = 160 };

enum event_kind { EVENT_RESTART, EVENT_DEATH, EVENT_EPOCH, EVENT_ALERT };

struct event {
    uint64_t second; /* since 1970 */
    uint32_t rank;
    enum event_kind kind;
    char text[EVENT_TEXT_BYTES];
};

struct events {
    uint64_t count; /* of all that were noted: the last is at (count - 1) % EVENTS */
    struct event ring[EVENTS];
};

void events_note(struct events *events, const struct event *event);

/* The changes from one snapshot of a server to the next: epochs, and trainers that died. */
void events_compare(struct events *events, uint64_t second, const struct watch_snapshot *before,
                    const struct watch_snapshot *now);

/* The level of a node's verdict has changed; only those from warnings up that ask for action are
 * events. */
void events_note_level(struct events *events, uint64_t second, const struct watch_snapshot *now,
                       enum watch_level level);

const char *events_kind_name(enum event_kind kind);

/* Event `number` of those that are kept, the oldest first; NULL: there is none. */
const struct event *events_at(const struct events *events, uint64_t number);

#endif
